"""Redis killed with -9 in the middle and started again on the same folder."""

from __future__ import annotations

import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.faults.harness import RUNS, Run, drive, fault_run

pytestmark = pytest.mark.faults


async def restart_redis(run: Run, *, away_ms: float) -> None:
    redis = run.w.servers.redis
    assert redis is not None
    redis.kill()
    await run.w.clock.sleep(away_ms)
    redis.start()


@pytest.mark.parametrize("function", ["brief", "steady"])
def test_a_killed_redis_that_comes_back_loses_and_doubles_nothing(function: str) -> None:
    async def scenario() -> None:
        async with fault_run() as run:
            await run.put_spread(RUNS, function=function)
            await run.until_started(0.3)
            await restart_redis(run, away_ms=300)
            await run.until_settled()
            await run.verdict()

    drive(scenario)


def test_a_redis_that_is_killed_twice_loses_and_doubles_nothing() -> None:
    async def scenario() -> None:
        async with fault_run() as run:
            await run.put_spread(RUNS)
            for part in (0.2, 0.5):
                await run.until_started(part)
                await restart_redis(run, away_ms=100)
            await run.until_settled()
            await run.verdict()

    drive(scenario)


@pytest.mark.slow
@pytest.mark.timeout(200)
def test_a_worker_that_dies_while_redis_is_away_delays_its_runs_and_loses_none() -> None:
    async def scenario() -> None:
        async with fault_run() as run:
            await run.put_spread(RUNS, function="steady")
            await run.until_started(0.3)
            redis = run.w.servers.redis
            assert redis is not None
            redis.kill()
            run.kill("worker-1")
            redis.start()
            # What it may still be at work on is held for one full lease.
            await run.until_settled(within_s=100)
            await run.verdict()

    drive(scenario)


def cut_tail(folder: Path, *, part: float) -> None:
    """Drops the end of the append-only file, as a crash of the machine may."""
    file = max((folder / "redis" / "appendonlydir").glob("*.incr.aof"), key=lambda f: f.stat().st_size)
    with file.open("r+b") as f:
        f.truncate(int(file.stat().st_size * (1 - part)))


@pytest.mark.slow
@pytest.mark.timeout(200)
def test_a_redis_that_lost_its_last_writes_loses_and_overlaps_nothing() -> None:
    async def scenario() -> None:
        async with fault_run() as run:
            await run.put_spread(RUNS, function="steady")
            await run.until_started(0.4)
            redis = run.w.servers.redis
            assert redis is not None
            redis.kill()
            cut_tail(run.w.folder, part=0.3)
            redis.start()
            await run.until_settled(within_s=120)
            await run.verdict()

    drive(scenario)


@asynccontextmanager
async def hanging(run: Run) -> AsyncIterator[None]:
    child = run.w.servers.redis.child if run.w.servers.redis else None
    assert child is not None
    child.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        child.send_signal(signal.SIGCONT)


@asynccontextmanager
async def read_only(run: Run) -> AsyncIterator[None]:
    """A replica of nobody that answers: it takes no writes, as a primary that was demoted."""
    await run.w.store.connection.client.execute_command("REPLICAOF", "127.0.0.1", 1)
    yield
    await run.w.store.connection.client.execute_command("REPLICAOF", "NO", "ONE")


@pytest.mark.parametrize("away", [hanging, read_only], ids=["hanging", "read-only"])
def test_every_process_waits_for_redis_says_so_once_and_goes_on(away: object) -> None:
    async def scenario() -> None:
        async with fault_run() as run:
            await run.put_spread(RUNS, function="steady")
            await run.until_recorded()
            await run.until_started(0.3)
            async with away(run):  # type: ignore[operator]
                await run.w.clock.sleep(4000)
            await run.until_settled(within_s=90)
            await run.verdict()
            for name in list(run.fleet.processes):
                waits = run.fleet.log(name).count("waiting:")
                # A process has up to ten loops, and an outage has a beginning and, with the recovery, a second one.
                assert waits <= 20, f"{name} said it {waits} times:\n{run.fleet.log(name)[-3000:]}"

    drive(scenario)
