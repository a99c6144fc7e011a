"""Redis comes back with an older state: a replica without the last writes, a fail-back, a snapshot, with Postgres behind, too."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from redis.asyncio import Redis

from rsched.embedded.redis_server import RedisServer
from rsched.runtime.clock import SystemClock
from tests.faults.fault_run import RUNS, Run, drive, fault_run
from tests.faults.proxy import Proxy, proxy
from tests.support.deployment import Deployment

pytestmark = [pytest.mark.faults, pytest.mark.timeout(180)]


class Pair:
    """Two Redis servers behind one address; who is the primary is decided by hand."""

    def __init__(self, w: Deployment, address: Proxy) -> None:
        assert w.servers.redis is not None
        self._address = address
        self.primary = w.servers.redis
        log = w.folder / "logs" / "second.log"
        self.replica = RedisServer(w.folder / "second", log=log, clock=w.clock)
        self._clock = w.clock

    async def start(self) -> None:
        self.replica.start()
        await self.follow()
        self._address.point_to(self.primary.port)

    async def follow(self) -> None:
        """The replica has all that the primary has, and goes on getting it."""
        async with Redis.from_url(self.replica.url) as r, Redis.from_url(self.primary.url) as p:
            await r.execute_command("REPLICAOF", "127.0.0.1", self.primary.port)
            while (await r.info("replication")).get("master_link_status") != "up":
                await self._clock.sleep(20)
            await p.wait(1, 5000)
            # What the program asks of a server with replicas, when it starts.
            await p.config_set("min-replicas-to-write", 1)

    async def part(self) -> None:
        """From here on the replica gets nothing more, as one that lags by as much as it may."""
        async with Redis.from_url(self.replica.url) as r, Redis.from_url(self.primary.url) as p:
            await p.config_set("min-replicas-to-write", 0)
            await r.execute_command("REPLICAOF", "NO", "ONE")

    def fail_over(self) -> None:
        self._address.point_to(None)
        self.primary.kill()
        self.primary, self.replica = self.replica, self.primary
        self._address.point_to(self.primary.port)


@asynccontextmanager
async def replicated_run() -> AsyncIterator[tuple[Run, Pair]]:
    with proxy() as address:
        pairs: list[Pair] = []

        async def prepared(w: Deployment) -> None:
            pairs.append(Pair(w, address))
            await pairs[0].start()
            await w.store.aclose()
            w.store = type(w.store).open(address.url, prefix=w.store.keys.prefix, shard="s0", clock=SystemClock())

        try:
            async with fault_run(env={"RSCHED_REDIS_URL": address.url}, prepared=prepared) as run:
                try:
                    yield run, pairs[0]
                finally:
                    await run.w.store.aclose()
        finally:
            for pair in pairs:
                pair.primary.stop()
                pair.replica.stop()


async def lag(run: Run, pair: Pair, *, part: float) -> None:
    """The replica is cut off; then the work goes on until this part of all starts, and the primary dies."""
    await pair.part()
    await run.until_started(part)
    pair.fail_over()


@pytest.mark.parametrize("behind", [False, True], ids=["Postgres has it", "Postgres is behind, too"])
def test_a_replica_promoted_without_the_last_writes_loses_and_overlaps_nothing(behind: bool) -> None:
    async def scenario() -> None:
        async with replicated_run() as (run, pair):
            await run.put_spread(RUNS, function="steady")
            await run.until_recorded()
            await run.until_started(0.2)
            if behind:
                run.kill("recorder-1")
            await lag(run, pair, part=0.5)
            if behind:
                run.fleet.start("recorder-2")
            await run.until_settled(within_s=90)
            await run.verdict()

    drive(scenario)


def test_a_failover_and_a_failback_that_both_lose_writes_lose_and_overlap_nothing() -> None:
    async def scenario() -> None:
        async with replicated_run() as (run, pair):
            await run.put_spread(RUNS, function="steady", spread_ms=8000)
            await run.until_recorded()
            await run.until_started(0.1)
            await lag(run, pair, part=0.2)
            await run.until_open()
            pair.replica.start()
            await pair.follow()
            await run.until_started(0.4)
            await lag(run, pair, part=0.6)
            await run.until_settled(within_s=90)
            await run.verdict()

    drive(scenario)


@pytest.mark.parametrize("behind", [False, True], ids=["Postgres has it", "Postgres is behind, too"])
def test_an_older_snapshot_that_is_put_back_loses_and_overlaps_nothing(behind: bool) -> None:
    async def scenario() -> None:
        async with fault_run() as run:
            redis = run.w.servers.redis
            assert redis is not None
            await run.put_spread(RUNS, function="steady")
            await run.until_recorded()
            await run.until_started(0.2)
            if behind:
                run.kill("recorder-1")
            # A copy of the files as they are, as a snapshot of the disk is.
            kept = run.w.folder / "kept"
            copy(run.w.folder / "redis", kept)
            await run.until_started(0.5)
            redis.kill()
            copy(kept, run.w.folder / "redis")
            redis.start()
            if behind:
                run.fleet.start("recorder-2")
            await run.until_settled(within_s=90)
            await run.verdict()

    drive(scenario)


def copy(source: Path, to: Path) -> None:
    shutil.rmtree(to, ignore_errors=True)
    shutil.copytree(source, to)
