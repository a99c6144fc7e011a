"""What resync writes never tells the ledger that occurrences are settled before it has their runs and skips."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import anyio
import pytest

from rsched.core.ids import JobId, derive_job_id
from rsched.core.jobs.packed import JobHead, JobRecord, unpack_head
from rsched.core.schedule.misfire import MisfireOutcome
from rsched.core.states import JobState
from rsched.recorder.resync.resync import Resync
from rsched.store.jobs import PutItem
from tests.ledger.events import definition
from tests.recorder.one_offs import emptied, rows
from tests.recorder.restored import backup, without_tail, written_again
from tests.recorder.steps import CLOCK, HOUR, InShard, Shard


@pytest.fixture(autouse=True)
def _looks_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rsched.recorder.resync.observation.LOOK_MS", 1)


async def old_job(s: Shard, *, due_in: int, every: int) -> tuple[JobId, int]:
    """One that was made an hour ago, so that watermarks count for it; and its due time (ms)."""
    now = await s.store.clock.read()
    job, d = derive_job_id("default", "a", 1), definition("a", created_at=now - HOUR)
    head = JobHead(JobState.ACTIVE, 1, 1, now - HOUR, "e", f"{now + due_in},{every}", "o", 60_000, d.queue_key)
    assert (await s.store.jobs.put([PutItem(job, 0, now + due_in, JobRecord(head, d).pack())], atomic=True)).ok
    return job, now + due_in


async def gap(s: Shard, url: str) -> Resync:
    """Postgres has lost something, and the recorder has noticed."""
    await s.record()
    kept = backup(url)
    await s.put("of the gap", due_in=HOUR, every=2 * HOUR)
    return await without_tail(s, url, kept)


async def behind_in(resync: Resync, part: str, *, moved: Callable[[], Awaitable[None]]) -> None:
    """Right before that part something moves in Redis, which the recorder does not come to; resync goes on to the end of
    the part, or for some steps.
    """

    def left() -> list[str]:
        return [p.__name__ for p in resync._parts or ()]

    with anyio.fail_after(30):
        while left()[:1] != [part]:
            assert await resync.step()
        await moved()
        for _ in range(100):
            if part in left():
                await resync.step()


async def settled(s: Shard) -> None:
    await s.redis.hset(s.keys.marker, "recovery_grace_until", 0)
    await s.redis.hset(s.keys.restore, "phase", "done")


async def runs_anywhere(s: Shard) -> set[str]:
    return set(await rows(s)) | {run for run, _ in (await s.store.resync.read_runs(cursor=0, count=99))[1]}


async def begun_anew(s: Shard, resync: Resync) -> None:
    """After a loss: what it had read is of no use any more."""
    await settled(s)
    await s.store.resync.request()
    await written_again(s, resync)


@pytest.mark.parametrize("redis", ["lost before the recorder comes to it", "lost after the end"])
def test_no_watermark_is_ahead_of_the_runs_that_were_claimed_before_it(
    shard: InShard, database_url: str, redis: str
) -> None:
    async def body(s: Shard) -> None:
        job, due = await old_job(s, due_in=4000, every=60_000)
        resync = await gap(s, database_url)

        async def claimed() -> None:
            await s.world.claim()
            assert f"{job}:{due}" in await runs_anywhere(s)
            while await s.store.clock.read() <= due:
                await CLOCK.sleep(50)

        await behind_in(resync, "_watermarks", moved=claimed)
        if redis == "lost after the end":
            await written_again(s, resync)
        for _ in range(2):
            await emptied(s)
            assert (await s.store.jobs.get_due_times([job]))[job] <= due or f"{job}:{due}" in await runs_anywhere(s)
            await begun_anew(s, resync)

    shard(body)


@pytest.mark.parametrize("redis", ["lost before the recorder comes to it", "lost after the end"])
def test_no_range_is_ahead_of_the_runs_that_were_paid_from_it(shard: InShard, database_url: str, redis: str) -> None:
    async def body(s: Shard) -> None:
        job, due = await old_job(s, due_in=HOUR, every=HOUR)
        ts = [due - 4 * HOUR, due - 3 * HOUR, due - 2 * HOUR]
        assert (await s.store.jobs.backfill(job, schedule_version=1, ranges=[(ts[0], ts[-1])])).tag == "ok"
        resync = await gap(s, database_url)

        async def paid() -> None:
            (found,) = await s.store.catchup.list_all()
            rest = found._replace(start=ts[2])
            tag = await s.store.catchup.enqueue(found, occurrences=ts[:2], rest=rest, pace_ms=1000, most=9, left=3)
            assert tag == "ok"

        await behind_in(resync, "_ranges", moved=paid)
        if redis == "lost after the end":
            await written_again(s, resync)
        for _ in range(2):
            await emptied(s)
            starts = [r.start for r in await s.store.catchup.list_all()]
            assert starts == [ts[0]] or {f"{job}:{t}" for t in ts[:2]} <= await runs_anywhere(s)
            await begun_anew(s, resync)

    shard(body)


@pytest.mark.parametrize("redis", ["lost before the recorder comes to it", "lost after the end"])
def test_no_resumed_job_is_ahead_of_the_run_for_what_it_missed(shard: InShard, database_url: str, redis: str) -> None:
    async def body(s: Shard) -> None:
        job, due = await old_job(s, due_in=200, every=HOUR)
        assert (await s.store.jobs.pause(job)).tag == "ok"
        resync = await gap(s, database_url)

        async def resumed() -> None:
            while await s.store.clock.read() <= due:
                await CLOCK.sleep(50)
            reply = await s.store.jobs.resume(job, expect=2, due=due + HOUR, missed=MisfireOutcome(run_at=due))
            assert reply.tag == "ok"

        await behind_in(resync, "_definitions", moved=resumed)
        if redis == "lost after the end":
            await written_again(s, resync)
        for _ in range(2):
            await emptied(s)
            (value,) = await s.store.jobs.read_packed([job])
            assert value is not None
            assert unpack_head(value).state is JobState.PAUSED or f"{job}:{due}" in await runs_anywhere(s)
            await begun_anew(s, resync)

    shard(body)
