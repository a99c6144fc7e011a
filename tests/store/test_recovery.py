"""Whom a recovery waits for, what its verbs compare, and that who lost the shard changes nothing about a later one."""

from __future__ import annotations

from typing import Any

import pytest

from rsched.core.errors import ShardClosed
from rsched.core.ids import WorkerId
from rsched.store.restore import RestoreProgress
from tests.support.store_world import World

pytestmark = pytest.mark.anyio
KNOWN, OTHER = WorkerId("w_known"), WorkerId("w_other")


async def another_server(world: World, field: str = "run_id") -> None:
    await world.client.hset(world.keys.marker, field, "another")


async def stale_generation(world: World, *, lost: bool = False) -> None:
    marker = await world.store.recovery.get_marker()
    assert marker is not None
    assert await world.store.recovery.begin(marker.generation + 1, fence=0, lost=lost)


async def unconfirmed(world: World) -> set[str]:
    return {h.decode() for h in await world.client.smembers(world.keys.unconfirmed)}


async def held_ms(world: World) -> int:
    marker = await world.store.recovery.get_marker()
    assert marker is not None
    return marker.recovery_grace_until - marker.closed_at


@pytest.mark.parametrize("field", ["run_id", "repl_id"])
async def test_on_another_server_there_may_be_workers_that_nobody_knows(world: World, field: str) -> None:
    job = await world.queued("a")
    await world.fetch(0, worker=KNOWN, lease_ms=1000)
    await another_server(world, field)
    await stale_generation(world)
    await world.store.recovery.restage(0, lease_ms=1000)
    await world.store.recovery.finish(recovery_grace_ms=60_000)
    assert await held_ms(world) >= 60_000
    assert await world.store.runs.adopt(KNOWN, lease_ms=1000, queues=["default"], items=[]) == []
    # All known ones have said what they hold, and what was due before may still be held by one that came in a lost tail.
    assert (await world.store.runs.release(limit=10)).total == 0
    fresh = await world.put("b", due_in=1)
    await world.claim(fresh)
    while not (await world.store.runs.release(limit=10)).total:
        pass
    assert [r.run for r in (await world.fetch(worker=OTHER)).runs] == [fresh.run]
    # One full lease later.
    await world.client.hset(world.keys.marker, "recovery_grace_until", "1")
    await world.store.runs.release(limit=10)
    assert [r.run for r in (await world.fetch(worker=OTHER)).runs] == [job.run]


async def test_on_the_same_server_with_all_its_writes_only_those_known_are_waited_for(world: World) -> None:
    await world.fetch(0, worker=KNOWN)
    await stale_generation(world)
    assert await unconfirmed(world) == {KNOWN}


@pytest.mark.parametrize("lost", [False, True])
async def test_an_recovery_that_was_not_finished_hands_on_that_there_may_be_others(world: World, lost: bool) -> None:
    if not lost:
        await another_server(world)
    await stale_generation(world, lost=lost)
    await stale_generation(world)
    await stale_generation(world)
    assert "" in await unconfirmed(world)


async def test_who_was_at_work_in_the_state_that_came_back_is_waited_for_however_old_it_is(world: World) -> None:
    now = await world.store.clock.read()
    old = now - 86_400_000
    await world.client.hset(
        world.keys.workers,
        mapping={
            "w_then": f"{old}|default|90000",
            "w_before": f"{old - 100_000}|default|3000",
            "w_long_before": f"{old - 130_000}|default|3000",
        },
    )
    await another_server(world)
    await stale_generation(world)
    assert await unconfirmed(world) == {"", "w_then", "w_before"}
    # One says what it holds; the recovery is not finished, and begins again.
    await world.store.runs.adopt(WorkerId("w_before"), lease_ms=3000, queues=["default"], items=[])
    await stale_generation(world)
    await world.store.recovery.finish(recovery_grace_ms=3000)
    assert await held_ms(world) >= 90_000


async def test_a_worker_that_fell_silent_is_not_waited_for_on_the_same_server(world: World) -> None:
    now = await world.store.clock.read()
    await world.client.hset(world.keys.workers, "w_silent", f"{now - 130_000}|default|3000")
    await stale_generation(world)
    assert await unconfirmed(world) == set()


