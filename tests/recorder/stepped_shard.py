"""A shard with its ledger, whose scheduler, worker and recorder are steps that a test drives."""

from __future__ import annotations

import logging
import random
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import anyio
from redis.asyncio import Redis

from rsched.core.ids import JobId, RunId, WorkerId, derive_job_id
from rsched.core.jobs.model import ScheduleSpec
from rsched.core.jobs.packed import JobHead, JobRecord, unpack_run
from rsched.core.schedule.schedule import load
from rsched.core.states import JobState, RunState
from rsched.ledger import Ledger
from rsched.ledger.positions import parse_position
from rsched.recorder.reconcile.reconciler import Reconciler
from rsched.recorder.recovery.recovery import STREAMS
from rsched.recorder.stream import Gap, StreamRecorder
from rsched.runtime.clock import SystemClock
from rsched.scheduler.claim import Claimer
from rsched.scheduler.reap import Reaper
from rsched.store.connection import Connection, connect
from rsched.store.jobs import PutItem
from rsched.store.keys import Keys
from rsched.store.run_values import FinishItem
from rsched.store.store import Store
from tests.ledger.events import definition
from tests.support.store_world import World

CLOCK = SystemClock()
LOG = logging.getLogger("rsched.scheduler")
WORKER = WorkerId("w1")
HOUR = 3_600_000


async def _no_gap(*_: object) -> None:
    raise AssertionError("a gap in the journal")


@dataclass
class Shard:
    """A shard with its ledger; scheduler, worker and recorder are steps that a test drives."""

    store: Store
    ledger: Ledger
    world: World
    redis: Redis
    shard: str = "s0"
    done: Counter[str] = field(default_factory=Counter)
    request: int = 0
    gap: Gap = _no_gap

    def __post_init__(self) -> None:
        self.claimer = Claimer(
            self.store, "sch", epochs=None, lookahead_ms=5000, batch=500, lost=lambda p: None, claimed=lambda: None,
            clock=CLOCK, log=LOG,
        )  # fmt: skip
        self.reaper = Reaper(self.store, after_ms=0, rng=random.Random(1), log=LOG)
        self.streams = {
            s: StreamRecorder(self.store, self.ledger, shard=self.shard, stream=s, clock=CLOCK, batch=5000, keep_ms=60_000,
                              linger_ms=0, gap=self.gap)
            for s in STREAMS
        }  # fmt: skip

    @property
    def keys(self) -> Keys:
        return self.store.keys

    async def put(self, name: str, *, due_in: int = 0, every: int = HOUR, kind: str = "e", overlap: str = "") -> JobId:
        """A job of one occurrence (kind o), of an interval or of `0 * * * *`."""
        now = await self.store.clock.read()
        due = now + due_in
        job = derive_job_id("default", name, 1)

        spec = {
            "o": ScheduleSpec(at="x"),
            "e": ScheduleSpec(every=f"{every}ms"),
            "c": ScheduleSpec(cron="0 * * * *", timezone="UTC"),
        }[kind]
        d = definition(name, schedule=spec, created_at=now, updated_at=now)
        arg = {"o": str(due), "e": f"{due},{every}", "c": "hourly"}[kind]
        if kind == "c":
            due = load(d).next_after(now) or 0
        head = JobHead(JobState.ACTIVE, 1, 1, now - 1, kind, arg, "o", 60_000, d.queue_key, overlap=overlap)  # type: ignore[arg-type]
        assert (await self.store.jobs.put([PutItem(job, 0, due, JobRecord(head, d).pack())], atomic=True)).ok
        return job

    async def record(self) -> None:
        """Until the ledger has all of the journal."""
        for stream, recorder in self.streams.items():
            while parse_position(await self.ledger.write.position(self.shard, stream)) < parse_position(
                await self.store.journal.get_last_id(stream)
            ):
                await recorder.step(block_ms=1)

    async def schedule(self) -> None:
        while await self.claimer.step():
            pass
        while (await self.store.runs.release(limit=500)).more:
            pass

    async def work(self, *, slots: int = 100) -> list[RunId]:
        """Fetches and ends what can be had."""
        self.request += 1
        fetched = await self.store.runs.fetch(
            WORKER, request=self.request, slots=slots, lease_ms=60_000, queues=["default"]
        )
        items = [FinishItem(r.run, r.fence, RunState.SUCCEEDED, 0, fetched.now, "") for r in fetched.runs]
        if items:
            tags = await self.store.runs.finish(WORKER, request=self.request, items=items)
            self.done.update(r.run for r, tag in zip(fetched.runs, tags, strict=True) if tag == "ok")
        return [r.run for r in fetched.runs]

    async def drain(self) -> None:
        """Schedules and works until nothing is left that is due; what a lost worker held is taken from it."""
        for run, record in (await self.redis.hgetall(self.keys.runs)).items():
            if unpack_run(record.decode()).state is RunState.RUNNING:
                await self.redis.zadd(self.keys.leases, {run: 1})
        while await self.reaper.step():
            pass
        for name in (self.keys.retries, self.keys.staged):
            for member in await self.redis.zrange(name, 0, -1):
                await self.redis.zadd(name, {member: 1})
        idle = 0
        while idle < 2:
            await self.schedule()
            idle = 0 if await self.work() else idle + 1

    async def reconcile(self, *, write: bool = True) -> Counter[str]:
        """One pass while the recorder goes on."""
        counted: Counter[str] = Counter()
        reconciler = Reconciler(
            self.store, self.ledger, shard=self.shard, clock=CLOCK, lease_ms=60_000, write=write,
            count=lambda kind, n: counted.update({kind: n}),
        )  # fmt: skip
        await self.record()
        async with self.recording():
            found = await reconciler.run_pass()
        assert found is not None
        assert counted == found
        assert reconciler.unsure == 0
        return found

    @asynccontextmanager
    async def recording(self) -> AsyncIterator[None]:
        async def loop(recorder: StreamRecorder) -> None:
            while True:
                await recorder.step(block_ms=20)

        async with anyio.create_task_group() as group:
            for recorder in self.streams.values():
                group.start_soon(loop, recorder)
            yield
            group.cancel_scope.cancel()
        # A step that was cut short has read what it has not recorded.
        self.__post_init__()


InShard = Callable[[Callable[[Shard], Awaitable[None]]], None]


async def within(redis_url: str, database_url: str, prefix: str, body: Callable[[Shard], Awaitable[None]]) -> None:
    store = Store(Connection(connect(redis_url), Keys(prefix, "s0"), CLOCK))
    redis = Redis.from_url(redis_url)
    try:
        async with Ledger(database_url, clock=CLOCK) as ledger:
            generation, fence = await ledger.recovery.generations.next("s0", redis_fence=0)
            await ledger.write.make_partitions_ahead()
            world = World(store)
            await world.open(generation, fence=fence)
            await body(Shard(store, ledger, world, redis))
    finally:
        await redis.aclose()
        await store.aclose()
