"""A store in memory for the worker's tests: the verbs' replies, without scripts, with faults to order."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any

from rsched.core.errors import ShardClosed, Unavailable
from rsched.core.ids import RunId, WorkerId
from rsched.core.jobs.model import (
    Definition,
    FunctionTarget,
    Misfire,
    RetryPolicy,
    ScheduleSpec,
    Target,
)
from rsched.core.jobs.packed import JobHead
from rsched.core.states import JobState
from rsched.runtime.clock import SystemClock
from rsched.store.run_values import FetchedRun, FetchReply, FinishItem, RenewReply

JOB = "j_0123456789abc"


class FakeClock:
    """Stands still until told; sleeping only yields."""

    def __init__(self) -> None:
        self.boot = 1_000_000

    def boot_ms(self) -> int:
        return self.boot

    def wall_ms(self) -> int:
        return 1_793_000_000_000 + self.boot

    def perf_s(self) -> float:
        return self.boot / 1000

    async def sleep(self, ms: float) -> None:
        await asyncio.sleep(0)  # noqa: TID251

    def sleep_sync(self, ms: float) -> None: ...


def definition(target: Target | None = None, **changes: Any) -> Definition:
    fields: dict[str, Any] = {
        "team": "default", "name": "a job", "incarnation": 1, "schedule": ScheduleSpec(every="5s"),
        "target": target or FunctionTarget(function="work"), "payload": None, "timeout_s": 60, "retry": RetryPolicy(),
        "misfire_policy": "run_once", "misfire": Misfire(), "overlap": "allow", "priority": "normal", "tags": [],
        "created_at": 0, "updated_at": 0, "key": None, "body_hash": "",
    }  # fmt: skip
    return Definition(**{**fields, **changes})


HEAD = JobHead(JobState.ACTIVE, 1, 1, 0, "e", "0,5000", "o", 60000, "default:default:1")


def fetched(number: int, d: Definition | None = None, *, attempt: int = 1) -> FetchedRun:
    run = RunId(f"{JOB}:{1_793_000_000_000 + number}")
    return FetchedRun(run, attempt, number, 1_793_000_000_000, False, HEAD, d or definition())


class FakeStore:
    """It is all the parts that a worker uses. lose: verbs whose next reply is lost after it took effect. closed: everything but adopt is refused."""

    def __init__(self) -> None:
        self.runs = self.clock = self.connection = self.processes = self.signals = self
        self.on_new_generation: Callable[[], Awaitable[None]] | None = None
        self.queue: list[FetchedRun] = []
        self.active: dict[str, FetchedRun] = {}
        self.finished: list[FinishItem] = []
        self.returned: list[str] = []
        self.adopted: list[list[str]] = []
        self.finish_calls: list[int] = []
        self.cancelled: set[str] = set()
        self.lose: list[str] = []
        self.closed = self.renewals_fail = self.stale_generation = self.left = False
        self.renewed = 0
        self._last_fetch: tuple[int, list[FetchedRun]] = (0, [])
        self._last_finish = 0
        self._signals: asyncio.Queue[tuple[str, str]] = asyncio.Queue()
        self._clock = SystemClock()

    def add(self, *runs: FetchedRun) -> None:
        self.queue.extend(runs)
        self.signal("work", "default")

    def signal(self, kind: str, argument: str) -> None:
        self._signals.put_nowait((kind, argument))

    def forget(self) -> None:
        """Redis lost its tail and is open again under another generation."""
        self.active.clear()
        self.stale_generation = True

    def now_ms(self) -> int:
        return self._clock.wall_ms()

    async def _enter(self) -> None:
        if self.closed:
            raise ShardClosed("closed")
        if self.stale_generation:
            self.stale_generation = False
            assert self.on_new_generation is not None
            await self.on_new_generation()

    def _leave(self, verb: str) -> None:
        if verb in self.lose:
            self.lose.remove(verb)
            raise Unavailable("the reply was lost")

    async def fetch(
        self, worker: WorkerId, *, request: int, slots: int, lease_ms: int, queues: Sequence[str]
    ) -> FetchReply:
        await self._enter()
        if request != self._last_fetch[0]:
            runs, self.queue = self.queue[:slots], self.queue[slots:]
            self._last_fetch = (request, runs)
            self.active.update((r.run, r) for r in runs)
        runs = self._last_fetch[1]
        self._leave("fetch")
        return FetchReply(self.now_ms(), self.now_ms() + lease_ms, runs, bool(self.queue))

    async def finish(self, worker: WorkerId, *, request: int, items: Sequence[FinishItem]) -> list[str]:
        await self._enter()
        self.finish_calls.append(request)
        tags = []
        for item in items:
            run = self.active.get(item.run)
            if request == self._last_finish:
                tags.append("already")
            elif run is None:
                tags.append("missing")
            elif run.fence != item.fence:
                tags.append("stale_fence")
            else:
                del self.active[item.run]
                self.finished.append(item)
                tags.append("ok")
        self._last_finish = request
        self._leave("finish")
        return tags

    async def requeue(self, worker: WorkerId, items: Sequence[tuple[RunId, int]]) -> list[str]:
        await self._enter()
        self.returned.extend(run for run, _ in items)
        return ["ok" for _ in items]

    def _tag(self, run: str, fence: int) -> str:
        if run not in self.active:
            return "missing"
        if self.active[run].fence != fence:
            return "stale_fence"
        return "cancel" if run in self.cancelled else "ok"

    def renew_now(self, items: Sequence[tuple[RunId, int]]) -> RenewReply:
        if self.renewals_fail or self.closed:
            raise Unavailable("away")
        self.renewed += 1
        return RenewReply(0, 0, [self._tag(run, fence) for run, fence in items])

    async def renew(self, worker: WorkerId, *, lease_ms: int, items: Sequence[tuple[RunId, int]]) -> RenewReply:
        await self._enter()
        return self.renew_now(items)

    async def adopt(
        self, worker: WorkerId, *, lease_ms: int, queues: Sequence[str], items: Sequence[tuple[RunId, int, int]]
    ) -> list[str]:
        self._leave("adopt")
        self.adopted.append([run for run, _, _ in items])
        for run, attempt, fence in items:
            number = int(run.rpartition(":")[2]) - 1_793_000_000_000
            self.active[run] = fetched(number, attempt=attempt)._replace(fence=fence)
        return ["ok" for _ in items]

    async def forget_worker(self, worker: WorkerId) -> None:
        self.left = True

    async def listen(self) -> AsyncIterator[tuple[str, str]]:
        while True:
            yield await self._signals.get()


class FakeRenewer:
    def __init__(self, store: FakeStore) -> None:
        self.store = store

    def renew(self, worker: WorkerId, *, lease_ms: int, items: Sequence[tuple[RunId, int]]) -> RenewReply:
        return self.store.renew_now(items)

    def close(self) -> None: ...
