"""The backoff of a retry outlasts the loss of Redis: the ledger knows when the next attempt is due."""

from __future__ import annotations

import anyio
import pytest

from rsched.core.states import RunState
from rsched.recorder.recovery.recovery import Recovery
from rsched.store.run_values import FinishItem
from tests.recorder.stepped_shard import CLOCK, HOUR, WORKER, Shard, within


@pytest.mark.parametrize("lost_worker", [False, True], ids=["failed", "its worker was lost"])
def test_a_retry_comes_back_when_it_was_due(
    redis_url: str, database_url: str, redis_prefix: str, lost_worker: bool
) -> None:
    async def body(s: Shard) -> None:
        await s.put("a")
        await s.schedule()
        (run,) = (await s.store.runs.fetch(WORKER, request=1, slots=1, lease_ms=60_000, queues=["default"])).runs
        if lost_worker:
            await s.redis.zadd(s.keys.leases, {run.run: 1})
            while await s.reaper.step():
                pass
        else:
            began = await s.store.clock.read()
            retry = FinishItem(run.run, run.fence, RunState.RETRYING, HOUR, began, "try again")
            assert await s.store.runs.finish(WORKER, request=1, items=[retry]) == ["ok"]
        before = await s.redis.zrange(s.keys.retries, 0, -1, withscores=True)
        record = await s.store.runs.get(run.run)
        await s.record()
        await s.redis.delete(*[key async for key in s.redis.scan_iter(redis_prefix + ":*")])
        s.__post_init__()
        recovery = Recovery(s.store, s.ledger, shard="s0", clock=CLOCK, lease_ms=60_000)
        assert (await recovery.ensure_open(list(s.streams.values()))).background_restore is not None
        assert await s.redis.zrange(s.keys.retries, 0, -1, withscores=True) == before
        assert await s.store.runs.get(run.run) == record
        # The attempt that ended keeps its own instant.
        found = await s.ledger.runs.get(run.run)
        assert found is not None
        assert [(a.attempt, a.due_at) for a in found.attempts] == [(1, run.due_at)]
        assert found.record.lateness_ms is None
        if not lost_worker:
            assert found.attempts[0].lateness_ms == began - run.due_at

    anyio.run(within, redis_url, database_url, redis_prefix, body)
