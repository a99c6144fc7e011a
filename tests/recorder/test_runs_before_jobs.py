"""After a total loss a run never comes up before its job is back, however long the background restore takes."""

from __future__ import annotations

import asyncio
import random

import pytest

from rsched.core.states import RunState
from rsched.recorder.recovery.progress import Progress
from rsched.recorder.recovery.recovery import Recovery
from rsched.scheduler.reap import Reaper
from rsched.store.run_values import FinishItem
from tests.recorder.steps import CLOCK, LOG, WORKER, Shard, within


@pytest.mark.parametrize("waits", [True, False], ids=["waits for its retry", "its worker is lost"])
def test_a_run_finds_its_job_before_the_rest_is_back(
    database_url: str, redis_url: str, redis_prefix: str, waits: bool
) -> None:
    async def body(s: Shard) -> None:
        job = await s.put("a", due_in=1_800_000)  # due long after the recovery: one of the last to come back
        assert (await s.store.jobs.trigger(job, suffix="abcd", repeat_key="")).run
        await s.schedule()
        (run,) = (await s.store.runs.fetch(WORKER, request=1, slots=10, lease_ms=60_000, queues=["default"])).runs
        if waits:
            retry = FinishItem(run.run, run.fence, RunState.RETRYING, 0, 0, "try again")
            assert await s.store.runs.finish(WORKER, request=1, items=[retry]) == ["ok"]
        await s.record()
        keys = [key async for key in s.redis.scan_iter(redis_prefix + ":*")]
        await s.redis.delete(*keys)
        s.__post_init__()
        recovery = Recovery(s.store, s.ledger, shard="s0", clock=CLOCK, lease_ms=60_000)
        opened = await recovery.ensure_open(list(s.streams.values()))
        assert opened.background_restore is not None
        await s.redis.hset(
            s.keys.marker, "recovery_grace_until", "1"
        )  # as if a lease had passed, and the background restore had not come on
        if waits:
            await s.schedule()
            found = await s.store.runs.fetch(WORKER, request=2, slots=10, lease_ms=60_000, queues=["default"])
            assert [r.run for r in found.runs] == [run.run]
        else:
            await s.redis.zadd(s.keys.leases, {run.run: 1})
            reaper = Reaper(s.store, after_ms=0, rng=random.Random(1), log=LOG)
            while await reaper.step():
                pass
            record = await s.store.runs.get(run.run)
            assert record is not None
            assert record.state is RunState.RETRYING
        progress = Progress(s.store, opened.background_restore)
        while await progress.step():
            pass

    asyncio.run(within(redis_url, database_url, redis_prefix, body))
