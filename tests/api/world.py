"""The API in this process: its real Store on a Redis inside the process, its real Ledger on the tests' Postgres.

One seam is not the real thing: what waits for a journal entry has it recorded there and then (`RecordsAtOnce`), by the recorder's
own step. So a test needs no recorder beside it, and can withhold the record.
"""

from __future__ import annotations

from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

from rsched_api.app import create_app

from rsched.core.ids import JobId, RunId, WorkerId, partition_of
from rsched.core.jobs.packed import JobHead, JobRecord, RunRecord
from rsched.core.settings import ApiSettings
from rsched.core.states import RunState
from rsched.ledger import Ledger
from rsched.recorder.recovery.recovery import STREAMS
from rsched.recorder.stream import StreamRecorder
from rsched.store.restore import RestoreProgress
from rsched.store.run_values import FetchedRun, FinishItem
from tests.api.calls import Caller
from tests.support.clocks import HandClock
from tests.support.fake_redis import OrderedStore, RedisInProcess

NOW = 1_793_000_000_000
LEASE_MS = 60_000
WORKER = WorkerId("w_test")
T = TypeVar("T")


def job(**changes: Any) -> dict[str, Any]:
    """Returns the body of a request for a nightly job that calls an address, with other fields in place of these."""
    return {
        "schedule": {"cron": "0 2 * * *", "timezone": "Asia/Kolkata"},
        "target": {"type": "http", "url": "https://billing.internal/run"},
    } | changes


async def _no_gap(*_: object) -> None:
    raise AssertionError("a gap in the journal")


class RecordsAtOnce:
    """In place of the ledger's Waiter. answers: whether what is waited for is recorded; if not, each wait is over in no time."""

    def __init__(self, store: OrderedStore, ledger: Ledger, clock: HandClock) -> None:
        self.answers = True
        self.waited: list[str] = []
        self._recorders = [
            StreamRecorder(store, ledger, shard="s0", stream=stream, clock=clock, batch=5000, keep_ms=60_000, linger_ms=0,
                           gap=_no_gap)
            for stream in STREAMS
        ]  # fmt: skip

    async def wait_recorded(self, shard: str, stream: str, journal_id: str, timeout_s: float) -> bool:
        self.waited.append(f"{shard} {stream} {journal_id}")
        if self.answers:
            await self.record()
        return self.answers

    async def record(self) -> None:
        for recorder in self._recorders:
            while await recorder.step(block_ms=0):
                pass


