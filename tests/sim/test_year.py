"""A year of mixed jobs with outages, edits, pauses and changes of the clocks, checked occurrence by occurrence.

RSCHED_LONG=1 simulates the whole year and 1,000 jobs; else the weeks around the autumn's changes.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from rsched.core.durations import parse_duration
from rsched.core.ids import JobId, derive_job_id
from rsched.core.instants import format_utc, parse_instant
from rsched.core.jobs import records
from rsched.core.jobs.model import JobSpec, MisfirePolicy
from rsched.core.jobs.packed import JobRecord
from rsched.core.schedule.misfire import resolve_resumed
from rsched.core.schedule.schedule import Resolved, load, resolve
from rsched.core.states import JobState, RunState
from rsched.store.jobs import PutItem
from tests.sim.jobs import HOUR_MS, Oracle, random_schedules, random_spec
from tests.sim.world import Sim

pytestmark = pytest.mark.anyio
DAY_MS = 24 * HOUR_MS
LONG = os.environ.get("RSCHED_LONG") == "1"
# Nothing that people or faults do falls on a schedule's quarters of an hour, so that what it changes is never in doubt.
ODD_MS = 437_123


class Stretch(NamedTuple):
    """From since (ms) on, until the next one, the job has these occurrences, and is paused or not."""

    since: int
    occurrences: list[int]
    paused: bool = False
    missed: MisfirePolicy | None = None


class SimJob:
    def __init__(self, spec: JobSpec, job: JobId, record: JobRecord, first: Stretch) -> None:
        self.spec, self.id, self.record = spec, job, record
        self.stretches = [first]
        self.deleted_at: int | None = None

    def spans(self, end: int) -> Iterator[tuple[Stretch, int]]:
        last = end if self.deleted_at is None else self.deleted_at
        for stretch, following in zip(self.stretches, [*self.stretches[1:], None], strict=True):
            yield stretch, min(last, following.since if following else last)

    def expected(self, end: int) -> list[int]:
        return [t for s, until in self.spans(end) for t in s.occurrences if s.since < t <= until]


class Story:
    """What people do to jobs, through the same records and scripts as the API."""

    def __init__(self, sim: Sim, rng: random.Random, *, start: int, end: int) -> None:
        self.sim, self.rng, self.start, self.end = sim, rng, start, end
        self.oracle = Oracle(start - DAY_MS, end + 8 * DAY_MS)
        self.jobs: list[SimJob] = []

    def _occurrences(self, resolved: Resolved) -> list[int]:
        specs = [resolved.schedule] if resolved.schedule is not None else resolved.schedules
        return sorted({t for spec in specs for t in self.oracle.of(spec)})

    def _record(self, spec: JobSpec, *, before: JobRecord | None, now: int) -> tuple[JobRecord, Resolved, int | None]:
        resolved, schedule = resolve(spec, now_ms=now)
        definition = records.definition_of(
            spec, resolved, incarnation=1, created_at=now, updated_at=now, key=None, request_hash="h"
        )
        head = before.head if before else None
        record = records.record_of(
            definition, schedule, state=JobState.ACTIVE, version=head.version + 1 if head else 1,
            schedule_version=head.schedule_version + 1 if head else 1, schedule_changed_at=now,
        )  # fmt: skip
        return record, resolved, int(schedule.arg) if schedule.kind == "o" else schedule.next_after(now)

    async def create(self) -> None:
        now = self.sim.clock.ms
        spec = random_spec(self.rng, f"job {len(self.jobs)}", now, self.end)
        record, resolved, due = self._record(spec, before=None, now=now)
        if due is None:
            return
        job = derive_job_id(spec.team, spec.name or "", 1)
        assert (await self.sim.store.jobs.put([PutItem(job, 0, due, record.pack())], atomic=True)).ok
        self.jobs.append(SimJob(spec, job, record, Stretch(now, self._occurrences(resolved))))

    async def _present(self, job: SimJob) -> JobRecord | None:
        found = await self.sim.store.jobs.get(job.id)
        return found if isinstance(found, JobRecord) else None

    async def edit(self, job: SimJob) -> None:
        before, now = await self._present(job), self.sim.clock.ms
        if before is None or before.head.state is not JobState.ACTIVE:
            return
        spec = JobSpec(**{
            **{f: getattr(job.spec, f) for f in ("name", "target", "misfire_policy", "misfire")},
            **random_schedules(self.rng, now, self.end),
        })  # fmt: skip
        record, resolved, due = self._record(spec, before=before, now=now)
        if due is None:
            return
        assert (
            await self.sim.store.jobs.put([PutItem(job.id, before.head.version, due, record.pack())], atomic=True)
        ).ok
        job.stretches.append(Stretch(now, self._occurrences(resolved)))

    async def delete(self, job: SimJob) -> None:
        if (await self.sim.store.jobs.remove(job.id)).tag == "ok":
            job.deleted_at = self.sim.clock.ms

    async def pause(self, job: SimJob, *, until: int | None, missed: MisfirePolicy | None) -> None:
        now = self.sim.clock.ms
        if (await self.sim.store.jobs.pause(job.id, until=until, missed=missed, note="why not")).tag == "ok":
            stretch = job.stretches[-1]
            job.stretches.append(Stretch(now, stretch.occurrences, True, missed))
            if until is not None:
                job.stretches.append(Stretch(until, stretch.occurrences))

    async def resume(self, job: SimJob, missed: MisfirePolicy | None) -> None:
        before, now = await self._present(job), self.sim.clock.ms
        if before is None or before.head.state is not JobState.PAUSED:
            return
        due, settled = resolve_resumed(before.head, load(before.definition), missed, now=now)
        assert (
            await self.sim.store.jobs.resume(job.id, expect=before.head.version, due=due, missed=settled)
        ).tag == "ok"
        paused = job.stretches[-1]
        job.stretches[-1] = paused._replace(missed=missed)
        job.stretches.append(Stretch(now, paused.occurrences))


class Told(NamedTuple):
    """What the records say of one job."""

    ran: list[int]
    twice: list[int]
    withdrawn: set[int]
    skipped: list[tuple[int, int, int, str]]


def told(sim: Sim, job: SimJob) -> Told:
    mine = [(r, s) for r, s in sim.ended.items() if r.startswith(job.id)]
    assert all(s.final for _, s in mine), "a run never ended"
    at = {r: int(r.partition(":")[2]) for r, _ in mine}
    return Told(
        sorted(at[r] for r, s in mine if s is RunState.SUCCEEDED),
        sorted(at[r] for r, _ in mine if sim.succeeded[r] > 1),
        {at[r] for r, s in mine if s in (RunState.SKIPPED, RunState.CANCELLED)},
        [(s.first, s.last, s.total, s.reason) for s in sim.skips if s.job == job.id],
    )


def check_accounted(job: SimJob, found: Told, end: int) -> None:
    """Every occurrence has exactly one run or one record of its skip, and nothing else ran."""
    expected, ran = job.expected(end), set(found.ran)
    assert found.twice == []
    assert ran <= set(expected), [format_utc(t) for t in sorted(ran - set(expected))]
    covered = {t for first, last, _, _ in found.skipped for t in expected if first <= t <= last}
    for t in expected:
        assert t in ran or t in covered or t in found.withdrawn, f"{format_utc(t)} is unaccounted for"
    for first, last, total, reason in found.skipped:
        inside = [t for t in expected if first <= t <= last]
        # A range that an edit or a deletion withdrew has a lower bound for a count.
        assert total == len(inside) or (total < len(inside) and reason in ("withdrawn by an edit", "deleted"))
        assert not ran & set(inside) or reason == "paused", "skipped and run"


def expected(job: SimJob, missed: list[int], *, now: int) -> list[int]:
    """Which of the occurrences that were missed by now run, by the job's misfire policy."""
    window = parse_duration(job.spec.misfire.catchup_window) if job.spec.misfire.catchup_window is not None else now
    grace = parse_duration(job.spec.misfire.grace) + job.record.head.window_ms
    if not missed or missed[0] >= now - grace:
        return missed
    wanted = [t for t in missed if t >= now - window]
    policy: MisfirePolicy = job.spec.misfire_policy
    if policy == "run_once":
        return wanted[-1:]
    return [t for t in missed if t > now - grace or (policy == "run_all" and t in wanted)]


