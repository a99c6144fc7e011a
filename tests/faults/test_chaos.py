"""Many faults in one run, in an order that a seed gives."""

from __future__ import annotations

import os
import random

import pytest

from tests.faults.harness import RUNS, Run, drive, fault_run

pytestmark = [pytest.mark.faults, pytest.mark.slow, pytest.mark.timeout(240)]

SEED = int(os.environ.get("FAULTS_SEED", "1"))
FAULTS = 8


async def kill_and_start(run: Run, name: str, number: int) -> None:
    """A process of that kind dies; another of a new name takes its place."""
    kind = name.partition("-")[0]
    run.kill(name)
    run.fleet.start(f"{kind}-{number}", env={"FAULTS_SEEN": str(run.seen)} if kind == "worker" else None)


@pytest.mark.parametrize("with_redis", [False, True], ids=["processes", "processes and Redis"])
def test_kills_in_any_order_lose_and_overlap_nothing(with_redis: bool) -> None:
    rng = random.Random(SEED)

    async def scenario() -> None:
        async with fault_run(schedulers=2, recorders=2) as run:
            await run.put_spread(2 * RUNS, function="steady", spread_ms=FAULTS * 1500)
            for n in range(1, FAULTS + 1):
                await run.until_started(n / (FAULTS + 2))
                victim = rng.choice([*sorted(run.fleet.processes), *(["redis"] if with_redis else [])])
                if victim == "redis":
                    redis = run.w.servers.redis
                    assert redis is not None
                    redis.kill()
                    redis.start()
                else:
                    await kill_and_start(run, victim, 10 + n)
            # A worker that died around a restart of Redis has its runs held for one full lease.
            await run.until_settled(within_s=150)
            await run.verdict()

    drive(scenario)
