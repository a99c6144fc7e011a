"""Redis emptied in the middle of a spike: opened again at once, rebuilt from the ledger, nothing acknowledged lost."""

from __future__ import annotations

import shutil

import pytest

from rsched.core.errors import ShardClosed
from tests.faults.harness import RUNS, Run, drive, fault_run

pytestmark = [pytest.mark.faults, pytest.mark.timeout(180)]

# 2 s is the promise; machines that run tests are shared.
OPEN_WITHIN_S = 4


async def flush(run: Run) -> None:
    await run.w.store.connection.client.flushall()
    with pytest.raises(ShardClosed):
        await run.put_spread(1)


async def replace(run: Run) -> None:
    redis = run.w.servers.redis
    assert redis is not None
    redis.kill()
    shutil.rmtree(run.w.folder / "redis")
    redis.start()


@pytest.mark.parametrize("lose", [flush, replace], ids=["flushed", "another, empty server"])
def test_an_emptied_redis_is_opened_at_once_and_loses_nothing_acknowledged(lose: object) -> None:
    async def scenario() -> None:
        async with fault_run() as run:
            await run.put_spread(RUNS, spread_ms=1)
            await run.put_spread(200, lead_ms=2500, spread_ms=3000)
            await run.until_recorded()
            await run.until_started(0.3)
            began = run.w.clock.perf_s()
            await lose(run)  # type: ignore[operator]
            await run.until_open()
            assert run.w.clock.perf_s() - began < OPEN_WITHIN_S
            # What is made now is due and runs while what was lost comes back.
            await run.put_spread(50, lead_ms=100, spread_ms=200)
            await run.until_settled(within_s=90)
            await run.verdict()

    drive(scenario)


def test_intervals_go_on_where_they_were() -> None:
    async def scenario() -> None:
        async with fault_run(env={"RSCHED_SCHEDULER_LOOKAHEAD_MS": "3000"}) as run:
            now = await run.w.store.clock.read()
            await run.put_every(40, every_s=1, until_ms=now + 6000)
            await run.until_recorded()
            await run.until_started(0.3)
            await run.w.store.connection.client.flushall()
            await run.until_open()
            await run.until_started(1)
            await run.end_intervals(every_s=1)
            await run.verdict()

    drive(scenario)
