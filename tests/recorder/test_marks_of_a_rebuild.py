"""A recorder that goes on with another's background restore counts from where that one began, whatever was claimed meanwhile."""

from __future__ import annotations

import asyncio

import pytest

from rsched.core.errors import ShardClosed, Unavailable
from rsched.core.ids import JobId, derive_job_id, partition_of
from rsched.core.jobs.model import ScheduleSpec
from rsched.core.jobs.packed import JobHead, JobRecord
from rsched.core.states import JobState
from rsched.recorder.recovery.progress import Progress
from rsched.recorder.recovery.recovery import Recovery
from rsched.store.jobs import PutItem
from tests.ledger.events import definition
from tests.recorder.stepped_shard import CLOCK, HOUR, Shard, within


async def put(s: Shard, name: str, *, due: int, every: int, schedule_changed_at: int) -> JobId:
    job = derive_job_id("default", name, 1)
    d = definition(
        name, schedule=ScheduleSpec(every=f"{every}ms"), created_at=schedule_changed_at, updated_at=schedule_changed_at
    )
    head = JobHead(JobState.ACTIVE, 1, 1, schedule_changed_at, "e", f"{due},{every}", "o", 60_000, d.queue_key)
    assert (await s.store.jobs.put([PutItem(job, 0, due, JobRecord(head, d).pack())], atomic=True)).ok
    return job


def of_one_partition() -> tuple[str, str]:
    seen: dict[int, str] = {}
    for n in range(100_000):
        p = partition_of(derive_job_id("default", f"n{n}", 1))
        if p in seen:
            return seen[p], f"n{n}"
        seen[p] = f"n{n}"
    raise AssertionError


def test_what_was_not_back_when_others_were_claimed_is_still_owed(
    database_url: str, redis_url: str, redis_prefix: str
) -> None:
    async def body(s: Shard) -> None:
        first, second = of_one_partition()
        now = await s.store.clock.read()
        waits = await put(
            s, first, due=now - 300_000, every=HOUR, schedule_changed_at=now - HOUR
        )  # came due while Redis was away
        soon = await put(s, second, due=now + 2000, every=5000, schedule_changed_at=now - 1000)
        await s.record()
        await s.ledger.database.execute(
            "INSERT INTO watermarks (shard, partition, ms) VALUES (%s, %s, %s)",
            ("s0", partition_of(waits), now - 600_000),
        )
        await s.redis.delete(*[key async for key in s.redis.scan_iter(redis_prefix + ":*")])
        recovery = Recovery(s.store, s.ledger, shard="s0", clock=CLOCK, lease_ms=60_000)
        opened = await recovery.ensure_open(list(s.streams.values()))
        assert opened.background_restore is not None
        due = s.keys.due(partition_of(waits))
        assert [await s.redis.zscore(due, job) is not None for job in (waits, soon)] == [False, True]
        await s.schedule()
        await s.record()
        assert await s.ledger.recovery.generations.watermarks("s0") == {partition_of(waits): now - 600_000}
        # A scheduler of an earlier release writes them all the same.
        await s.ledger.database.execute("UPDATE watermarks SET ms = %s", (now + 5000,))
        # The recorder ends here; another one goes on with what is not back.
        s.__post_init__()
        opened = await recovery.ensure_open(list(s.streams.values()))
        assert opened.background_restore is not None
        progress = Progress(s.store, opened.background_restore)
        while await progress.step():
            pass
        assert await s.redis.zscore(due, waits) == now - 300_000
        assert await s.ledger.recovery.pages.kept_watermarks("s0") == {}

    asyncio.run(within(redis_url, database_url, redis_prefix, body))


def test_a_recorder_that_lost_its_shard_leaves_the_restoration_of_a_later_recovery_alone(
    database_url: str, redis_url: str, redis_prefix: str
) -> None:
    async def body(s: Shard) -> None:
        now = await s.store.clock.read()
        job = await put(s, "a", due=now + HOUR, every=HOUR, schedule_changed_at=now - HOUR)
        await s.record()
        await s.ledger.database.execute(
            "INSERT INTO watermarks (shard, partition, ms) VALUES (%s, %s, %s)", ("s0", partition_of(job), now)
        )
        rebuilds = []
        for _ in range(2):
            await s.redis.delete(*[key async for key in s.redis.scan_iter(redis_prefix + ":*")])
            s.__post_init__()
            recovery = Recovery(s.store, s.ledger, shard="s0", clock=CLOCK, lease_ms=60_000)
            opened = await recovery.ensure_open(list(s.streams.values()))
            assert opened.background_restore is not None
            rebuilds.append(opened.background_restore)
        earlier, later = (Progress(s.store, background_restore) for background_restore in rebuilds)
        marks = await s.ledger.recovery.pages.kept_watermarks("s0")
        assert marks == {partition_of(job): now}
        for _ in range(3):
            with pytest.raises(ShardClosed):
                await earlier.step()
        repair = await s.store.restore.get_progress()
        assert repair is not None
        assert (repair.phase, repair.generation) == ("jobs", rebuilds[1].generation)
        # Nor does it keep or drop marks, whatever else it comes to.
        await rebuilds[0].end()
        assert await s.ledger.recovery.pages.kept_watermarks("s0") == marks
        while await later.step():
            pass
        repair = await s.store.restore.get_progress()
        assert repair is not None
        assert (repair.phase, await s.ledger.recovery.pages.kept_watermarks("s0")) == ("done", {})
        await s.ledger.recovery.pages.keep_watermarks("s0", generation=rebuilds[0].generation)
        assert await s.ledger.recovery.pages.kept_watermarks("s0") == {}

    asyncio.run(within(redis_url, database_url, redis_prefix, body))


def test_that_all_is_back_is_told_again_until_it_is_heard(database_url: str, redis_url: str, redis_prefix: str) -> None:
    async def body(s: Shard) -> None:
        await s.put("a", due_in=HOUR)
        await s.record()
        await s.redis.delete(*[key async for key in s.redis.scan_iter(redis_prefix + ":*")])
        opened = await Recovery(s.store, s.ledger, shard="s0", clock=CLOCK, lease_ms=0).ensure_open(
            list(s.streams.values())
        )
        assert opened.background_restore is not None
        progress = Progress(s.store, opened.background_restore)
        while not opened.background_restore._last:
            assert await progress.step()
        # The next step is the last one; what is told of it is not heard.
        repair_key = s.keys.restore
        await s.redis.rename(repair_key, repair_key + ":aside")
        await s.redis.set(repair_key, "no hash")
        with pytest.raises(Unavailable):
            await progress.step()
        await s.redis.rename(repair_key + ":aside", repair_key)
        assert not await progress.step()
        repair = await s.store.restore.get_progress()
        assert repair is not None
        assert repair.phase == "done"

    asyncio.run(within(redis_url, database_url, redis_prefix, body))
