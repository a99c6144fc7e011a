"""Resync that was interrupted is gone on with, by whoever has the shard's lock, and is over when nothing is left to do."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import pytest

from rsched.core.errors import Unavailable
from rsched.core.ids import JobId, partition_of
from rsched.core.settings import RecorderSettings
from rsched.core.states import JobState
from rsched.recorder.resync.ended_in_gap import Ended
from rsched.recorder.resync.resync import Resync
from rsched.recorder.shard import ShardRecorder
from rsched.runtime.metrics import ALERTS
from tests.recorder import restored
from tests.recorder.one_offs import put_once, rows
from tests.recorder.restored import Backup, backup, without_tail, written_again
from tests.recorder.rollback import back_to, snapshot, stale_generation
from tests.recorder.stepped_shard import CLOCK, HOUR, InShard, Shard


async def at_work(recorder: ShardRecorder, until: Callable[[], Awaitable[bool]]) -> None:
    """Holds the shard's lock until then."""
    with anyio.fail_after(20):
        async with anyio.create_task_group() as group:
            group.start_soon(recorder.run)
            while not await until():
                await CLOCK.sleep(20)
            group.cancel_scope.cancel()


async def whole(s: Shard) -> None:
    """Redis is open, all is back, and no worker is waited for."""
    await stale_generation(s)
    await s.redis.hset(s.keys.marker, "recovery_grace_until", 0)
    await s.redis.hset(s.keys.restore, "phase", "done")


async def put_in_a_gap(s: Shard, url: str) -> tuple[Backup, JobId]:
    """A backup with one job, and another one that was put after it."""
    await s.put("a", due_in=HOUR, every=2 * HOUR)
    await s.record()
    kept = backup(url)
    return kept, await s.put("of the gap", due_in=HOUR, every=2 * HOUR)


async def flushed(s: Shard) -> None:
    await s.redis.delete(*[key async for key in s.redis.scan_iter(s.keys.prefix + ":*")])


@pytest.mark.parametrize("at", ["idle", "in the middle"])
def test_a_recorder_that_takes_over_goes_on_with_what_one_that_died_began(
    shard: InShard, database_url: str, redis_url: str, monkeypatch: pytest.MonkeyPatch, at: str
) -> None:
    async def body(s: Shard) -> None:
        await s.put("a", due_in=HOUR, every=2 * HOUR)
        await s.record()
        kept = backup(database_url)
        settings = RecorderSettings(database_url=database_url, redis_url=redis_url, prefix=s.keys.prefix, block_ms=50)
        first = ShardRecorder(s.store, s.ledger, shard=s.shard, settings=settings, clock=CLOCK)
        real, reached = s.store.resync.is_requested, anyio.Event()

        async def asked() -> bool:
            reached.set()
            return await real()

        async def away(**_: object) -> Any:
            reached.set()
            raise Unavailable("away")

        async def is_reached() -> bool:
            return reached.is_set()

        async def is_over() -> bool:
            return not await s.store.resync.is_requested()

        with monkeypatch.context() as m:
            if at == "idle":
                m.setattr(s.store.resync, "is_requested", asked)
            else:
                await s.put("of the first gap", due_in=HOUR, every=2 * HOUR)
                await without_tail(s, database_url, kept)
                kept = backup(database_url)
                # Definitions are behind it by then.
                m.setattr(s.store.resync, "read_runs", away)
            await at_work(first, is_reached)
        lost = await s.put("of the gap", due_in=HOUR, every=2 * HOUR)
        await s.record()
        # Another recorder finds the gap, records past it, and is killed.
        await without_tail(s, database_url, kept, quiet=True)
        assert lost not in await s.ledger.recovery.compare.jobs([lost])
        await at_work(first, is_over)
        assert lost in await s.ledger.recovery.compare.jobs([lost])

    shard(body)


def test_a_redis_that_falls_back_into_the_middle_of_it_has_it_taken_up_again(shard: InShard, database_url: str) -> None:
    async def body(s: Shard) -> None:
        kept, _ = await put_in_a_gap(s, database_url)
        resync = await without_tail(s, database_url, kept)
        then = await snapshot(s)
        await written_again(s, resync)
        await back_to(s, then)
        await whole(s)
        assert await s.store.resync.is_requested()
        await written_again(s, resync)

    shard(body)


def test_a_mark_that_redis_loses_meanwhile_is_set_anew(shard: InShard, database_url: str) -> None:
    async def body(s: Shard) -> None:
        kept, lost = await put_in_a_gap(s, database_url)
        resync = await without_tail(s, database_url, kept)
        assert await resync.step()
        await s.store.resync.finish()
        assert await resync.step()
        assert await s.store.resync.is_requested()
        await written_again(s, resync)
        assert lost in await s.ledger.recovery.compare.jobs([lost])
        # Over is over.
        assert not await resync.step()
        assert not await s.store.resync.is_requested()

    shard(body)


