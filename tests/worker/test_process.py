"""Real worker processes on a real Redis."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from rsched.core.ids import derive_job_id, partition_of
from rsched.core.jobs.model import FunctionTarget
from rsched.core.jobs.packed import JobHead, JobRecord, RunRecord, unpack_run
from rsched.core.states import JobState, RunState
from rsched.runtime.clock import SystemClock
from rsched.store.jobs import PutItem
from rsched.store.store import Store, shard_tags
from tests.worker.fake_store import definition
from tests.worker.harness import until

SCRIPT = """
from rsched.core.settings import WorkerSettings
from rsched.runtime.clock import SystemClock
from rsched.runtime.service import run
from rsched.worker.main import run_worker
settings = WorkerSettings(
    redis_url={url!r}, prefix={prefix!r}, app="tests.worker.an_app:app",
    lease_ms=3000, renew_ms=500, stop_margin_ms=1000, drain_s=0.3,
)
run(lambda stop: run_worker(settings, stop, clock=SystemClock()))
"""
ROOT = Path(__file__).parents[2]


class World:
    """A shard with runs on its queue, and what became of them."""

    def __init__(self, url: str, prefix: str, started: Path) -> None:
        self.url, self.prefix, self.started = url, prefix, started
        self.store = Store.open(url, prefix=prefix, shard=shard_tags(1)[0], clock=SystemClock())

    async def owe(self, function: str, *, count: int = 1) -> None:
        store = self.store
        await store.recovery.begin(1, fence=2**36)
        await store.recovery.finish(recovery_grace_ms=0)
        now = await store.clock.read()
        d = definition(FunctionTarget(function=function))
        head = JobHead(JobState.ACTIVE, 1, 1, now, "o", str(now), "o", 60_000, d.queue_key)
        value = JobRecord(head, d).pack()
        jobs = [derive_job_id("default", f"job {i}", 1) for i in range(count)]
        assert (await store.jobs.put([PutItem(job, 0, now, value) for job in jobs], atomic=False)).ok
        for job in jobs:
            await store.runs.claim("s", horizon_ms=0, limit=10, partitions=[(partition_of(job), 0)])
        await store.runs.release(limit=1000)

    async def runs(self) -> list[RunRecord]:
        return [unpack_run(v.decode()) for v in await self.store.connection.client.hvals(self.store.keys.runs)]  # type: ignore[misc]

    async def until_running(self, count: int = 1) -> None:
        async with asyncio.timeout(10):
            while [r.state for r in await self.runs()].count(RunState.RUNNING) < count:  # noqa: ASYNC110
                await asyncio.sleep(0.01)  # noqa: TID251

    @contextmanager
    def worker(self) -> Iterator[subprocess.Popen[str]]:
        env = {**os.environ, "TEST_STARTED": str(self.started)}
        code = SCRIPT.format(url=self.url, prefix=self.prefix)
        process = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, env=env, stderr=subprocess.PIPE, text=True)
        try:
            yield process
        finally:
            process.kill()
            process.communicate()


@pytest.fixture
def world(redis_url: str, redis_prefix: str, tmp_path: Path) -> Callable[[Callable[[World], Awaitable[None]]], None]:
    def play(test: Callable[[World], Awaitable[None]]) -> None:
        async def main() -> None:
            world = World(redis_url, redis_prefix, tmp_path / "started")
            try:
                async with asyncio.timeout(30):
                    await test(world)
            finally:
                await world.store.aclose()

        asyncio.run(main())

    return play


Play = Callable[[Callable[[World], Awaitable[None]]], None]


def test_runs_go_through_a_process_and_it_leaves_at_sigterm(world: Play) -> None:
    async def test(w: World) -> None:
        await w.owe("quick", count=50)
        with w.worker() as process:
            while await w.runs():  # noqa: ASYNC110 - another process' doing
                await asyncio.sleep(0.01)  # noqa: TID251
            process.send_signal(signal.SIGTERM)
            assert await asyncio.to_thread(process.wait, 5) == 0
        assert await w.store.connection.client.hlen(w.store.keys.workers) == 0  # type: ignore[misc]

    world(test)


def test_a_stopped_worker_that_wakes_up_after_its_lease_changes_nothing(world: Play) -> None:
    async def test(w: World) -> None:
        await w.owe("waits")
        with w.worker() as process:
            await w.until_running()
            process.send_signal(signal.SIGSTOP)
            await asyncio.sleep(3.2)  # noqa: TID251 - the lease itself
            before = await w.runs()
            process.send_signal(signal.SIGCONT)
            process.send_signal(signal.SIGTERM)
            assert await asyncio.to_thread(process.wait, 5) == 0
            assert await w.runs() == before

    world(test)


def test_a_stuck_function_ends_with_its_process_at_sigterm(world: Play) -> None:
    async def test(w: World) -> None:
        await w.owe("stuck")
        with w.worker() as process:
            await until(w.started.exists)
            process.send_signal(signal.SIGTERM)
            assert await asyncio.to_thread(process.wait, 5) == 70
            # Not finished: its lease has to end first, or the next attempt could overlap with it.
            assert [r.state for r in await w.runs()] == [RunState.RUNNING]

    world(test)


def test_a_stuck_function_whose_lease_is_lost_takes_the_process_with_it(world: Play) -> None:
    async def test(w: World) -> None:
        await w.owe("stuck")
        with w.worker() as process:
            await until(w.started.exists)
            (run,) = await w.runs()
            # Redis gives it to another: the fence is no longer this worker's.
            (key,) = await w.store.connection.client.hkeys(w.store.keys.runs)  # type: ignore[misc]
            taken = run._replace(fence=run.fence + 1, worker="w_other").pack()
            await w.store.connection.client.hset(w.store.keys.runs, key, taken)  # type: ignore[misc]
            assert await asyncio.to_thread(process.wait, 5) == 70
            assert [r.worker for r in await w.runs()] == ["w_other"]

    world(test)
