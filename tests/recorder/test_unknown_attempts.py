"""A worker presents an attempt that Redis does not know, after a recovery that found nothing missing from the ledger."""

from __future__ import annotations

import pytest

from rsched.core.states import RunState
from rsched.store.run_values import FetchedRun, FinishItem
from tests.recorder.rollback import another_server, back_to, snapshot, stale_generation
from tests.recorder.stepped_shard import HOUR, WORKER, InShard, Shard


async def started(s: Shard) -> FetchedRun:
    """One run is claimed, released and fetched, and nobody has recorded it."""
    await s.schedule()
    s.request += 1
    (run,) = (await s.store.runs.fetch(WORKER, request=s.request, slots=10, lease_ms=60_000, queues=["default"])).runs
    return run


async def presented(s: Shard, run: FetchedRun) -> str:
    (tag,) = await s.store.runs.adopt(WORKER, lease_ms=60_000, queues=["default"], items=[(run.run, 1, run.fence)])
    return tag


async def finished(s: Shard, run: FetchedRun) -> str:
    s.request += 1
    item = FinishItem(run.run, run.fence, RunState.SUCCEEDED, 0, await s.store.clock.read(), "")
    (tag,) = await s.store.runs.finish(WORKER, request=s.request, items=[item])
    return tag


async def not_lost(s: Shard) -> None:
    marker = await s.store.recovery.get_marker()
    assert marker is not None
    assert (marker.state, marker.lost) == ("open", False)


@pytest.mark.parametrize("recoveries", [1, 2], ids=["one recovery", "a recovery that was not finished before"])
@pytest.mark.parametrize("kind", ["e", "o"])
def test_an_attempt_that_only_the_lost_tail_knew_is_taken_on_and_not_run_again(
    shard: InShard, kind: str, recoveries: int
) -> None:
    async def body(s: Shard) -> None:
        job = await s.put("a", kind=kind)
        await s.record()
        then = await snapshot(s)
        run = await started(s)
        await back_to(s, then)
        for _ in range(recoveries - 1):
            generation, fence = await s.ledger.recovery.generations.next(
                s.shard, redis_fence=await s.store.recovery.get_fence()
            )
            assert await s.store.recovery.begin(generation, fence=fence)
            await another_server(s)
        await stale_generation(s)
        await not_lost(s)
        assert await presented(s, run) == "ok"
        await s.schedule()
        assert await s.work() == []
        assert await finished(s, run) == "ok"
        await s.drain()
        assert s.done == {}
        await s.record()
        found = await s.ledger.runs.get(run.run)
        assert found is not None
        assert (found.record.state, found.record.fence) == (RunState.SUCCEEDED, run.fence)
        assert run.run == f"{job}:{found.record.due_at}"

    shard(body)


def test_a_run_that_ended_is_not_taken_on_again_however_far_behind_the_ledger_is(shard: InShard) -> None:
    async def body(s: Shard) -> None:
        await s.put("a", kind="e", every=HOUR)
        await s.record()
        run = await started(s)
        assert await finished(s, run) == "ok"
        await another_server(s)
        await stale_generation(s)
        await not_lost(s)
        assert await presented(s, run) == "missing"
        await s.drain()
        assert s.done == {}

    shard(body)


def test_a_run_that_ended_before_two_recoveries_is_not_taken_on_again(shard: InShard) -> None:
    async def body(s: Shard) -> None:
        await s.put("a", kind="e", every=HOUR)
        run = await started(s)
        assert await finished(s, run) == "ok"
        for _ in range(2):
            await another_server(s)
            await stale_generation(s)
        assert await presented(s, run) == "missing"

    shard(body)
