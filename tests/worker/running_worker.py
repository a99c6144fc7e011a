"""Runs a real worker runtime over the real store, on a Redis inside the test's process."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

import anyio

from rsched.core.errors import ShardClosed
from rsched.core.ids import JobId, RunId, WorkerId, derive_job_id, partition_of, run_id_of
from rsched.core.jobs.model import Definition, ScheduleSpec, Target
from rsched.core.jobs.packed import JobHead, JobRecord, unpack_run
from rsched.core.states import JobState, RunState
from rsched.runtime.clock import Clock, SystemClock
from rsched.store.connection import Connection
from rsched.store.jobs import PutItem
from rsched.store.processes import Processes
from rsched.store.run_values import FinishItem
from rsched.store.runs import Runs
from rsched.store.store import Store
from rsched.worker.app import App
from rsched.worker.runtime import Limits, Runtime
from rsched.worker.targets.base import Callers
from rsched.worker.targets.calls import Calls
from tests.support.factories import make_definition
from tests.support.fake_redis import OrderedRenewer, OrderedStore, RedisInProcess

LIMITS = Limits(concurrency=10, lease_ms=60_000, renew_ms=20_000, margin_ms=5000, drain_ms=3000, poll_ms=50)
WORKER = WorkerId("w_test")
FENCE = 2**36
_RELEASE_EVERY_MS = 5


def definition(target: Target | None = None, **changes: Any) -> Definition:
    """Returns the definition of a job that calls the function `work`, or another target."""
    given = {} if target is None else {"target": target}
    return make_definition(
        "a job", schedule=ScheduleSpec(at="2030-01-01T00:00:00Z"), function="work", **given, **changes
    )


class WatchedRuns(Runs):
    """The verbs on runs, which keep in mind what the worker said."""

    def __init__(self, connection: Connection, watched: WatchedStore) -> None:
        super().__init__(connection)
        self._watched = watched

    async def finish(self, worker: WorkerId, *, request: int, items: Sequence[FinishItem]) -> list[str]:
        self._watched.finish_calls.append(request)
        tags = await super().finish(worker, request=request, items=items)
        taken = [item for item, tag in zip(items, tags, strict=True) if tag in ("ok", "already")]
        self._watched.finished += [item for item in taken if item not in self._watched.finished]
        return tags

    async def requeue(self, worker: WorkerId, items: Sequence[tuple[RunId, int]]) -> list[str]:
        tags = await super().requeue(worker, items)
        self._watched.returned += [run for (run, _), tag in zip(items, tags, strict=True) if tag == "ok"]
        return tags

    async def adopt(
        self, worker: WorkerId, *, lease_ms: int, queues: Sequence[str], items: Sequence[tuple[RunId, int, int]]
    ) -> list[str]:
        tags = await super().adopt(worker, lease_ms=lease_ms, queues=queues, items=items)
        self._watched.adopted.append([run for (run, _, _), tag in zip(items, tags, strict=True) if tag == "ok"])
        return tags


class WatchedProcesses(Processes):
    """The verbs on processes, which keep in mind whether the worker took its leave."""

    def __init__(self, connection: Connection, watched: WatchedStore) -> None:
        super().__init__(connection)
        self._watched = watched

    async def forget_worker(self, worker: WorkerId) -> None:
        await super().forget_worker(worker)
        self._watched.left = True


class WatchedStore(OrderedStore):
    """The worker's store, which keeps in mind what the worker said to it.

    finished: results that Redis took. finish_calls: the number of each request to finish. returned: runs requeued.
    adopted: what was presented after each recovery. left: whether the worker took its leave.
    """

    def __init__(self, server: RedisInProcess) -> None:
        super().__init__(server)
        self.runs = WatchedRuns(self.connection, self)
        self.processes = WatchedProcesses(self.connection, self)
        self.finished: list[FinishItem] = []
        self.finish_calls: list[int] = []
        self.returned: list[str] = []
        self.adopted: list[list[str]] = []
        self.left = False


class Shard:
    """What others than the worker do to its shard: an API, a scheduler, a recorder."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._jobs = 0
        self._generation = 0

    async def open(self, *, lost: bool = False) -> None:
        """Opens the shard under another generation; with `lost`, after Redis lost writes."""
        self._generation += 1
        assert await self.store.recovery.begin(self._generation, fence=FENCE * self._generation, lost=lost)
        await self.store.recovery.restage(0, lease_ms=LIMITS.lease_ms)
        await self.store.recovery.finish(recovery_grace_ms=0)

    async def owe(self, *definitions: Definition) -> list[RunId]:
        """Puts a one-off for each definition, due now, and queues its run; the runs in the same order."""
        now = await self.store.clock.read()
        items, jobs = [], []
        for given in definitions:
            self._jobs += 1
            job = derive_job_id("default", f"job {self._jobs}", 1)
            head = JobHead(JobState.ACTIVE, 1, 1, now - 1, "o", str(now), "o", 60_000, given.queue_key)
            jobs.append(job)
            items.append(PutItem(job, 0, now, JobRecord(head, given).pack()))
        assert (await self.store.jobs.put(items, atomic=True)).ok
        await self.claim(jobs)
        return [run_id_of(job, now) for job in jobs]

    async def claim(self, jobs: Sequence[JobId]) -> None:
        partitions = [(partition, 0) for partition in sorted({partition_of(job) for job in jobs})]
        await self.store.runs.claim("s", horizon_ms=0, limit=1000, partitions=partitions)
        await self.store.runs.release(limit=1000)

    async def give_to_another(self, run: RunId) -> None:
        """Another worker has the run now, under a later fence."""
        record = unpack_run((await self.store.connection.client.hget(self.store.keys.runs, run)).decode())
        taken = record._replace(fence=record.fence + 1, worker="w_other")
        await self.store.connection.client.hset(self.store.keys.runs, run, taken.pack())

    async def lose(self, *runs: RunId) -> None:
        """Redis lost its tail, in which those runs were fetched, and is open again."""
        for run in runs:
            await self.store.connection.client.hdel(self.store.keys.runs, run)
            await self.store.connection.client.zrem(self.store.keys.leases, run)
        await self.open(lost=True)

    async def keep_releasing(self) -> None:
        """A scheduler that queues what comes due: retries, too."""
        while True:
            with suppress(ShardClosed):
                await self.store.runs.release(limit=1000)
            await SystemClock().sleep(_RELEASE_EVERY_MS)


