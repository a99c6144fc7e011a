"""Definitions that are written back: many in one script, by partition, each only over an earlier version."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from rsched.core.ids import JobId, partition_of
from rsched.core.jobs.packed import JobRecord, unpack_job
from rsched.core.states import JobState
from rsched.store.jobs import KEEP, PutItem
from tests.recorder.rollback import another_server, stale_generation
from tests.recorder.steps import CLOCK, HOUR, InShard, Shard

LARGE = {"text": "x" * 5000}


async def value_of(s: Shard, job: JobId) -> JobRecord:
    found = await s.store.jobs.get(job)
    assert isinstance(found, JobRecord)
    return found


async def put_over(s: Shard, job: JobId, record: JobRecord) -> bool:
    return (await s.store.jobs.put([PutItem(job, record.head.version - 1, KEEP, record.pack())], atomic=True)).ok


def changed(record: JobRecord, *, payload: Any = None, **head: Any) -> JobRecord:
    definition = msgspec.structs.replace(record.definition, payload=payload)
    return JobRecord(record.head._replace(**head), definition)


async def about_jobs(s: Shard) -> dict[str, Any]:
    kinds = ("jobs", "body", "due", "heads", "pauses")
    return {k: v for k, v in (await s.world.snapshot()).items() if k.partition(":")[0] in kinds}


def test_all_that_was_lost_comes_back_as_it_was(shard: InShard) -> None:
    async def body(s: Shard) -> None:
        now = await s.store.clock.read()
        for i in range(40):
            await s.put(f"every-{i}", due_in=HOUR - 9 - i)
            await s.put(f"once-{i}", kind="o", due_in=HOUR - i)
        jobs = [await s.put(f"other-{i}", due_in=HOUR - 7) for i in range(6)]
        await s.store.jobs.pause(jobs[0])
        await s.store.jobs.pause(jobs[1], until=now + HOUR)
        await s.store.jobs.remove(jobs[2])
        large = changed(await value_of(s, jobs[3]), payload=LARGE, version=2)
        assert await put_over(s, jobs[3], large)
        await s.record()
        before = await about_jobs(s)
        assert {k.partition(":")[0] for k in before} == {"jobs", "body", "due", "heads", "pauses"}
        for name in [k async for k in s.redis.scan_iter(match=f"{s.keys.prefix}:*")]:
            await s.redis.delete(name)
        await stale_generation(s)
        assert await about_jobs(s) == before

    shard(body)


def test_a_later_version_takes_the_place_of_all_that_an_earlier_one_had(shard: InShard) -> None:
    async def body(s: Shard) -> None:
        now = await s.store.clock.read()
        asleep, awake, large = [await s.put(n, due_in=HOUR - 5) for n in ("asleep", "awake", "large")]
        await s.store.jobs.pause(asleep, until=now + HOUR)
        assert await put_over(s, large, changed(await value_of(s, large), payload=LARGE, version=2))
        assert await s.redis.hexists(s.keys.body(partition_of(large)), large)
        items = [
            (asleep, now + 5, changed(await value_of(s, asleep), version=9, state=JobState.ACTIVE, until=0).pack()),
            (awake, None, changed(await value_of(s, awake), version=9, state=JobState.PAUSED, until=now + 7).pack()),
            (large, now + 9, changed(await value_of(s, large), version=9, schedule_version=2).pack()),
        ]
        assert await s.store.restore.put_jobs(items) == 3
        assert await s.redis.zrange(s.keys.pauses, 0, -1, withscores=True) == [(awake.encode(), now + 7)]
        due = {j: await s.redis.zscore(s.keys.due(partition_of(j)), j) for j in (asleep, awake, large)}
        assert due == {asleep: now + 5, awake: None, large: now + 9}
        assert not await s.redis.hexists(s.keys.body(partition_of(large)), large)
        assert [(await value_of(s, j)).pack() for j in (asleep, awake, large)] == [v for _, _, v in items]

    shard(body)


@pytest.mark.parametrize("value", [b"", b"junk", b"1|a|2", b"1|Z|9|1|1|o|1|o|1|a:b:1\n"])
def test_one_that_cannot_be_read_is_left_out_and_the_others_are_written(shard: InShard, value: bytes) -> None:
    async def body(s: Shard) -> None:
        jobs = [await s.put(n, due_in=HOUR - 5) for n in "abc"]
        before = await s.redis.hget(s.keys.jobs(partition_of(jobs[1])), jobs[1])
        items = [(j, 5, changed(await value_of(s, j), version=2).pack()) for j in jobs]
        items[1] = (jobs[1], 5, value)
        assert await s.store.restore.put_jobs(items) == 2
        assert await s.redis.hget(s.keys.jobs(partition_of(jobs[1])), jobs[1]) == before
        assert [(await value_of(s, j)).head.version for j in jobs] == [2, 1, 2]

    shard(body)


def test_a_pause_outlasts_a_loss_and_ends_when_it_should(shard: InShard) -> None:
    async def body(s: Shard) -> None:
        now = await s.store.clock.read()
        job = await s.put("a", due_in=HOUR - 5)
        await s.store.jobs.pause(job, until=now + 50)
        await s.record()
        await s.redis.delete(s.keys.pauses, s.keys.jobs(partition_of(job)), s.keys.definitions, s.keys.journal)
        await another_server(s)
        await stale_generation(s)
        async with asyncio.timeout(10):
            while await s.store.pauses.list_ended(limit=9) != [job]:
                await CLOCK.sleep(10)
        assert unpack_job((await value_of(s, job)).pack()).head.until == now + 50

    shard(body)


@pytest.mark.parametrize("went_on", [True, False])
def test_a_job_of_which_redis_went_on_by_an_earlier_version_keeps_its_own_due_time(
    shard: InShard, went_on: bool
) -> None:
    async def body(s: Shard) -> None:
        job = await s.put("a")
        record = await value_of(s, job)
        due = (await s.store.jobs.get_due_times([job]))[job]
        if went_on:
            await s.schedule()
        later = record._replace(head=record.head._replace(version=2))
        assert await s.store.restore.put_jobs([(job, due, later.pack())]) == 1
        assert (await s.store.jobs.get_due_times([job]))[job] == (due + HOUR if went_on else due)
        # With another schedule the ledger says when.
        other = record._replace(head=record.head._replace(version=3, schedule_version=2))
        assert await s.store.restore.put_jobs([(job, due, other.pack())]) == 1
        assert (await s.store.jobs.get_due_times([job]))[job] == due

    shard(body)


def test_a_one_off_that_redis_claimed_by_an_earlier_version_is_not_owed_again(shard: InShard) -> None:
    async def body(s: Shard) -> None:
        job = await s.put("a", kind="o")
        record = await value_of(s, job)
        due = (await s.store.jobs.get_due_times([job]))[job]
        await s.schedule()
        later = record._replace(head=record.head._replace(version=2))
        assert await s.store.restore.put_jobs([(job, due, later.pack())]) == 1
        assert await s.store.jobs.get_due_times([job]) == {}

    shard(body)