async def test_a_due_time_is_moved_on_only_while_all_is_as_the_caller_saw_it(world: World) -> None:
    s = world.store
    jobs = [await world.put(f"j{i}", kind="e", due_in=-1000 * i) for i in range(7)]
    paused = await world.put("paused", kind="e")
    await s.jobs.pause(paused.id)
    await stale_generation(world)
    moved, gone, version, due, earlier, same, missing = jobs
    await world.client.hdel(world.keys.jobs(missing.p), missing.id)
    before = await world.snapshot()
    items: list[Any] = [
        (moved.id, 1, moved.due, moved.due + 60_000),
        (gone.id, 1, gone.due, None),
        (version.id, 2, version.due, version.due + 60_000),
        (due.id, 1, due.due - 1, due.due + 60_000),
        (earlier.id, 1, earlier.due, earlier.due - 1),
        (same.id, 1, same.due, same.due),
        (missing.id, 1, missing.due, missing.due + 60_000),
        (paused.id, 2, paused.due, paused.due + 60_000),
    ]
    assert sorted(await s.restore.move_due_times(items)) == sorted([moved.id, gone.id])
    dues = await s.jobs.get_due_times([j.id for j in jobs])
    assert dues == {j.id: j.due for j in jobs if j is not gone} | {moved.id: moved.due + 60_000}
    assert await world.client.zscore(world.keys.heads, moved.p) == moved.due + 60_000
    assert await world.client.zscore(world.keys.heads, gone.p) is None
    assert set(await world.snapshot()) - set(before) == set()
    # A repeat finds nothing as it was.
    assert await s.restore.move_due_times(items[:2]) == []
    await s.recovery.finish(recovery_grace_ms=0)
    with pytest.raises(ShardClosed):
        await s.restore.move_due_times(items[:1])


async def test_how_far_a_restoration_is_can_be_said_by_its_own_generation_alone(world: World) -> None:
    mine = RestoreProgress("jobs", 1, 5, 10, 0, 7)
    await world.store.restore.set_progress(mine)
    assert await world.store.restore.get_progress() == mine
    await stale_generation(world)
    with pytest.raises(ShardClosed):
        await world.store.restore.set_progress(mine._replace(phase="done"))
    later = RestoreProgress("runs", 2, 0, 10, 0, 9)
    await world.store.restore.set_progress(later)
    await world.store.recovery.finish(recovery_grace_ms=0)
    with pytest.raises(ShardClosed):
        await world.store.restore.set_progress(mine._replace(phase="done"))
    assert await world.store.restore.get_progress() == later


async def test_definitions_of_an_earlier_generations_restore_are_refused(world: World) -> None:
    job = await world.put("a", kind="e")
    await stale_generation(world)
    await world.store.recovery.finish(recovery_grace_ms=0)
    await world.client.hdel(world.keys.jobs(job.p), job.id)
    # Whatever else this process has learned of the later one.
    assert await world.store.restore.put_jobs([], generation=2) == 0
    with pytest.raises(ShardClosed):
        await world.store.restore.put_jobs([(job.id, job.due, job.record.pack())], generation=1)
    assert await world.store.jobs.get(job.id) is None


@pytest.mark.parametrize("whole", [False, True])
async def test_after_a_planned_stop_there_is_nobody_that_nobody_knows(world: World, whole: bool) -> None:
    await world.fetch(0, worker=KNOWN, lease_ms=1000)
    await world.store.recovery.close()
    with pytest.raises(ShardClosed):
        await world.fetch(1)
    await another_server(world)
    marker = await world.store.recovery.get_marker()
    assert marker is not None
    assert marker.state == "closed"
    assert await world.store.recovery.begin(marker.generation + 1, fence=0, whole=whole)
    assert await unconfirmed(world) == ({KNOWN} if whole else {KNOWN, ""})


async def test_a_loss_outweighs_a_planned_stop(world: World) -> None:
    await world.store.recovery.close()
    assert await world.store.recovery.begin(2, fence=0, whole=True, lost=True)
    assert await unconfirmed(world) == {""}


async def test_while_what_was_lost_is_not_back_no_attempt_is_told_that_its_run_is_gone(world: World) -> None:
    _, run = await world.running()
    await world.client.delete(world.keys.runs, world.keys.leases)
    await stale_generation(world, lost=True)
    with pytest.raises(ShardClosed):
        await world.store.runs.adopt(
            KNOWN, lease_ms=1000, queues=["default"], items=[(run.run, run.attempt, run.fence)]
        )
    await world.store.recovery.finish(recovery_grace_ms=1000)
    # Of its job Redis still knows, so that it is taken on.
    tags = await world.store.runs.adopt(
        KNOWN, lease_ms=1000, queues=["default"], items=[(run.run, run.attempt, run.fence)]
    )
    assert tags == ["ok"]


@pytest.mark.parametrize("planned", [True, False])
async def test_an_recovery_within_a_hold_goes_on_waiting_for_whom_nobody_knows(world: World, planned: bool) -> None:
    await world.open(2, recovery_grace_ms=60_000, lost=True)
    if planned:
        await world.store.recovery.close()
    assert await world.store.recovery.begin(3, fence=0, whole=planned)
    assert "" in await unconfirmed(world)