def test_a_gap_is_on_record_once_however_often_recording_past_it_fails(
    shard: InShard, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def body(s: Shard) -> None:
        kept, _ = await put_in_a_gap(s, database_url)
        await s.record()
        record, first_part = s.ledger.write.record, s.store.resync.read_calendars
        failed = begun = 0

        async def fails(*args: Any, **kwargs: Any) -> bool:
            nonlocal failed
            failed += 1
            if failed <= 10:
                raise Unavailable("canceling statement due to timeout")
            return await record(*args, **kwargs)

        async def begins(**kwargs: int) -> Any:
            nonlocal begun
            begun += 1
            return await first_part(**kwargs)

        resync: Resync | None = None

        async def patient(s: Shard) -> None:
            nonlocal resync
            resync = s.gap.__self__  # type: ignore[attr-defined]
            more = True
            while more:
                try:
                    more = await s.streams["definitions"].step(block_ms=1)
                except Unavailable:
                    assert await resync.step()
            while await s.streams["journal"].step(block_ms=1):
                pass

        monkeypatch.setattr(s.ledger.write, "record", fails)
        monkeypatch.setattr(s.store.resync, "read_calendars", begins)
        monkeypatch.setattr(restored, "caught_up", patient)
        before = s.store.connection.metrics.number(ALERTS).child("journal_gap").value
        await without_tail(s, database_url, kept)
        told = await s.ledger.database.rows(
            "SELECT stream, count(*) FROM quarantine WHERE kind = 'gap' GROUP BY stream", ()
        )
        assert failed > 10
        assert dict(told)["definitions"] == 1
        assert s.store.connection.metrics.number(ALERTS).child("journal_gap").value - before == sum(n for _, n in told)
        assert begun == 1

    shard(body)


def test_a_gap_that_is_on_record_by_a_recorder_that_died_is_repaired_all_the_same(
    shard: InShard, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def body(s: Shard) -> None:
        kept, lost = await put_in_a_gap(s, database_url)
        await s.record()

        async def dies() -> None:
            raise Unavailable("away")

        with monkeypatch.context() as m:
            m.setattr(s.store.resync, "request", dies)
            with pytest.raises(Unavailable):
                await without_tail(s, database_url, kept)
        (told,) = await s.ledger.database.rows("SELECT count(*) FROM quarantine WHERE kind = 'gap'", ())
        assert told == (1,)
        resync = Resync(s.store, s.ledger, shard=s.shard)
        s.gap = resync.found_gap
        s.__post_init__()
        await restored.caught_up(s)
        await written_again(s, resync)
        assert lost in await s.ledger.recovery.compare.jobs([lost])

    shard(body)


def test_a_job_in_postgres_that_cannot_be_read_stops_nothing(shard: InShard, database_url: str) -> None:
    async def body(s: Shard) -> None:
        junk, ended = [await s.put(name, due_in=HOUR, every=2 * HOUR) for name in ("junk", "ended")]
        await s.record()
        kept = backup(database_url)
        await s.put("of the gap", due_in=HOUR, every=2 * HOUR)
        resync = await without_tail(s, database_url, kept)
        for job in (junk, ended):
            await s.redis.hdel(s.keys.jobs(partition_of(job)), job)
        await s.ledger.database.execute("UPDATE jobs SET value = 'junk' WHERE job_id = %s", (junk,))
        await written_again(s, resync)
        known = await s.ledger.recovery.compare.jobs([junk, ended])
        assert {j: k.state for j, k in known.items()} == {junk: JobState.ACTIVE, ended: JobState.COMPLETED}

    shard(body)


@pytest.mark.parametrize(
    ("part", "read"),
    [("runs", "runs.read_packed"), ("ranges", "catchup.list_all"), ("jobs", "jobs.read_packed")],
    ids=["runs", "ranges", "jobs"],
)
def test_nothing_is_taken_for_ended_by_two_looks_between_which_redis_was_whole(
    shard: InShard, monkeypatch: pytest.MonkeyPatch, part: str, read: str
) -> None:
    async def body(s: Shard) -> None:
        job = await s.put("a", due_in=HOUR, every=2 * HOUR)
        assert (await s.store.jobs.backfill(job, schedule_version=1, ranges=[(1000, 9000)])).tag == "ok"
        run = await put_once(s, "once")
        await s.schedule()
        await s.record()
        before = await rows(s), await s.ledger.recovery.pages.pending_ranges(s.shard)
        part_of_store, verb = read.split(".")
        reads = getattr(s.store, part_of_store)
        real, losses, restore_in_progress = getattr(reads, verb), 0, False

        async def loses(*args: Any) -> Any:
            nonlocal losses, restore_in_progress
            if restore_in_progress or losses == 2:
                return await real(*args)
            losses, restore_in_progress = losses + 1, True
            await flushed(s)
            found = await real(*args)
            await whole(s)
            restore_in_progress = False
            return found

        monkeypatch.setattr(reads, verb, loses)
        ended = Ended(s.store, s.ledger, shard=s.shard)
        with anyio.fail_after(30):
            async with s.recording():
                async for _ in getattr(ended, part)():
                    pass
        assert losses == 2
        assert ended.count == {}
        assert (await rows(s), await s.ledger.recovery.pages.pending_ranges(s.shard)) == before
        assert run in before[0]
        assert (await s.ledger.recovery.compare.jobs([job]))[job].state is JobState.ACTIVE

    shard(body)
