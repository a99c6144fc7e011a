"""The scheduler away across 2 a.m.: jobs of every policy and kind on real servers, and what the ledger says of each after it."""

from __future__ import annotations

import signal
from datetime import UTC, datetime, timedelta
from typing import Any, Literal, NamedTuple
from zoneinfo import ZoneInfo, available_timezones

import psycopg

from rsched.core.ids import JobId
from tests.faults.api_run import Api, text_of, until_time
from tests.faults.fault_run import Run
from tests.support.checker import check, read_seen

POLICIES = ("run_once", "run_all", "skip")
Policy = Literal["run_once", "run_all", "skip"]
Away = Literal["killed", "stopped"]


_RUNS = (
    "SELECT run_id, status::text, ms_of(claimed_at), ms_of(due_at), coalesce(ms_of(started_at), 0), coalesce(ms_of(ended_at), 0),"
    " coalesce(error, '') FROM runs"
    " WHERE run_id NOT LIKE '%:m-%'"
)
_SKIPS = "SELECT job_id, ms_of(first_at), ms_of(last_at), total, reason, ms_of(skipped_at) FROM skips"


class Form(NamedTuple):
    """How long it all takes; ms. lead: from the jobs to the outage. before: from its begin to 2 a.m. cut: the catch-up window.
    fine: jobs fire by seconds and "2 a.m." is any instant, so that a short outage misses enough.
    """

    fine: bool
    outage_ms: int
    before_ms: int
    lead_ms: int
    grace_ms: int
    cut_ms: int
    per_s: int
    lookahead_ms: int


LONG = Form(False, 900_000, 60_000, 5_000, 60_000, 300_000, 10, 5000)
SHORT = Form(True, 9_000, 3_000, 1_000, 1_000, 4_000, 3, 500)


