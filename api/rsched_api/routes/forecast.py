"""GET /v1/forecast: runs per minute to come, from due sets and calendars; jobs that share a schedule are counted together."""

from __future__ import annotations

import anyio
from starlette.requests import Request
from starlette.responses import Response

from rsched.core.answers import Flattened, ForecastView, SpikeView, TeamForecast
from rsched.core.errors import RschedError, invalid
from rsched.core.forecast import MINUTE_MS, Forecast, interval_counts
from rsched.core.ids import PARTITIONS
from rsched.core.instants import format_utc
from rsched.core.jobs.packed import JobRecord
from rsched.core.jobs.validate import check_slug
from rsched.core.schedule.schedule import Schedule, calendar_names, load
from rsched.store.partitions import DueGroup
from rsched_api.http.deps import deps_of
from rsched_api.http.ports import ApiStore
from rsched_api.http.requests import query
from rsched_api.views import respond

MAX_HOURS = 168
# Past so many jobs only some partitions are looked at: ids spread evenly over them.
MAX_COUNTED = 200_000
_PAGE = 400
_TEAMS = 20
_SPIKE_TEAMS = 5


async def forecast(request: Request) -> Response:
    """GET /v1/forecast: counts the runs to come per minute, of all teams or of one.

    Raises:
        Invalid: A field or parameter cannot stand (422).
        Unavailable: Redis or Postgres does not answer, or the job is being restored (503).
    """
    deps = deps_of(request)
    params = query(request, "hours", "team")
    hours = _hours(params.get("hours", "24"))
    team = params.get("team")
    for found in check_slug(team, "team") if team is not None else ():
        raise invalid(*found)
    return respond(await _view(deps.store, hours=hours, team=team))


def _hours(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 3 and 1 <= int(text) <= MAX_HOURS):
        raise invalid("hours", f"must be a number from 1 to {MAX_HOURS}")
    return int(text)


async def _view(store: ApiStore, *, hours: int, team: str | None) -> ForecastView:
    counts = await store.partitions.count_due()
    jobs = sum(counts)
    step = max(1, -(-jobs // MAX_COUNTED))
    partitions = [p for p in range(0, PARTITIONS, min(step, PARTITIONS)) if counts[p]]
    counted = sum(counts[p] for p in partitions)
    now = await store.clock.read()
    start = now // MINUTE_MS * MINUTE_MS
    found = Forecast(start, hours * 60)
    until = start + hours * 60 * MINUTE_MS
    await _Counting(store, found, until=until, scale=jobs / counted if counted else 1.0, team=team).count(partitions)
    return _shown(found, until=until, jobs=jobs, sampled=counted / jobs if jobs else 1.0)


class _Counting:
    def __init__(self, store: ApiStore, forecast: Forecast, *, until: int, scale: float, team: str | None) -> None:
        self._store, self._forecast, self._until, self._scale, self._team = store, forecast, until, scale, team
        self._calendars: dict[str, list[int]] = {}
        # (team, kind, arg, minute of intervals and one-offs, window) -> how many jobs, and the earliest due instant.
        self._groups: dict[tuple[str, str, str, int, int], tuple[int, int]] = {}

    async def count(self, partitions: list[int]) -> None:
        for partition in partitions:
            skip, more = 0, True
            while more:
                groups, more = await self._store.partitions.read_due_groups(
                    partition, skip=skip, until_ms=self._until - 1, limit=_PAGE
                )
                skip += _PAGE
                groups = [g for g in groups if self._team in (None, g.team)]
                await self._learn([g for g in groups if g.kind == "c" and g.arg not in self._calendars])
                for g in groups:
                    key = (g.team, g.kind, g.arg, 0 if g.kind == "c" else g.first // MINUTE_MS, g.window_ms)
                    count, first = self._groups.get(key, (0, g.first))
                    self._groups[key] = count + g.total, min(first, g.first)
        for n, ((owner, kind, arg, _, window_ms), (count, first)) in enumerate(self._groups.items()):
            counts = self._occurring(kind, arg, first, count * self._scale)
            self._forecast.add(owner, counts, window_ms=window_ms, movable=kind != "e")
            if n % 200 == 0:
                await anyio.lowlevel.checkpoint()

    async def _learn(self, groups: list[DueGroup]) -> None:
        """The occurrences of calendars that were not met before."""
        if not groups:
            return
        for job, record in (await self._store.jobs.get_many([g.job for g in groups])).items():
            arg = next(g.arg for g in groups if g.job == job)
            schedule = await self._schedule(record)
            self._calendars[arg] = [] if schedule is None else await self._occurrences(schedule)

    async def _schedule(self, record: object) -> Schedule | None:
        if not isinstance(record, JobRecord):
            return None
        try:
            names = calendar_names(record.definition)
            calendars = await self._store.calendars.get_many(record.definition.team, names)
            return load(record.definition, calendars={n: c.entries for n, c in calendars.items()})
        except (RschedError, ValueError):
            return None  # the scheduler will invalidate it

    async def _occurrences(self, schedule: Schedule) -> list[int]:
        out: list[int] = []
        at = schedule.next_after(self._forecast.start_ms - 1)
        while at is not None and at < self._until:
            out.append(at)
            if len(out) % 1000 == 0:
                await anyio.lowlevel.checkpoint()
            at = schedule.next_after(at)
        return out

    def _occurring(self, kind: str, arg: str, first: int, runs: float) -> list[tuple[int, float]]:
        if kind == "o":
            return [(first, runs)]
        if kind == "e":
            return [(t, n * runs) for t, n in interval_counts(first, int(arg), self._until)]
        return [(t, runs) for t in self._calendars.get(arg, ()) if t >= first]


def _shown(found: Forecast, *, until: int, jobs: int, sampled: float) -> ForecastView:
    total = found.total()
    by_runs = sorted(found.teams.items(), key=lambda item: (-sum(item[1]), item[0]))
    rows = by_runs[:_TEAMS]
    if len(by_runs) > _TEAMS:
        rows.append(("_other", [sum(column) for column in zip(*(r for _, r in by_runs[_TEAMS:]), strict=True)]))
    return ForecastView(
        from_=format_utc(found.start_ms, short=True),
        to=format_utc(until, short=True),
        jobs=jobs,
        sampled=round(sampled, 4),
        runs=round(sum(total)),
        peak=round(max(total, default=0)),
        per_minute=[round(n) for n in total],
        teams=[
            TeamForecast(team=t, runs=round(sum(r)), peak=round(max(r)), per_minute=[round(n) for n in r])
            for t, r in rows
        ],
        spikes=[
            SpikeView(
                at=format_utc(found.start_ms + s.minute * MINUTE_MS, short=True),
                runs=round(s.runs),
                teams={t: round(n) for t, n in s.teams[:_SPIKE_TEAMS]},
            )
            for s in found.spikes()
        ],
        flattened=[Flattened(window=f"{w}m", peak=round(p)) for w, p in found.flattened()],
    )
