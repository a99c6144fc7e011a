from __future__ import annotations

import asyncio
import statistics
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

import anyio
import psycopg
import pytest
from redis.asyncio import Redis

from rsched.core.errors import ShardClosed
from rsched.core.ids import JobId, partition_of
from rsched.core.settings import RecorderSettings
from rsched.core.states import RunState
from rsched.ledger import Ledger, Waiter
from rsched.recorder.main import run_recorder
from rsched.runtime.clock import SystemClock
from rsched.store.jobs import PutItem
from rsched.store.store import Store
from tests.ledger.events import T0, definition, job, job_id

InWorld = Callable[[Callable[["World"], Awaitable[None]]], None]
CLOCK = SystemClock()
FUTURE = T0 + 10**11


@dataclass
class World:
    settings: RecorderSettings
    store: Store
    ledger: Ledger
    waiter: Waiter
    redis: Redis

    async def until(self, found: Callable[[], Awaitable[bool]], timeout_s: float = 10) -> None:
        async with asyncio.timeout(timeout_s):
            while not await found():
                await CLOCK.sleep(10)

    async def opened(self) -> None:
        await self.until(self.store.recovery.is_open)

    async def put(self, name: str, *, due: int | None = FUTURE, kind: str = "e", arg: str = "") -> str:
        value = job(name, kind=kind, arg=arg).value
        reply = await self.store.jobs.put([PutItem(JobId(job_id(name)), 0, due, value)], atomic=True)
        assert reply.ok
        assert reply.journal_id
        assert await self.waiter.wait_recorded("s0", "definitions", reply.journal_id, 10)
        return reply.journal_id

    async def generation(self) -> int:
        """0: the shard has no marker."""
        marker = await self.store.recovery.get_marker()
        return 0 if marker is None else marker.generation

    async def due_of(self, name: str) -> float | None:
        key = self.store.keys.due(partition_of(JobId(job_id(name))))
        score: float | None = await self.redis.zscore(key, job_id(name))
        return score

    async def lose_everything(self) -> None:
        keys = [k async for k in self.redis.scan_iter(self.settings.prefix + ":*")]
        await self.redis.delete(*keys)

    @asynccontextmanager
    async def recorder(self) -> AsyncIterator[anyio.Event]:
        stop = anyio.Event()
        async with anyio.create_task_group() as group:
            group.start_soon(lambda: run_recorder(self.settings, stop, clock=CLOCK))
            try:
                yield stop
            finally:
                stop.set()


@pytest.fixture
def world(database_url: str, redis_url: str, redis_prefix: str) -> InWorld:
    settings = RecorderSettings(database_url=database_url, redis_url=redis_url, prefix=redis_prefix, block_ms=200)

    def run(body: Callable[[World], Awaitable[None]]) -> None:
        async def main() -> None:
            store = Store.open(redis_url, prefix=redis_prefix, shard="s0", clock=CLOCK)
            redis = Redis.from_url(redis_url)
            try:
                async with Ledger(database_url, clock=CLOCK) as ledger, Waiter(database_url, clock=CLOCK) as waiter:
                    await body(World(settings, store, ledger, waiter, redis))
            finally:
                await redis.aclose()
                await store.aclose()

        asyncio.run(main())

    return run


def test_a_fresh_shard_is_opened_and_creates_become_durable(world: InWorld) -> None:
    async def body(w: World) -> None:
        with pytest.raises(ShardClosed):
            await w.put("a")
        async with w.recorder():
            await w.opened()
            await w.put("a")
            found = await w.ledger.jobs.get(job_id("a"))
            assert found is not None
            assert found.definition == definition("a")
            assert await w.ledger.recovery.generations.recorder_alive("s0")

    world(body)


def test_a_stand_by_takes_over(world: InWorld) -> None:
    async def body(w: World) -> None:
        async with w.recorder() as first:
            await w.opened()
            async with w.recorder():
                await w.put("a")
                before = await w.generation()
                first.set()
                await w.put("b")
        assert await w.generation() == before

    world(body)


def test_all_is_rebuilt_from_the_ledger_when_redis_lost_everything(world: InWorld) -> None:
    async def body(w: World) -> None:
        async with w.recorder():
            await w.opened()
            await w.put("cron")
            await w.put("once", kind="o", arg=str(FUTURE))
            await w.put("gone")
            reply = await w.store.jobs.remove(JobId(job_id("gone")))
            assert reply.tag == "ok"
            triggered = await w.store.jobs.trigger(JobId(job_id("cron")), suffix="abcd", repeat_key="")
            assert triggered.run
            await w.until(lambda: _has(w, triggered.run))
            fence = await w.store.recovery.get_fence()
            before = await w.generation()
            await w.lose_everything()
            await w.until(_later_than(w, before))
            await w.opened()
            await w.until(lambda: _restored(w))
            kept = await w.store.jobs.get(JobId(job_id("cron")))
            assert kept is not None
            assert await w.due_of("cron") == T0 + 60_000
            assert await w.due_of("once") == FUTURE
            assert await w.due_of("gone") is None
            assert await w.store.recovery.get_fence() > fence + 2**36 - 1
            assert await w.store.runs.get(triggered.run) is not None
            await w.put("later")

    world(body)


