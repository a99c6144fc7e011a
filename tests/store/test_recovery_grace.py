"""While a worker that nobody knows may be at what was due before a recovery, nobody else gets it, however late it is paid; nor
a run that may not be open beside it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from rsched.core.ids import RunId, WorkerId, run_id_of
from rsched.core.jobs.packed import RunEvent
from rsched.core.schedule.misfire import MisfireOutcome
from rsched.core.states import RunState
from rsched.store.run_values import FetchedRun, MisfireItem
from tests.support.store_world import Job, W, World

pytestmark = pytest.mark.anyio
HOUR = 3_600_000
LEASE = 60_000
UNKNOWN, OTHER = WorkerId("unknown"), WorkerId("other")
Pays = Callable[[World, Job, int], Awaitable[None]]


async def kept(world: World) -> dict[bytes, bytes]:
    found = {k: await world.client.dump(k) async for k in world.client.scan_iter(match=f"{world.keys.prefix}:*")}
    return {k: v for k, v in found.items() if v is not None}


async def lost_tail(world: World, then: dict[bytes, bytes], *, recovery_grace_ms: int = LEASE) -> int:
    """Redis as it was then, opened anew as after a loss; gives the instant of the closing."""
    async for key in world.client.scan_iter(match=f"{world.keys.prefix}:*"):
        await world.client.delete(key)
    for name, value in then.items():
        await world.client.restore(name, 0, value)
    await opened(world, 2, recovery_grace_ms=recovery_grace_ms)
    marker = await world.store.recovery.get_marker()
    assert marker is not None
    return marker.closed_at


async def opened(world: World, generation: int, *, recovery_grace_ms: int = LEASE) -> None:
    """Above the fences of what was lost, as Postgres sees to."""
    world.store.connection.generation = "0"
    await world.open(generation, recovery_grace_ms=recovery_grace_ms, fence=2**40 * generation, lost=True)


async def holds(world: World) -> bool:
    marker = await world.store.recovery.get_marker()
    assert marker is not None
    return await world.store.clock.read() < marker.recovery_grace_until


async def grace_ends(world: World) -> None:
    await world.client.hset(world.keys.marker, "recovery_grace_until", "1")


async def fetched(world: World, worker: WorkerId) -> dict[RunId, FetchedRun]:
    await world.store.runs.release(limit=100)
    return {r.run: r for r in (await world.fetch(worker=worker)).runs}


async def presented(world: World, run: FetchedRun) -> str:
    items = [(run.run, run.attempt, run.fence)]
    (tag,) = await world.store.runs.adopt(UNKNOWN, lease_ms=LEASE, queues=["default"], items=items)
    return tag


async def pays_out(world: World, job: Job, at: int) -> None:
    found = await world.store.catchup.list_all()
    if not found:
        assert (await world.store.jobs.backfill(job.id, schedule_version=1, ranges=[(at, at)])).tag == "ok"
        found = await world.store.catchup.list_all()
    assert (
        await world.store.catchup.enqueue(found[0], occurrences=[at], rest=None, pace_ms=1000, most=9, left=1) == "ok"
    )


async def misfires(world: World, job: Job, at: int) -> None:
    assert await world.store.runs.resolve_misfires([MisfireItem(job.id, 1, job.due, job.due + HOUR, at, 0, 0, 0)]) == [
        "ok"
    ]


async def resumes(world: World, job: Job, at: int) -> None:
    assert (await world.store.jobs.pause(job.id)).tag == "ok"
    reply = await world.store.jobs.resume(job.id, expect=2, due=job.due + HOUR, missed=MisfireOutcome(run_at=at))
    assert reply.tag == "ok"


late = pytest.mark.parametrize("pays", [pays_out, misfires, resumes])


@late
@pytest.mark.parametrize("overlap", ["", "w"])
async def test_a_late_run_is_not_given_out_twice_while_its_worker_may_be_unknown(
    world: World, pays: Pays, overlap: str
) -> None:
    job = await world.put("a", kind="e", every=HOUR, due_in=-1000, overlap=overlap)
    then = await kept(world)
    await pays(world, job, job.due)
    mine = await fetched(world, UNKNOWN)
    assert set(mine) == {job.run}
    await lost_tail(world, then)
    await pays(world, job, job.due)
    assert await fetched(world, OTHER) == {}
    assert await presented(world, mine[job.run]) == "ok"
    await grace_ends(world)
    assert await fetched(world, OTHER) == {}


@late
async def test_a_late_run_that_nobody_is_at_goes_when_the_hold_ends(world: World, pays: Pays) -> None:
    job = await world.put("a", kind="e", every=HOUR, due_in=-1000)
    await lost_tail(world, await kept(world))
    await pays(world, job, job.due)
    assert await fetched(world, OTHER) == {}
    await grace_ends(world)
    assert set(await fetched(world, OTHER)) == {job.run}


@late
async def test_a_late_run_is_held_by_a_second_recovery_too(world: World, pays: Pays) -> None:
    job = await world.put("a", kind="e", every=HOUR, due_in=-1000)
    closed_at = await lost_tail(world, await kept(world))
    await pays(world, job, job.due)
    record = await world.store.runs.get(job.run)
    assert record is not None
    assert record.due_at <= closed_at
    await world.client.delete(world.keys.staged)
    await opened(world, 3)
    assert await fetched(world, OTHER) == {}
    await grace_ends(world)
    assert set(await fetched(world, OTHER)) == {job.run}


@late
async def test_what_came_due_after_the_closing_goes_at_once_however_late(world: World, pays: Pays) -> None:
    job = await world.put("a", kind="e", every=HOUR, due_in=50)
    closed_at = await lost_tail(world, await kept(world))
    after = max(job.due, closed_at + 1)
    while await world.store.clock.read() <= after:
        pass
    await pays(world, job, after)
    assert set(await fetched(world, OTHER)) == {run_id_of(job.id, after)}
    assert await holds(world)


@pytest.mark.parametrize("overlap", ["s", "q", "w", "k"])
async def test_no_run_goes_beside_one_that_an_unknown_worker_may_have(world: World, overlap: str) -> None:
    job = await world.put("a", kind="e", every=500, overlap=overlap)
    then = await kept(world)
    await world.claim(job, horizon_ms=0)
    (mine,) = (await fetched(world, UNKNOWN)).values()
    await lost_tail(world, then)
    free = await world.put("free", due_in=600)
    while await world.store.clock.read() <= max(job.due + 1000, free.due):
        pass
    await world.claim(job, free, horizon_ms=0)
    # Those that are put off do not stand in the way of others.
    while (await world.store.runs.release(limit=1)).more:
        pass
    assert set(await fetched(world, OTHER)) == {free.run}
    assert await presented(world, mine) == "ok"
    assert await fetched(world, OTHER) == {}
    assert await holds(world)
    runs = (await world.store.resync.read_runs(cursor=0, count=99))[1]
    assert [r for r, record in runs if record.state is RunState.RUNNING and r.startswith(job.id)] == [mine.run]


async def test_what_was_put_off_goes_in_its_order_when_the_hold_ends(world: World) -> None:
    job = await world.put("a", kind="e", every=300, overlap="w")
    await lost_tail(world, await kept(world), recovery_grace_ms=2000)
    marker = await world.store.recovery.get_marker()
    assert marker is not None
    while await world.store.clock.read() <= job.due + 900:
        pass
    for n in range(4):
        await world.claim(job, horizon_ms=0, limit=1)
        reply = await world.store.runs.release(limit=100)
        # The first was due before the closing and is held where it is.
        assert (reply.total, reply.next_at) == (0, marker.recovery_grace_until if n else None)
    assert await holds(world)
    await world.store.jobs.pause(job.id)
    order: list[RunId] = []
    while len(order) < 4:
        for run in (await fetched(world, OTHER)).values():
            assert await world.store.clock.read() >= marker.recovery_grace_until
            order.append(run.run)
            assert await world.finish(run) == "ok"
    assert order == [run_id_of(job.id, job.due + n * 300) for n in range(4)]


async def test_a_retry_is_put_off_where_a_policy_decides_and_what_may_go_beside_others_is_not(world: World) -> None:
    policed, free = await world.running("policed", overlap="w"), await world.running("free")
    await lost_tail(world, await kept(world))
    items = [(run.run, run.attempt, run.fence) for _, run in (policed, free)]
    assert await world.store.runs.adopt(W, lease_ms=LEASE, queues=["default"], items=items) == ["ok", "ok"]
    for _, run in (policed, free):
        assert await world.finish(run, RunState.RETRYING, delay_ms=1) == "ok"
    beside = await world.store.jobs.trigger(policed[0].id, suffix="aaaa", repeat_key="", overlap="allow")
    waits = await world.store.jobs.trigger(policed[0].id, suffix="bbbb", repeat_key="")
    got: set[RunId] = set()
    while len(got) < 2:
        got |= set(await fetched(world, OTHER))
    retry = (await world.client.zrange(world.keys.retries, 0, -1, withscores=True))[0]
    assert got == {free[1].run, beside.run}
    assert waits.run not in got
    marker = await world.store.recovery.get_marker()
    assert marker is not None
    assert retry == (f"{policed[1].run}|{policed[1].head.queue_key}".encode(), marker.recovery_grace_until)


async def test_while_only_known_workers_are_waited_for_policies_decide_as_ever(world: World) -> None:
    """All that was there is there, so that the records tell which runs are open."""
    job, run = await world.running("a", kind="e", every=300, overlap="s")
    await world.open(2, recovery_grace_ms=LEASE)
    free = await world.put("b", due_in=310, overlap="s")
    while await world.store.clock.read() <= free.due:
        pass
    await world.claim(job, free, horizon_ms=0)
    assert set(await fetched(world, OTHER)) == {free.run}
    assert await holds(world)
    ends = [e.run for e in await world.events() if isinstance(e, RunEvent) and e.record.state is RunState.SKIPPED]
    assert ends == [run_id_of(job.id, job.due + 300)]
    assert await presented(world, run) == "ok"
