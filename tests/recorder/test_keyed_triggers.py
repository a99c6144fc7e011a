"""A loss of Redis does not make a second run of a trigger that is repeated with its key."""

from __future__ import annotations

import pytest

from rsched.core.errors import ShardClosed
from rsched.core.ids import JobId, RunId, manual_run_id_of, short_hash
from rsched.core.jobs.packed import KEYED_FOR_MS, TriggerEvent
from rsched.recorder.housekeeping import Housekeeping
from rsched.recorder.recovery.background import BackgroundRestore
from rsched.recorder.recovery.progress import Progress
from rsched.recorder.recovery.recovery import Recovery
from rsched.recorder.recovery.triggers import KeyedTriggers
from tests.recorder.one_offs import emptied
from tests.recorder.restored import backup, without_tail, written_again
from tests.recorder.rollback import another_server, back_to, snapshot, stale_generation
from tests.recorder.stepped_shard import CLOCK, HOUR, InShard, Shard


async def trigger(s: Shard, job: JobId, *, key: str = "k") -> tuple[str, RunId | None]:
    # As the API derives it: two of one ms have ids of their own.
    reply = await s.store.jobs.trigger(job, suffix=short_hash(key), repeat_key=key)
    return reply.tag, reply.run


async def is_repeated(s: Shard, job: JobId, run: RunId | None, *, key: str = "k") -> None:
    assert await trigger(s, job, key=key) == ("already", run)


@pytest.mark.parametrize("ended", [False, True], ids=["open", "ended"])
def test_a_repeat_after_a_total_loss_gives_the_same_run(shard: InShard, ended: bool) -> None:
    async def body(s: Shard) -> None:
        job = await s.put("a", due_in=HOUR)
        tag, run = await trigger(s, job)
        assert (tag, run is not None) == ("ok", True)
        if ended:
            await s.drain()
            assert s.done[str(run)] == 1
        await s.record()
        await emptied(s)
        await is_repeated(s, job, run)
        assert (await trigger(s, job, key="l"))[0] == "ok"
        await s.drain()
        assert s.done[str(run)] == 1

    shard(body)


def test_a_repeat_after_a_return_to_an_older_state_gives_the_same_run(shard: InShard) -> None:
    async def body(s: Shard) -> None:
        job = await s.put("a", due_in=HOUR)
        _, before = await trigger(s, job, key="before")
        await s.record()
        then = await snapshot(s)
        _, after = await trigger(s, job, key="after")
        await s.record()
        await back_to(s, then)
        await stale_generation(s)
        await is_repeated(s, job, before, key="before")
        await is_repeated(s, job, after, key="after")

    shard(body)


def test_a_repeat_after_a_restart_without_loss_is_answered_by_redis_alone(shard: InShard) -> None:
    async def body(s: Shard) -> None:
        job = await s.put("a", due_in=HOUR)
        _, run = await trigger(s, job)
        await another_server(s)
        await stale_generation(s)
        await is_repeated(s, job, run)

    shard(body)


async def being_rebuilt(s: Shard) -> BackgroundRestore:
    await s.redis.delete(*[key async for key in s.redis.scan_iter(s.keys.prefix + ":*")])
    s.__post_init__()
    opened = await Recovery(s.store, s.ledger, shard=s.shard, clock=CLOCK, lease_ms=1000).ensure_open(
        list(s.streams.values())
    )
    assert opened.background_restore is not None
    s.__post_init__()
    return opened.background_restore


def test_until_the_restoration_is_told_done_the_ledger_has_all_that_redis_lacks(shard: InShard) -> None:
    async def body(s: Shard) -> None:
        job = await s.put("a", due_in=2 * HOUR)
        runs = {f"k{n}": (await trigger(s, job, key=f"k{n}"))[1] for n in range(5)}
        await s.record()
        background_restore = await being_rebuilt(s)
        progress = Progress(s.store, background_restore)
        assert await s.redis.zcard(s.keys.triggers) == 0
        more = True
        while more:
            since = await s.store.clock.read() - KEYED_FOR_MS
            for key, run in runs.items():
                at = await s.ledger.recovery.triggers.triggered_at(job, key, since=since)
                assert at is not None
                assert manual_run_id_of(job, at, short_hash(key)) == run
            repair = await s.store.restore.get_progress()
            assert repair is not None
            assert repair.phase == "jobs"
            more = await progress.step()
        repair = await s.store.restore.get_progress()
        assert repair is not None
        assert repair.phase == "done"
        for key, run in runs.items():
            await is_repeated(s, job, run, key=key)

    shard(body)


def test_what_was_triggered_beside_a_restore_stays_as_redis_has_it(
    shard: InShard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rsched.recorder.recovery.triggers._PAGE", 2)

    async def body(s: Shard) -> None:
        job = await s.put("a")
        old = await s.store.clock.read() - 5000
        await s.ledger.write.resync(s.shard, [TriggerEvent(job, f"k{n}", old) for n in range(5)])
        await s.record()
        background_restore = await being_rebuilt(s)
        assert await s.store.jobs.get(job) is not None
        # By one who does not ask the ledger.
        _, run = await trigger(s, job, key="k3")
        while await background_restore.step():
            pass
        await is_repeated(s, job, run, key="k3")
        members = await s.redis.zrange(s.keys.triggers, 0, -1)
        assert sorted(members) == [f"{job}|k{n}".encode() for n in range(5)]

    shard(body)


def test_keys_past_a_day_do_not_come_back_and_housekeeping_deletes_them(
    shard: InShard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rsched.recorder.housekeeping._TRIGGERS", 2)

    async def body(s: Shard) -> None:
        job = await s.put("a", due_in=HOUR)
        now = await s.store.clock.read()
        old = [TriggerEvent(job, f"old{n}", now - KEYED_FOR_MS - 2 * HOUR) for n in range(5)]
        await s.ledger.write.resync(s.shard, [*old, TriggerEvent(job, "new", now - KEYED_FOR_MS + HOUR)])
        await s.record()
        await emptied(s)
        assert await s.redis.zrange(s.keys.triggers, 0, -1) == [f"{job}|new".encode()]
        house = Housekeeping(s.store, s.ledger, shard=s.shard, clock=CLOCK, forget_after_s=600)
        for _ in range(100):
            if not await house.step():
                break
        left = await s.ledger.recovery.triggers.page(s.shard, after=("", ""), since=0, limit=10)
        assert [key for _, key, _ in left] == ["new"]

    shard(body)


def test_a_restore_of_an_earlier_recovery_writes_no_keys(shard: InShard) -> None:
    async def body(s: Shard) -> None:
        job = await s.put("a", due_in=HOUR)
        await trigger(s, job)
        await s.record()
        earlier = int(s.store.connection.generation)
        await emptied(s)
        await s.redis.delete(s.keys.triggers)
        with pytest.raises(ShardClosed):
            await KeyedTriggers(s.store, s.ledger, shard=s.shard, generation=earlier).step()
        assert await s.redis.zcard(s.keys.triggers) == 0

    shard(body)


def test_keys_that_postgres_lost_are_written_again_and_outlast_redis_then(shard: InShard, database_url: str) -> None:
    async def body(s: Shard) -> None:
        job = await s.put("a", due_in=HOUR)
        await s.record()
        kept = backup(database_url)
        _, run = await trigger(s, job)
        await s.record()
        resync = await without_tail(s, database_url, kept)
        assert await s.ledger.recovery.triggers.triggered_at(job, "k", since=0) is None
        await written_again(s, resync)
        await emptied(s)
        await is_repeated(s, job, run)

    shard(body)