async def _restored(w: World) -> bool:
    found = await w.store.restore.get_progress()
    return found is not None and found.phase == "done"


async def _has(w: World, run: str) -> bool:
    return await w.ledger.runs.get(run) is not None


def _later_than(w: World, generation: int) -> Callable[[], Awaitable[bool]]:
    async def found() -> bool:
        return await w.generation() > generation

    return found


def test_a_rolled_back_redis_gets_its_tail_again_and_drops_ended_runs(world: InWorld) -> None:
    async def body(w: World) -> None:
        async with w.recorder():
            await w.opened()
            await w.put("a", due=None)
            triggered = await w.store.jobs.trigger(JobId(job_id("a")), suffix="abcd", repeat_key="")
            await w.until(lambda: _has(w, triggered.run))
            keys = [k async for k in w.redis.scan_iter(w.settings.prefix + ":*")]
            dumps = [(k, await w.redis.dump(k)) for k in keys]
            reply = await w.store.runs.cancel(triggered.run)
            assert reply.tag == "ok"

            async def cancelled() -> bool:
                found = await w.ledger.runs.get(triggered.run)
                return found is not None and found.record.state is RunState.CANCELLED

            await w.until(cancelled)
            await w.put("b")
            # As a failover to a replica that was behind does it.
            before = await w.generation()
            await w.lose_everything()
            pipe = w.redis.pipeline()
            for key, dump in dumps:
                pipe.restore(key, 0, dump, replace=True)
            pipe.hset(w.store.keys.marker, "run_id", "another")
            await pipe.execute()
            await w.until(_later_than(w, before))
            await w.opened()
            assert await w.store.jobs.get(JobId(job_id("b"))) is not None
            assert await w.store.runs.get(triggered.run) is None

    world(body)


def test_completed_jobs_leave_redis_and_stay_in_the_ledger(world: InWorld) -> None:
    async def body(w: World) -> None:
        object.__setattr__(w, "settings", type(w.settings)(
            **{f: getattr(w.settings, f) for f in w.settings.__struct_fields__} | {"forget_after_s": 0}
        ))  # fmt: skip
        async with w.recorder():
            await w.opened()
            await w.put("a")
            await w.store.jobs.remove(JobId(job_id("a")))

            async def forgotten() -> bool:
                return await w.redis.hget(w.store.keys.jobs(_partition("a")), job_id("a")) is None

            await w.until(forgotten, 20)
            found = await w.ledger.jobs.get(job_id("a"))
            assert found is not None
            assert found.deleted

    world(body)


def _partition(name: str) -> int:
    return partition_of(JobId(job_id(name)))


def test_durable_creates_one_by_one_wait_neither_for_a_poll_nor_for_company(world: InWorld) -> None:
    async def body(w: World) -> None:
        async with w.recorder():
            await w.opened()
            await w.put("first")
            took_ms = []
            for i in range(50):
                began = CLOCK.perf_s()
                await w.put(f"job-{i}")
                took_ms.append((CLOCK.perf_s() - began) * 1000)
            # 3 ms where the machine is idle. Run events linger for 100 ms, and reads of the journal block for 200 ms.
            assert statistics.median(took_ms) < 50

    world(body)


def test_recording_goes_on_after_postgres_dropped_all_connections(world: InWorld) -> None:
    async def body(w: World) -> None:
        async with w.recorder():
            await w.opened()
            await w.put("a")
            before = await w.generation()
            with psycopg.connect(w.settings.database_url, autocommit=True) as c:
                c.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                    " WHERE datname = current_database() AND pid <> pg_backend_pid()"
                )
            await w.put("b")
            await w.until(lambda: w.ledger.recovery.generations.recorder_alive("s0"))
            assert await w.generation() == before

    world(body)


def test_after_a_restart_of_redis_that_lost_nothing_nothing_is_restored(world: InWorld) -> None:
    async def body(w: World) -> None:
        async with w.recorder():
            await w.opened()
            await w.put("a")
            before = await w.generation()
            await w.redis.hset(w.store.keys.marker, "run_id", "another")
            await w.until(_later_than(w, before))
            await w.opened()
            await w.put("b")
            assert await w.due_of("a") == FUTURE
            assert await w.store.restore.get_progress() is None

    world(body)