class RunningWorker:
    """store: the worker's. shard: what others do. exits: codes with which the worker wanted to end its process."""

    def __init__(
        self, store: WatchedStore, shard: Shard, runtime: Runtime, stop: anyio.Event, exits: list[int]
    ) -> None:
        self.store, self.shard, self.runtime, self.stop, self.exits = store, shard, runtime, stop, exits

    async def until(self, condition: Callable[[], Any]) -> None:
        await until(condition)

    async def owe(self, *definitions: Definition) -> list[RunId]:
        return await self.shard.owe(*definitions)

    def outcomes(self) -> list[RunState]:
        return [item.outcome for item in self.store.finished]

    def errors(self) -> dict[RunId, str]:
        return {item.run: item.error for item in self.store.finished}

    async def until_started(self, runs: int) -> None:
        """Until so many targets have been called and none of them has ended."""
        await until(lambda: [bool(a.started_at) for a in self.runtime.active.all()] == [True] * runs)


async def until(condition: Callable[[], Any], *, timeout_s: float = 5) -> None:
    async with asyncio.timeout(timeout_s):
        while not condition():  # noqa: ASYNC110 - conditions span threads
            await asyncio.sleep(0.002)  # noqa: TID251


@asynccontextmanager
async def running(
    app: App, *, limits: Limits = LIMITS, clock: Clock | None = None, threads: int = 4, http: bool = False,
    callers: Callers | None = None,
) -> AsyncIterator[RunningWorker]:  # fmt: skip
    """Yields a worker that is at work. clock: of the worker; Redis has the system's. callers: in place of its own."""
    server, clock, exits = RedisInProcess(SystemClock()), clock or SystemClock(), []
    store, shard = WatchedStore(server), Shard(OrderedStore(server))
    await shard.open()
    calls = Calls(app.functions, threads=threads, clock=clock, http=http)
    renewer = OrderedRenewer(server)
    runtime = Runtime(
        store, renewer, worker=WORKER, queues=("default", "http"), callers=callers or calls,
        limits=limits, clock=clock, log=logging.getLogger("test"), leave=exits.append,
    )  # fmt: skip
    stop = anyio.Event()
    try:
        async with asyncio.timeout(20), anyio.create_task_group() as others:
            others.start_soon(shard.keep_releasing)
            async with anyio.create_task_group() as group:
                group.start_soon(runtime.run, stop)
                yield RunningWorker(store, shard, runtime, stop, exits)
                stop.set()
            others.cancel_scope.cancel()
    finally:
        calls.close()
        renewer.close()
        await store.aclose()
        await shard.store.aclose()