class Plan(NamedTuple):
    """A job of the scene. grid: (first, step), ms: its occurrences by plain arithmetic; step 0: just the one."""

    name: str
    policy: Policy
    cut: bool
    schedule: dict[str, Any]
    grid: tuple[int, int]
    window_ms: int = 0
    overlap: str = "allow"

    def within(self, after: int, until: int) -> list[int]:
        """Occurrences in after < t <= until."""
        first, step = self.grid
        if not step:
            return [first] if after < first <= until else []
        begin = first + ((after - first) // step + 1) * step
        return list(range(begin, until + 1, step))


class RunRow(NamedTuple):
    run_id: str
    state: str
    claimed_at: int
    due_at: int
    started_at: int
    ended_at: int
    error: str

    @property
    def at(self) -> int:
        return int(self.run_id.rpartition(":")[2])


class SkipRow(NamedTuple):
    job_id: str
    first: int
    last: int
    total: int
    reason: str
    at: int


class Outcome(NamedTuple):
    """What is on record. Instants in ms by Redis' clock. jobs: plan by job id; fresh: ids of those made after the outage."""

    form: Form
    jobs: dict[str, Plan]
    fresh: list[str]
    gone_at: int
    back_at: int
    over_at: int
    runs: list[RunRow]
    skips: list[SkipRow]
    breaches: list[str]
    created: dict[str, int]
    counted: dict[str, dict[str, int]]


def two_am(after_ms: int) -> tuple[int, str]:
    """The first 2 a.m. anywhere after that instant, and a zone where it is. There is one each full hour at the latest."""
    after = datetime.fromtimestamp(after_ms / 1000, UTC)
    found: list[tuple[datetime, str]] = []
    for name in sorted(available_timezones()):
        zone = ZoneInfo(name)
        for days in (0, 1):
            day = after.astimezone(zone).date() + timedelta(days=days)
            instant = datetime(day.year, day.month, day.day, 2, tzinfo=zone).astimezone(UTC)
            if instant > after and instant.astimezone(zone).hour == 2:
                found.append((instant, name))
    instant, name = min(found)
    return round(instant.timestamp() * 1000), name


def plans(form: Form, night_ms: int, zone: str) -> list[Plan]:
    """Each policy, with and without a catch-up window, with each kind of schedule. night_ms: what stands for 2 a.m."""
    local = datetime.fromtimestamp(night_ms / 1000, ZoneInfo(zone))
    daily: dict[str, Any] = {"cron": f"{local.minute} {local.hour} * * *", "timezone": zone}
    often: dict[str, Any] = {"cron": "* * * * *", "timezone": zone}
    fifth: dict[str, Any] = {"cron": "*/5 * * * *", "timezone": zone}
    unit, every_ms = (1000, 1000) if form.fine else (60_000, 10_000)
    if form.fine:
        daily, often, fifth = daily | {"second": local.second}, often | {"second": "*/2"}, fifth | {"second": "*/5"}
        fifth["cron"] = "* * * * *"
    step = 2 * unit if form.fine else unit
    window_ms = step // 2
    every = {"every": every_ms / 1000, "anchor": text_of(night_ms)}
    made: list[Plan] = []
    for policy in POLICIES:
        for cut in (False, True):

            def add(kind: str, schedule: dict[str, Any], grid: tuple[int, int], **more: Any) -> None:
                name = f"{policy}-{'cut' if cut else 'whole'}-{kind}"  # noqa: B023 - called in this turn of the loop only
                made.append(Plan(name, policy, cut, schedule, grid, **more))  # type: ignore[arg-type] # noqa: B023

            add("daily", daily, (night_ms, 86_400_000))
            add("often", often, (0, step))
            add("fifth", fifth, (0, 5 * unit))
            add("every", every, (night_ms, every_ms))
            add("once", {"at": text_of(night_ms)}, (night_ms, 0))
            add("window", often | {"window": window_ms / 1000}, (0, step), window_ms=window_ms)
            add("overlap", every, (night_ms, every_ms), overlap="skip")
    return made


def body_of(plan: Plan, form: Form) -> dict[str, Any]:
    misfire = {"grace": form.grace_ms / 1000} | ({"catchup_window": form.cut_ms / 1000} if plan.cut else {})
    return {
        "name": plan.name,
        "schedule": plan.schedule,
        "target": {"type": "function", "function": "brief"},
        "misfire_policy": plan.policy,
        "misfire": misfire,
        "overlap": plan.overlap,
    }


def settings(form: Form) -> dict[str, str]:
    return {
        "RSCHED_SCHEDULER_LOOKAHEAD_MS": str(form.lookahead_ms),
        "RSCHED_SCHEDULER_CATCHUP_PER_S": str(form.per_s),
    }


async def live_through(run: Run, api: Api, form: Form, away: Away) -> Outcome:
    """The whole scene: jobs, the outage, the return, fresh jobs beside what is caught up, and the end of all."""
    store = run.w.store
    now = await store.clock.read()
    if form.fine:
        night, zone = (now + form.lead_ms + form.before_ms) // 2000 * 2000 + 2000, "Asia/Kolkata"
    else:
        night, zone = two_am(now + form.lead_ms + form.before_ms)
    scene = plans(form, night, zone)
    made = await api.put([body_of(plan, form) | {"name": f"{away}-{plan.name}"} for plan in scene])
    await until_time(run, night - form.before_ms)
    if away == "killed":
        run.kill("scheduler-1")
    else:
        run.fleet.signal("scheduler-1", signal.SIGSTOP)
    gone_at = await store.clock.read()
    await until_time(run, gone_at + form.outage_ms)
    back_at = await store.clock.read()
    if away == "killed":
        run.fleet.start("scheduler-1")
    else:
        run.fleet.signal("scheduler-1", signal.SIGCONT)
    await run.until_owned(1)
    now = await store.clock.read()
    fresh = [job for job, _ in await api.put([_fresh(f"{away}-fresh-{i}", now + i * 25) for i in range(40)])]
    await run.fleet.until(lambda: _caught_up(run), what="the end of the catch-up", within_s=60)
    await until_time(run, await store.clock.read() + 1000)
    over_at = await store.clock.read()
    jobs = {job: plan for (job, _), plan in zip(made, scene, strict=True)}
    for job in [*jobs, *fresh]:
        await store.jobs.pause(JobId(job))
    await run.fleet.until(lambda: _ended(run), what="the end of all runs", within_s=30)
    await run.until_recorded()
    return Outcome(
        form, jobs, fresh, gone_at, back_at, over_at,
        [RunRow(*row) for row in await _rows(run, _RUNS)],
        [SkipRow(*row) for row in await _rows(run, _SKIPS)],
        [str(b) for b in check(read_seen(run.seen), await run.recorded(), expected={}).breaches],
        dict(made),
        {job: (await api.call("GET", f"/v1/jobs/{job}")).get("skipped", {}) for job in jobs},
    )  # fmt: skip


def _fresh(name: str, anchor: int) -> dict[str, Any]:
    schedule = {"every": 1, "anchor": text_of(anchor)}
    return {"name": name, "schedule": schedule, "target": {"type": "function", "function": "brief"}}


async def _caught_up(run: Run) -> bool:
    """No range is left, and nothing is due that is past."""
    store = run.w.store
    due, _ = await store.partitions.list_due(within_ms=-200)
    return not due and not await store.connection.client.exists(store.keys.catchup)


async def _ended(run: Run) -> bool:
    return await run.w.store.connection.client.hlen(run.w.store.keys.runs) == 0


async def _rows(run: Run, query: str) -> list[Any]:
    async with await psycopg.AsyncConnection.connect(run.w.database_url) as connection:
        return await (await connection.execute(query)).fetchall()
