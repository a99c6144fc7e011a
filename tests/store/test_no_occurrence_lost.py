"""Whatever order of claims, pauses, resumes, edits and removes: each occurrence expected is one run or one recorded skip."""

from __future__ import annotations

import asyncio
import secrets
from itertools import count

from hypothesis import given, settings
from hypothesis import strategies as st

from rsched.core.ids import JobId, derive_job_id
from rsched.core.jobs.packed import JobRecord, RunEvent, ScheduleKind, SkipEvent
from rsched.core.schedule.misfire import MisfireOutcome, SkippedRange
from rsched.core.schedule.schedule import Interval
from rsched.core.states import JobState
from rsched.store.jobs import PutItem
from tests.store.world import World, record

EVERY = (1_000, 1_700, 30_000)
jobs = st.lists(
    st.tuples(st.sampled_from("oec"), st.integers(-50_000, 4_000), st.sampled_from(EVERY)), min_size=1, max_size=4
)
acts = st.lists(
    st.tuples(st.sampled_from(["claim"] * 4 + ["pause", "resume", "edit", "remove"]), st.integers(0, 3), st.integers(0, 5000)),
    max_size=25,
)  # fmt: skip


class Expected:
    """A job as a caller knows it, and the occurrences that its past schedules expected."""

    def __init__(self, job: JobId, rec: JobRecord, grid: Interval) -> None:
        self.job, self.rec, self.grid = job, rec, grid
        self.since, self.past = grid.anchor_ms - 1, set[int]()
        self.gone = False

    def occurrences(self, to_ms: int) -> set[int]:
        """After `since`, up to and with to_ms."""
        if self.rec.head.kind == "o":
            return {self.grid.anchor_ms} if self.since < self.grid.anchor_ms <= to_ms else set()
        first = max(0, (self.since - self.grid.anchor_ms) // self.grid.every_ms + 1)
        out = set()
        for i in count(first):
            at = self.grid.anchor_ms + i * self.grid.every_ms
            if at > to_ms:
                return out
            out.add(at)
        return out


def shape(kind: ScheduleKind, grid: Interval) -> str:
    return {
        "o": str(grid.anchor_ms),
        "e": f"{grid.anchor_ms},{grid.every_ms}",
        "c": f"C{grid.anchor_ms}x{grid.every_ms}",
    }[kind]


async def fill(w: World, kind: str, grid: Interval) -> None:
    """What is overdue of a calendar that does not reach cannot all be counted by a script: see lua/lib/overdue.lua."""
    if kind == "c":
        after = grid.anchor_ms - 1
        await w.store.partitions.cache_occurrences(
            shape("c", grid), after=after, occurrences=grid.upcoming(after, 100), ended=False
        )


async def claim(w: World, all_expected: list[Expected], *, limit: int, horizon_ms: int) -> bool:
    reply = await w.claim(limit=limit, horizon_ms=horizon_ms)
    for need in reply.needs:
        anchor, every = map(int, need.schedule[1:].split("x"))
        grid = Interval(anchor_ms=anchor, every_ms=every)
        await w.store.partitions.cache_occurrences(
            need.schedule, after=need.after, occurrences=grid.upcoming(need.after, 20), ended=False
        )
    assert not reply.late
    return bool(reply.needs or reply.more or reply.total)


async def act(w: World, o: Expected, verb: str, amount: int) -> None:
    current = await w.store.jobs.get(o.job)
    if not isinstance(current, JobRecord):
        return
    head = current.head
    if verb == "pause":
        await w.store.jobs.pause(o.job)
    elif verb == "remove" and head.state is JobState.ACTIVE:
        reply = await w.store.jobs.remove(o.job)
        o.past |= o.occurrences(reply.now)
        o.gone = True
    elif verb == "resume" and head.state is JobState.PAUSED:
        now = await w.store.clock.read()
        missed = sorted(x for x in o.occurrences(now) if head.paused_from and x >= head.paused_from)
        due = o.grid.next_after(now) if head.kind != "o" else (o.grid.anchor_ms if o.grid.anchor_ms > now else None)
        skipped = MisfireOutcome(SkippedRange(len(missed), missed[0], missed[-1])) if missed else MisfireOutcome()
        assert (await w.store.jobs.resume(o.job, expect=head.version, due=due, missed=skipped)).tag == "ok"
    elif verb == "edit" and head.state is JobState.ACTIVE:
        now = await w.store.clock.read()
        grid = Interval(anchor_ms=now + amount + 50, every_ms=EVERY[amount % 3])
        kind: ScheduleKind = "oec"[amount % 3]  # type: ignore[assignment]
        rec = record(
            "edited",
            now=now,
            kind=kind,
            arg=shape(kind, grid),
            version=head.version + 1,
            schedule_version=head.schedule_version + 1,
            schedule_changed_at=now,
        )
        reply = await w.store.jobs.put([PutItem(o.job, head.version, grid.anchor_ms, rec.pack())], atomic=True)
        assert reply.ok
        await fill(w, kind, grid)
        o.past |= o.occurrences(reply.now)
        o.rec, o.grid, o.since = rec, grid, reply.now


async def scenario(url: str, made: list[tuple[str, int, int]], todo: list[tuple[str, int, int]]) -> None:
    w = World.at(url, prefix="h" + secrets.token_hex(4))
    try:
        await w.open()
        now, expected = await w.store.clock.read(), []
        for i, (kind, offset, every) in enumerate(made):
            grid = Interval(anchor_ms=now + offset, every_ms=every)
            rec = record(f"j{i}", now=now, kind=kind, arg=shape(kind, grid), schedule_changed_at=now + offset - 1)  # type: ignore[arg-type]
            o = Expected(derive_job_id("default", f"j{i}", 1), rec, grid)
            assert (await w.store.jobs.put([PutItem(o.job, 0, grid.anchor_ms, rec.pack())], atomic=True)).ok
            await fill(w, kind, grid)
            expected.append(o)
        for verb, which, amount in todo:
            if verb == "claim":
                await claim(w, expected, limit=1 + amount % 7, horizon_ms=amount)
            else:
                await act(w, expected[which % len(expected)], verb, amount)
        for o in expected:
            await act(w, o, "resume", 0)
        while await claim(w, expected, limit=1000, horizon_ms=1):
            pass
        await verify(w, expected)
    finally:
        async for key in w.client.scan_iter(match=f"{w.keys.prefix}:*", count=1000):
            await w.client.delete(key)
        await w.close()


async def verify(w: World, expected: list[Expected]) -> None:
    events, end = await w.events(), await w.store.clock.read()
    for o in expected:
        score = await w.client.zscore(w.keys.due(int_partition(o.job)), o.job)
        reached = int(score) - 1 if score is not None else end
        expected = o.past | (set() if o.gone else o.occurrences(min(reached, end)))
        runs = {int(e.run.split(":")[1]) for e in events if isinstance(e, RunEvent) and e.run.startswith(o.job)}
        skips = [e for e in events if isinstance(e, SkipEvent) and e.job == o.job]
        skipped = [x for x in expected if x not in runs and sum(s.first <= x <= s.last for s in skips) == 1]
        assert expected - runs == set(skipped)
        assert sum(s.total for s in skips) == len(skipped)


def int_partition(job: JobId) -> int:
    from rsched.core.ids import partition_of

    return partition_of(job)


@settings(max_examples=30, deadline=None)
@given(jobs, acts)
def test_each_occurrence_owed_is_one_run_or_one_recorded_skip(
    redis_url: str, made: list[tuple[str, int, int]], todo: list[tuple[str, int, int]]
) -> None:
    asyncio.run(scenario(redis_url, made, todo))
