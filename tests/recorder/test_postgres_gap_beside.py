"""After Postgres came back from a backup, what jobs and runs have beside them is on record again."""

from __future__ import annotations

from rsched.core.ids import derive_job_id
from rsched.core.jobs.packed import JobHead, JobRecord
from rsched.core.states import JobState
from rsched.store.jobs import PutItem
from tests.ledger.events import definition
from tests.recorder.one_offs import (
    brought_forward,
    emptied,
)
from tests.recorder.restored import backup, without_tail, written_again
from tests.recorder.stepped_shard import CLOCK, HOUR, InShard, Shard


def test_what_jobs_and_runs_have_beside_them_survives_a_loss_of_redis_after_a_loss_of_postgres(
    shard: InShard, database_url: str
) -> None:
    async def body(s: Shard) -> None:
        assert (await s.store.calendars.put("default", "changed", expect=0, entries=["2030-01-01"])).tag == "ok"
        assert (await s.store.calendars.put("default", "deleted", expect=0, entries=["2030-01-01"])).tag == "ok"
        job = await s.put("a", due_in=HOUR, every=2 * HOUR)
        assert (await s.store.jobs.backfill(job, schedule_version=1, ranges=[(1000, 9000)])).tag == "ok"
        await s.record()
        kept = backup(database_url)
        assert (await s.store.calendars.put("default", "changed", expect=1, entries=["2031-01-01"])).tag == "ok"
        assert (await s.store.calendars.put("default", "deleted", expect=1, entries=None)).tag == "ok"
        assert (await s.store.calendars.put("default", "made", expect=0, entries=["2032-02-02"])).tag == "ok"
        assert (await s.store.jobs.trigger(job, suffix="aaaa", repeat_key="", payload=b"\xc3")).tag == "ok"
        assert (await s.store.jobs.backfill(job, schedule_version=1, ranges=[(20_000, 29_000)])).tag == "ok"
        # As a catch_up leaves one that it paid from, and one that it paid to its end.
        (first,) = [r for r in await s.store.catchup.list_all() if r.end == 9000]
        await s.redis.zrem(s.keys.catchup, first.member)
        await s.redis.zadd(s.keys.catchup, {first._replace(start=5000).member: first.score})
        ended = first._replace(start=40_000, end=49_000)
        await s.record()
        resync = await without_tail(s, database_url, kept)
        await s.ledger.database.execute(
            "INSERT INTO catch_ups (shard, job_id, made_at, end_at, start_at, schedule_version, flags, at)"
            " VALUES (%s, %s, %s, %s, %s, 1, '', 1)",
            ("s0", ended.job, ended.made_at, ended.end, ended.start),
        )
        # What can't be read stops nothing.
        for key in (s.keys.calendars, s.keys.payloads):
            await s.redis.hset(key, b"\xff\0", b"junk")
        await s.redis.zadd(s.keys.catchup, {"junk": 1})
        await written_again(s, resync)
        for key in (s.keys.calendars, s.keys.payloads):
            await s.redis.hdel(key, b"\xff\0")
        await s.redis.zrem(s.keys.catchup, "junk")
        hashes = {k: await s.redis.hgetall(k) for k in (s.keys.calendars, s.keys.payloads)}
        assert all(hashes.values())
        ranges = {r._replace(score=0) for r in await s.store.catchup.list_all()}
        assert {r.start for r in ranges} == {5000, 20_000}
        await emptied(s)
        assert {k: await s.redis.hgetall(k) for k in hashes} == hashes
        assert {r._replace(score=0) for r in await s.store.catchup.list_all()} == ranges

    shard(body)


def test_an_occurrence_that_was_claimed_in_the_gap_is_not_owed_again_after_a_loss_of_redis(
    shard: InShard, database_url: str
) -> None:
    async def body(s: Shard) -> None:
        now = await s.store.clock.read()
        job, d = derive_job_id("default", "a", 1), definition("a", created_at=now - HOUR)
        head = JobHead(JobState.ACTIVE, 1, 1, now - HOUR, "e", f"{now + 2000},60000", "o", 60_000, d.queue_key)
        assert (await s.store.jobs.put([PutItem(job, 0, now + 2000, JobRecord(head, d).pack())], atomic=True)).ok
        await s.record()
        kept = backup(database_url)
        await s.world.claim()
        (run,) = [run for run, _ in (await s.store.resync.read_runs(cursor=0, count=9))[1]]
        await brought_forward(s, run)
        await s.store.runs.release(limit=10)
        assert await s.work() == [run]
        await s.record()
        while await s.store.clock.read() <= int(run.rpartition(":")[2]):
            await CLOCK.sleep(50)
        following = (await s.store.jobs.get_due_times([job]))[job]
        await written_again(s, await without_tail(s, database_url, kept))
        await emptied(s)
        assert await s.store.jobs.get_due_times([job]) == {job: following}

    shard(body)
