"""Many faults in one run, in an order that a seed gives."""

from __future__ import annotations

import os
import random
from collections.abc import Awaitable, Callable, Sequence

import pytest

from tests.faults.harness import RUNS, Run, drive, fault_run

pytestmark = [pytest.mark.faults, pytest.mark.slow, pytest.mark.timeout(240)]

SEED = int(os.environ.get("FAULTS_SEED", "1"))
FAULTS = 8

Fault = Callable[[Run], Awaitable[None]]


async def kill_and_start(run: Run, name: str, number: int) -> None:
    """A process of that kind dies; another of a new name takes its place."""
    kind = name.partition("-")[0]
    run.kill(name)
    run.fleet.start(f"{kind}-{number}", env={"FAULTS_SEEN": str(run.seen)} if kind == "worker" else None)


async def restart_redis(run: Run) -> None:
    redis = run.w.servers.redis
    assert redis is not None
    redis.kill()
    redis.start()


async def restart_postgres(run: Run) -> None:
    postgres = run.w.servers.postgres
    assert postgres is not None
    postgres.kill()
    postgres.start()


async def empty_redis(run: Run) -> None:
    await run.w.store.connection.client.flushall()


@pytest.mark.parametrize(
    "servers",
    [(), (restart_redis,), (restart_redis, restart_postgres, empty_redis)],
    ids=["processes", "processes and Redis", "processes, both servers, and all that Redis had"],
)
def test_faults_in_any_order_lose_and_overlap_nothing(servers: Sequence[Fault]) -> None:
    rng = random.Random(SEED)

    async def scenario() -> None:
        async with fault_run(schedulers=2, recorders=2) as run:
            await run.put_spread(2 * RUNS, function="steady", spread_ms=FAULTS * 1500)
            await run.until_recorded()
            for n in range(1, FAULTS + 1):
                # Held for a lease after each loss, and the losses come one upon another.
                await run.until_started(n / (FAULTS + 2), within_s=60)
                victim = rng.choice([*sorted(run.fleet.processes), *servers, *servers])
                if isinstance(victim, str):
                    await kill_and_start(run, victim, 10 + n)
                else:
                    await victim(run)
            # A worker that died around a restart of Redis has its runs held for one full lease.
            await run.until_settled(within_s=150)
            await run.verdict()

    drive(scenario)