@dataclass
class World:
    """The app, and what a test looks into and drives beside it: a scheduler and a worker, stepped by hand."""

    call: Caller
    clock: HandClock
    store: OrderedStore
    ledger: Ledger
    waiter: RecordsAtOnce
    _request: int = 0
    _fetched: dict[str, FetchedRun] = field(default_factory=dict)

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return self.call.run(coroutine)  # type: ignore[no-any-return]

    def create(self, **changes: Any) -> Any:
        answer = self.call("POST", "/v1/jobs", job(**changes))
        assert answer.status == 201, answer.body
        return answer.json

    def jobs(self) -> list[str]:
        """Ids of all jobs that Redis has."""
        return self.run(self._ids())

    def record_of(self, job_id: str) -> JobRecord:
        """The job as Redis has it."""
        record = self.run(self.store.jobs.get(JobId(job_id)))
        assert isinstance(record, JobRecord)
        return record

    def head_of(self, job_id: str) -> JobHead:
        return self.record_of(job_id).head

    def due_of(self, job_id: str) -> int | None:
        """When the job is next due, ms."""
        return self.run(self.store.jobs.get_due_times([JobId(job_id)])).get(JobId(job_id))

    def runs(self) -> list[str]:
        """Runs in Redis, none of which is final."""
        return [run.decode() for run in self.run(self.store.connection.client.hkeys(self.store.keys.runs))]

    def run_record(self, run_id: str) -> RunRecord:
        record = self.run(self.store.runs.get(RunId(run_id)))
        assert record is not None
        return record

    def record(self) -> None:
        """Everything in the journal is recorded."""
        self.run(self.waiter.record())

    @contextmanager
    def recorder(self) -> Iterator[None]:
        """A recorder holds its lock on the shard."""
        held = self.ledger.recovery.generations.acquire_recorder("s0")
        assert self.run(held.__aenter__()) is not None
        yield
        self.run(held.__aexit__(None, None, None))

    def set_due(self, job_id: str, ms: int) -> None:
        """The job stands in its due set for another instant than it was put for."""
        self.run(self.store.connection.client.zadd(self.store.keys.due(partition_of(JobId(job_id))), {job_id: ms}))

    def claim(self, job_id: str) -> None:
        """A scheduler claims and releases what the job has due by now."""
        self.run(self.store.runs.claim("s", horizon_ms=0, limit=100, partitions=[(partition_of(JobId(job_id)), 0)]))
        self.release()

    def release(self) -> None:
        """A scheduler queues all that is due by now."""
        while self.run(self.store.runs.release(limit=100)).more:
            pass

    def start(self, *, worker: WorkerId = WORKER) -> list[str]:
        """A worker fetches all that is queued; the runs."""

        async def fetch() -> list[FetchedRun]:
            self._request += 1
            queues = ["default", "http"]
            return (
                await self.store.runs.fetch(worker, request=self._request, slots=100, lease_ms=LEASE_MS, queues=queues)
            ).runs

        fetched = self.run(fetch())
        self._fetched |= {run.run: run for run in fetched}
        return [run.run for run in fetched]

    def end(self, run_id: str, outcome: RunState = RunState.SUCCEEDED, *, started_at: int = 0) -> None:
        """The worker ends a run that it fetched, and that is recorded. started_at: when its target was called, ms."""
        fetched = self._fetched.pop(run_id)
        self._request += 1
        item = FinishItem(fetched.run, fetched.fence, outcome, 0, started_at or self.clock.ms, "")
        assert self.run(self.store.runs.finish(WORKER, request=self._request, items=[item])) == ["ok"]
        self.record()

    def run_once(self, job_id: str) -> None:
        """The occurrence of the job whose instant has come runs and succeeds."""
        self.claim(job_id)
        (run,) = self.start()
        self.end(run)

    def complete(self, job_id: str) -> None:
        """A one-off whose instant has come runs, and Redis forgets the job."""
        self.run_once(job_id)
        self.forget(job_id)

    def forget(self, job_id: str) -> None:
        """Redis drops a job that is over, as the recorder's housekeeping has it do."""
        assert self.run(self.store.jobs.forget([(JobId(job_id), self.head_of(job_id).version)])) == 1

    def lose(self, *, keep: bool = True, done: int = 0) -> None:
        """Redis was emptied, and is open again. Runs are back; definitions are still to come.

        Args:
            keep: the definitions that it had are among those that are back already.
            done: how many of ten definitions are said to be back.
        """
        self.record()
        self.run(self._emptied(keep=keep, done=done))

    async def _emptied(self, *, keep: bool, done: int) -> None:
        jobs = [JobId(job) for job in await self._ids()] if keep else []
        records = {job: await self.store.jobs.get(job) for job in jobs}
        dues = await self.store.jobs.get_due_times(jobs)
        runs = await self.store.connection.client.hgetall(self.store.keys.runs)
        await self.store.connection.client.flushall()
        generation, fence = await self.ledger.recovery.generations.next(
            "s0", redis_fence=await self.store.recovery.get_fence()
        )
        assert await self.store.recovery.begin(generation, fence=fence, lost=True)
        items = [(job, dues.get(job), r.pack()) for job, r in records.items() if isinstance(r, JobRecord)]
        if items:
            await self.store.restore.put_jobs(items)
        if runs:
            await self.store.restore.put_runs(
                [(RunId(k.decode()), v.decode()) for k, v in runs.items()], lease_ms=LEASE_MS
            )
        await self.store.restore.set_progress(RestoreProgress("jobs", generation, done, 10, 0, self.clock.ms))
        await self.store.recovery.finish(recovery_grace_ms=0)

    async def _ids(self) -> list[str]:
        keys = self.store.keys
        found = [
            key async for key in self.store.connection.client.scan_iter(match=f"{keys.prefix}:*:jobs:*", count=5000)
        ]
        return [job.decode() for key in found for job in await self.store.connection.client.hkeys(key)]

    def all_is_back(self) -> None:
        """Nothing is left to be restored."""

        async def over() -> None:
            repair = await self.store.restore.get_progress()
            assert repair is not None
            await self.store.restore.set_progress(repair._replace(phase="done"))

        self.run(over())


@contextmanager
def opened_world(ledger: Ledger, clock: HandClock, call: Any) -> Iterator[World]:
    """Yields the API over an open, empty shard.

    Args:
        ledger: an empty one, whose clock is `clock`.
        clock: of the API, of Redis and of the ledger.
        call: makes the Caller of an app.
    """
    store = OrderedStore(RedisInProcess(clock))
    waiter = RecordsAtOnce(store, ledger, clock)
    app = create_app(ApiSettings(), clock=clock, store=store, ledger=ledger, waiter=waiter)  # type: ignore[arg-type]
    with call(app) as caller:
        world = World(caller, clock, store, ledger, waiter)

        async def opened() -> None:
            generation, fence = await ledger.recovery.generations.next("s0", redis_fence=0)
            assert await store.recovery.begin(generation, fence=fence)
            await store.recovery.finish(recovery_grace_ms=0)

        world.run(opened())
        try:
            yield world
        finally:
            world.run(store.aclose())