@pytest.mark.timeout(7200 if LONG else 240)
async def test_every_occurrence_has_one_run_or_one_recorded_skip(
    anyio_backend: str, redis_url: str, redis_prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = parse_instant("2026-01-01T00:00:00Z" if LONG else "2026-10-14T00:00:00Z")
    end = parse_instant("2027-01-01T00:00:00Z" if LONG else "2026-11-11T00:00:00Z")
    count = int(os.environ.get("SIM_JOBS", 1000 if LONG else 300))
    rng = random.Random(int(os.environ.get("SIM_SEED", "7")))
    sim = Sim(redis_url, prefix=redis_prefix, start_ms=start + ODD_MS, monkeypatch=monkeypatch)
    await sim.open()
    story = Story(sim, rng, start=start, end=end)

    def moment(low: int, high: int) -> int:
        return rng.randrange(low, high) // 900_000 * 900_000 + ODD_MS + rng.randrange(1000)

    span = end - start
    outages: list[tuple[int, int]] = []
    for _ in range(max(6, span // (20 * DAY_MS))):
        a = moment(start + DAY_MS, end - 4 * DAY_MS)
        outages.append((a, a + moment(HOUR_MS // 2, 3 * DAY_MS)))
    plan: list[tuple[int, str, int]] = []
    for n in range(count):
        created = moment(start + HOUR_MS, start + span // 4)
        plan.append((created, "create", n))
        what = rng.random()
        at = moment(created + HOUR_MS, end - 3 * DAY_MS)
        if what < 0.15:
            plan.append((at, "edit", n))
        elif what < 0.3:
            plan += [(at, "pause", n), (moment(at + HOUR_MS, at + 4 * DAY_MS), "resume", n)]
        elif what < 0.4:
            plan.append((at, "pause until", n))
        elif what < 0.5:
            plan.append((at, "delete", n))
    plan.sort()
    outages = [o for i, o in enumerate(sorted(outages)) if i == 0 or o[0] > sorted(outages)[i - 1][1] + DAY_MS]
    numbers: dict[int, SimJob] = {}
    downs = list(outages)

    async def pass_time(until: int) -> None:
        while downs and downs[0][0] < until:
            a, b = downs[0]
            if sim.clock.ms < a:
                await sim.run_until(a)
            if until < b:
                await sim.at(until)
                return
            await sim.at(b)
            downs.pop(0)
        await sim.run_until(until)

    for at, what, n in plan:
        await pass_time(at)
        if what == "create":
            before = len(story.jobs)
            await story.create()
            if len(story.jobs) > before:
                numbers[n] = story.jobs[-1]
        elif n in numbers:
            job = numbers[n]
            missed = rng.choice([None, "skip", "run_once", "run_all"])
            if what == "edit":
                await story.edit(job)
            elif what == "pause":
                await story.pause(job, until=None, missed=None)
            elif what == "pause until":
                await story.pause(job, until=moment(at + HOUR_MS, at + 4 * DAY_MS), missed=missed)
            elif what == "resume":
                await story.resume(job, missed)
            else:
                await story.delete(job)
    await pass_time(end + ODD_MS)
    over = sim.clock.ms
    await sim.drain()

    by_policy = pauses = 0
    for job in story.jobs:
        found = told(sim, job)
        check_accounted(job, found, over)
        ran = set(found.ran)
        for stretch, until in job.spans(over):
            for a, b in outages:
                if (
                    not stretch.paused
                    and stretch.since < a - HOUR_MS
                    and b + HOUR_MS < until
                    and len(job.stretches) == 1
                ):
                    missed = [t for t in stretch.occurrences if a < t <= b]
                    assert [t for t in missed if t in ran] == expected(job, missed, now=b), format_utc(a)
                    by_policy += bool(missed)
            if stretch.paused and not any(a < until + HOUR_MS and stretch.since - HOUR_MS < b for a, b in outages):
                missed = [t for t in stretch.occurrences if stretch.since < t <= until]
                wanted = {"run_once": missed[-1:], "run_all": missed}.get(stretch.missed or "skip", [])
                once = job.record.head.kind == "o" and stretch.missed is None
                if job.deleted_at is None and not once:
                    assert [t for t in missed if t in ran] == wanted, (format_utc(until), stretch.missed)
                    pauses += bool(missed)
    total = sum(len(told(sim, job).ran) for job in story.jobs)
    print(f"{len(story.jobs)} jobs, {total} runs, {sum(s.total for s in sim.skips)} occurrences skipped on record, "
          f"{by_policy} outages of a job and {pauses} pauses checked by policy")  # fmt: skip
    assert total > 10 * len(story.jobs)
    assert by_policy > 50
    assert pauses > 10
    # A run with a window starts within it; any other one at its instant, unless it was late.
    for run, due_at in sim.due_at.items():
        assert due_at >= int(run.partition(":")[2])
    await sim.store.aclose()
