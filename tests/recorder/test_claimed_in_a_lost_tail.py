"""A Redis that comes back in an older state owes again only what the ledger knows nothing about."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from itertools import count

import pytest

from rsched.core.ids import JobId, RunId, derive_job_id, partition_of
from rsched.core.jobs.model import ScheduleSpec
from rsched.core.jobs.packed import JobHead, JobRecord
from rsched.core.schedule.schedule import load
from rsched.core.states import JobState, RunState
from rsched.scheduler.catch_up import CatchUp
from rsched.store.jobs import PutItem
from rsched.store.run_values import FinishItem
from tests.ledger.events import definition
from tests.recorder.rollback import another_server, back_to, snapshot, stale_generation
from tests.recorder.stepped_shard import CLOCK, HOUR, LOG, WORKER, InShard, Shard

KINDS = ["once", "interval", "seconds", "cron"]


async def put(
    s: Shard, kind: str, *, name: str = "a", misfire: str = "o", grace: int = 2 * HOUR, overlap: str = "", version: int = 1,
    since: int = 0,
) -> JobId:  # fmt: skip
    """A job with one occurrence that is due; of `seconds`, several. since: ms ago, when it came due first."""
    now = await s.store.clock.read()
    job = derive_job_id("default", name, 1)
    due = {"once": now, "interval": now - since, "seconds": now - 4000, "cron": now // HOUR * HOUR}[kind]
    anchor = datetime.fromtimestamp(due / 1000, UTC).isoformat(timespec="milliseconds")
    spec = {
        "once": ScheduleSpec(at=anchor),
        "interval": ScheduleSpec(every="1h", anchor=anchor),
        "seconds": ScheduleSpec(every="1s", anchor=anchor),
        "cron": ScheduleSpec(cron="0 * * * *", timezone="UTC"),
    }[kind]
    policy = {"o": "run_once", "a": "run_all", "s": "skip"}[misfire]
    d = definition(name, schedule=spec, misfire_policy=policy, created_at=now, updated_at=now)
    every = 1000 if kind == "seconds" else HOUR
    arg = {"once": str(due), "cron": "hourly"}.get(kind, f"{due},{every}")
    assert kind != "cron" or load(d).next_after(due - 1) == due
    head = JobHead(JobState.ACTIVE, version, version, due - 1, {"once": "o", "cron": "c"}.get(kind, "e"), arg,  # type: ignore[arg-type]
                   misfire, grace, d.queue_key, overlap=overlap)  # fmt: skip
    assert (await s.store.jobs.put([PutItem(job, version - 1, due, JobRecord(head, d).pack())], atomic=True)).ok
    return job


async def started(s: Shard) -> list[tuple[RunId, int]]:
    s.request += 1
    found = await s.store.runs.fetch(WORKER, request=s.request, slots=100, lease_ms=60_000, queues=["default"])
    return [(r.run, r.fence) for r in found.runs]


async def finished(s: Shard, runs: list[tuple[RunId, int]], state: RunState) -> None:
    s.request += 1
    now = await s.store.clock.read()
    items = [FinishItem(run, fence, state, 0, now, "") for run, fence in runs]
    assert set(await s.store.runs.finish(WORKER, request=s.request, items=items)) == {"ok"}


async def ended(s: Shard, how: RunState | None) -> set[RunId]:
    """What is due is claimed, and ends like that; None: it goes on."""
    await s.schedule()
    if how is RunState.CANCELLED:
        runs = {RunId(run.decode()) for run in await s.redis.hkeys(s.keys.runs)}
        for run in runs:
            await s.store.runs.cancel(run)
        await s.work()
        return runs
    attempts = await started(s)
    if how is not None:
        await finished(s, attempts, how)
    return {run for run, _ in attempts}


async def recorded_skips(s: Shard) -> Counter[tuple[str, int, int]]:
    rows = await s.ledger.database.rows("SELECT job_id, ms_of(first_at), ms_of(last_at) FROM skips", ())
    return Counter((job, int(first), int(last)) for job, first, last in rows)


@pytest.mark.parametrize("how", [RunState.SUCCEEDED, RunState.DEAD, RunState.CANCELLED])
@pytest.mark.parametrize("kind", KINDS)
def test_what_was_claimed_and_ended_is_not_claimed_again(shard: InShard, kind: str, how: RunState) -> None:
    async def body(s: Shard) -> None:
        job = await put(s, kind)
        await s.record()
        then = await snapshot(s)
        runs = await ended(s, how)
        assert len(runs) >= (5 if kind == "seconds" else 1)
        await s.record()
        after = await s.redis.zscore(s.keys.due(partition_of(job)), job)
        await back_to(s, then)
        await stale_generation(s)
        assert await s.redis.zscore(s.keys.due(partition_of(job)), job) == after
        heads = await s.redis.zscore(s.keys.heads, str(partition_of(job)))
        assert heads == after
        await s.drain()
        assert not runs & set(s.done)

    shard(body)


@pytest.mark.parametrize("how", [None, RunState.RETRYING])
@pytest.mark.parametrize("kind", KINDS)
def test_what_was_claimed_and_goes_on_is_run_once(shard: InShard, kind: str, how: RunState | None) -> None:
    async def body(s: Shard) -> None:
        job = await put(s, kind)
        await s.record()
        then = await snapshot(s)
        runs = await ended(s, how)
        await s.record()
        after = await s.redis.zscore(s.keys.due(partition_of(job)), job)
        await back_to(s, then)
        await stale_generation(s)
        assert await s.redis.zscore(s.keys.due(partition_of(job)), job) == after
        await s.drain()
        assert {run: n for run, n in s.done.items() if run in runs} == dict.fromkeys(runs, 1)

    shard(body)


@pytest.mark.parametrize("kind", KINDS)
def test_what_the_ledger_does_not_know_stays_due(shard: InShard, kind: str) -> None:
    async def body(s: Shard) -> None:
        await put(s, "seconds", name="known")
        await s.record()
        then = await snapshot(s)
        known = await ended(s, RunState.SUCCEEDED)
        await s.record()
        # Into the older state: a job that nobody recorded anything of but its definition.
        await back_to(s, then)
        await s.store.recovery.begin((await marker(s)) + 1, fence=0)
        await s.store.recovery.finish(recovery_grace_ms=0)
        await put(s, kind, name="unknown")
        then = await snapshot(s)
        lost = await ended(s, RunState.SUCCEEDED)
        mine = {run for run in lost if run.startswith(derive_job_id("default", "unknown", 1))}
        assert mine
        await back_to(s, then)
        await s.redis.delete(s.keys.journal)
        await stale_generation(s)
        await s.drain()
        assert {run: s.done[run] for run in mine} == dict.fromkeys(mine, 1)
        assert not known & set(s.done)

    shard(body)


async def marker(s: Shard) -> int:
    found = await s.store.recovery.get_marker()
    assert found is not None
    return found.generation


@pytest.mark.parametrize("emptied", [False, True], ids=["older", "emptied"])
@pytest.mark.parametrize("misfire", ["s", "o", "a"])
def test_what_was_settled_as_too_late_is_settled_once(shard: InShard, misfire: str, emptied: bool) -> None:
    async def body(s: Shard) -> None:
        catch_up = CatchUp(s.store, per_s=100, share=1, schedulers=lambda: 1, clock=CLOCK, log=LOG)

        async def drain() -> None:
            await s.drain()
            while await s.redis.zcard(s.keys.catchup):
                await catch_up.step()
                await s.drain()

        # Six occurrences, the latest half an hour ago.
        job = await put(s, "interval", misfire=misfire, grace=60_000, since=5 * HOUR + HOUR // 2)
        await s.record()
        then = await snapshot(s)
        await drain()
        await s.record()
        runs, skips = {"s": (0, 1), "o": (1, 1), "a": (6, 0)}[misfire]
        assert (len(s.done), len(await recorded_skips(s))) == (runs, skips)
        after = await s.redis.zscore(s.keys.due(partition_of(job)), job)
        await back_to(s, {} if emptied else then)
        await stale_generation(s)
        assert await s.redis.zscore(s.keys.due(partition_of(job)), job) == after
        await drain()
        await s.record()
        assert set(s.done.values()) <= {1}
        assert (len(s.done), len(await recorded_skips(s))) == (runs, skips)

    shard(body)


@pytest.mark.parametrize("emptied", [False, True], ids=["older", "emptied"])
def test_a_range_that_was_not_paid_out_owes_its_occurrences_alone(shard: InShard, emptied: bool) -> None:
    async def body(s: Shard) -> None:
        job = await put(s, "interval", misfire="a", grace=60_000, since=5 * HOUR + HOUR // 2)
        await s.record()
        then = await snapshot(s)
        await s.schedule()
        await s.record()
        (member,) = await s.redis.zrange(s.keys.catchup, 0, -1)
        await back_to(s, {} if emptied else then)
        await stale_generation(s)
        assert await s.redis.zrange(s.keys.catchup, 0, -1) == [member]
        assert (await s.redis.zscore(s.keys.due(partition_of(job)), job) or 0) > await s.store.clock.read()
        await s.schedule()
        assert await s.redis.zrange(s.keys.catchup, 0, -1) == [member]

    shard(body)


def test_an_occurrence_skipped_because_another_run_was_open_is_not_owed_again(shard: InShard) -> None:
    async def body(s: Shard) -> None:
        await put(s, "seconds", overlap="s")
        await s.record()
        then = await snapshot(s)
        await s.schedule()
        (run,) = await started(s)
        await finished(s, [run], RunState.SUCCEEDED)
        await s.record()
        rows = await s.ledger.database.rows("SELECT run_id FROM runs WHERE status = 'SKIPPED'", ())
        skipped = {r[0] for r in rows}
        assert len(skipped) >= 4
        await back_to(s, then)
        await stale_generation(s)
        await s.drain()
        assert not (skipped | {run[0]}) & set(s.done)

    shard(body)


def test_a_run_that_an_edit_withdrew_is_owed_under_the_edited_schedule(shard: InShard) -> None:
    async def body(s: Shard) -> None:
        job = await s.put("a", due_in=1500)
        await s.schedule()
        (run,) = [RunId(r.decode()) for r in await s.redis.hkeys(s.keys.runs)]
        due = int(run.rpartition(":")[2])
        d = definition("a", schedule=ScheduleSpec(every="1h"))
        head = JobHead(
            JobState.ACTIVE, 2, 2, await s.store.clock.read(), "e", f"{due},{HOUR}", "o", 60_000, d.queue_key
        )
        assert (await s.store.jobs.put([PutItem(job, 1, due, JobRecord(head, d).pack())], atomic=True)).ok
        await s.record()
        then = await snapshot(s)
        while not (await s.store.runs.release(limit=9)).total:
            pass
        assert await started(s) == []
        await s.record()
        found = await s.ledger.runs.get(run)
        assert found is not None
        assert found.record.state is RunState.SKIPPED
        await back_to(s, then)
        await stale_generation(s)
        assert await s.redis.zscore(s.keys.due(partition_of(job)), job) == due
        await s.drain()
        assert s.done == {run: 1}

    shard(body)


@pytest.mark.parametrize("forgotten", [False, True], ids=["known", "forgotten"])
@pytest.mark.parametrize("change", ["removed", "paused", "edited"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_job_that_was_changed_in_the_tail_is_not_run_as_it_was(
    shard: InShard, kind: str, change: str, forgotten: bool
) -> None:
    async def body(s: Shard) -> None:
        job = await put(s, kind)
        await s.record()
        then = await snapshot(s)
        if change == "removed":
            assert (await s.store.jobs.remove(job)).tag == "ok"
        elif change == "paused":
            assert (await s.store.jobs.pause(job)).tag == "ok"
        else:
            d = definition("a", schedule=ScheduleSpec(every="1h"))
            now = await s.store.clock.read()
            head = JobHead(JobState.ACTIVE, 2, 2, now, "e", f"{now + HOUR},{HOUR}", "o", HOUR, d.queue_key)
            assert (await s.store.jobs.put([PutItem(job, 1, now + HOUR, JobRecord(head, d).pack())], atomic=True)).ok
        await s.record()
        if forgotten:
            await s.ledger.recovery.unfinished.mark_forgotten([(job, 2)])
        await back_to(s, then)
        await another_server(s)
        s.__post_init__()
        await stale_generation(s, all_back=False)
        await s.drain()
        assert s.done == {}
        states = {"removed": JobState.DELETED, "paused": JobState.PAUSED, "edited": JobState.ACTIVE}
        head_ = await s.store.jobs.get_head(job)
        assert head_ is not None
        assert (head_.state, head_.version) == (states[change], 2)
        if forgotten:
            assert not (await s.ledger.recovery.compare.jobs([job]))[job].forgotten

    shard(body)


def test_a_pause_that_ended_in_the_tail_does_not_end_again(shard: InShard) -> None:
    async def body(s: Shard) -> None:
        job = await put(s, "interval")
        assert (await s.store.jobs.pause(job, until=await s.store.clock.read() + 1000)).tag == "ok"
        await s.record()
        then = await snapshot(s)
        assert (await s.store.jobs.resume(job, expect=2, due=await s.store.clock.read() + HOUR)).tag == "ok"
        await s.record()
        await back_to(s, then)
        await stale_generation(s, all_back=False)
        assert await s.redis.zcard(s.keys.pauses) == 0
        head = await s.store.jobs.get_head(job)
        assert head is not None
        assert (head.state, head.version) == (JobState.ACTIVE, 3)

    shard(body)


def test_pages_of_one_partition_and_of_many_are_looked_at(shard: InShard) -> None:
    async def body(s: Shard) -> None:
        names = (name for name in map(str, count()) if partition_of(derive_job_id("default", name, 1)) == 7)
        crowd = [await put(s, "seconds", name=next(names)) for _ in range(120)]
        spread = [await put(s, "seconds", name=f"n{i}") for i in range(150)]
        await s.record()
        then = await snapshot(s)
        runs: set[RunId] = set()
        await s.schedule()
        while got := await started(s):
            await finished(s, got, RunState.SUCCEEDED)
            runs.update(run for run, _ in got)
        assert len(runs) >= 5 * 270
        await s.record()
        dues = {job: await s.redis.zscore(s.keys.due(partition_of(job)), job) for job in crowd + spread}
        await back_to(s, then)
        await stale_generation(s)
        assert {job: await s.redis.zscore(s.keys.due(partition_of(job)), job) for job in crowd + spread} == dues
        await s.drain()
        assert not runs & set(s.done)

    shard(body)


@pytest.mark.parametrize("kind", KINDS)
def test_an_recovery_that_goes_on_with_one_that_was_not_finished_repairs_the_same(shard: InShard, kind: str) -> None:
    async def body(s: Shard) -> None:
        job = await put(s, kind)
        await s.schedule()
        await s.record()
        then = await snapshot(s)
        # Of the older state some are claimed, and all end after it.
        attempts = await started(s)
        runs = {run for run, _ in attempts}
        await finished(s, attempts, RunState.SUCCEEDED)
        await s.record()
        await back_to(s, then)
        generation, fence = await s.ledger.recovery.generations.next(s.shard, redis_fence=0)
        assert await s.store.recovery.begin(generation, fence=fence, lost=True)
        await stale_generation(s)
        assert not runs & {run.decode() for run in await s.redis.hkeys(s.keys.runs)}
        await s.drain()
        assert runs
        assert not runs & set(s.done)
        assert {run[:15] for run in runs} == {job}

    shard(body)
