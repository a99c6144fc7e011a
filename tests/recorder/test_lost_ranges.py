"""Catch-up ranges of a Redis that came back in an older state."""

from __future__ import annotations

import anyio
import pytest

from bench.jobs import item
from rsched.core.jobs.model import ScheduleSpec
from rsched.scheduler.catch_up import CatchUp
from tests.recorder.rollback import another_server, back_to, snapshot, stale_generation
from tests.recorder.steps import CLOCK, HOUR, LOG, Shard, within


@pytest.mark.parametrize("at_once", [10, 2], ids=["to its end", "in part"])
def test_a_range_that_was_paid_before_its_pay_was_lost_is_not_paid_again(
    redis_url: str, database_url: str, redis_prefix: str, at_once: int
) -> None:
    async def body(s: Shard) -> None:
        now = await s.store.clock.read()
        schedule = ScheduleSpec(every="1h", anchor="2020-01-01T00:00:00Z")
        put, _ = item("late", schedule, function="f", now=now, misfire_policy="run_all")
        assert (await s.store.jobs.put([put], atomic=True)).ok
        last = now // HOUR * HOUR
        assert (await s.store.jobs.backfill(put.job, schedule_version=1, ranges=[(last - 4 * HOUR, last)])).tag == "ok"
        catch_up = CatchUp(s.store, per_s=at_once, share=1, schedulers=lambda: 1, clock=CLOCK, log=LOG)
        await s.record()
        then = await snapshot(s)
        await catch_up.step()
        await s.store.runs.release(limit=100)
        assert len(await s.work()) == min(at_once, 5)
        await s.record()
        await back_to(s, then)
        await stale_generation(s)
        with anyio.fail_after(20):
            while await s.redis.zcard(s.keys.catchup) or await s.redis.hlen(s.keys.runs):
                await catch_up.step()
                await s.store.runs.release(limit=100)
                await s.work()
                await CLOCK.sleep(20)
        assert s.done == {f"{put.job}:{last - i * HOUR}": 1 for i in range(5)}

    anyio.run(within, redis_url, database_url, redis_prefix, body)


def test_a_range_that_the_ledger_does_not_know_stays(redis_url: str, database_url: str, redis_prefix: str) -> None:
    async def body(s: Shard) -> None:
        job = await s.put("a")
        await s.record()
        assert (await s.store.jobs.backfill(job, schedule_version=1, ranges=[(1, 2)])).tag == "ok"
        member = await s.redis.zrange(s.keys.catchup, 0, -1)
        await s.redis.delete(s.keys.journal)
        await another_server(s)
        await stale_generation(s)
        assert await s.redis.zrange(s.keys.catchup, 0, -1) == member

    anyio.run(within, redis_url, database_url, redis_prefix, body)
