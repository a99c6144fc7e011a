"""What a worker needs of the store; rsched.store.Store and SyncRenewer are these, tests bring smaller ones."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Protocol

from rsched.core.ids import RunId, WorkerId
from rsched.store.run_values import FetchReply, FinishItem, RenewReply


class WorkerRuns(Protocol):
    """The verbs on runs that a worker calls; see rsched.store.runs."""

    async def fetch(
        self, worker: WorkerId, *, request: int, slots: int, lease_ms: int, queues: Sequence[str]
    ) -> FetchReply: ...

    async def finish(self, worker: WorkerId, *, request: int, items: Sequence[FinishItem]) -> list[str]: ...

    async def requeue(self, worker: WorkerId, items: Sequence[tuple[RunId, int]]) -> list[str]: ...

    async def renew(self, worker: WorkerId, *, lease_ms: int, items: Sequence[tuple[RunId, int]]) -> RenewReply: ...

    async def adopt(
        self, worker: WorkerId, *, lease_ms: int, queues: Sequence[str], items: Sequence[tuple[RunId, int, int]]
    ) -> list[str]: ...


class ServerClock(Protocol):
    """Redis' clock as far as the process knows it (ms)."""

    def now_ms(self) -> int: ...


class SignOff(Protocol):
    """Forgets a worker that has no attempts any more."""

    async def forget_worker(self, worker: WorkerId) -> None: ...


class WakeUps(Protocol):
    """Wake-ups as (kind, argument)."""

    def listen(self) -> AsyncIterator[tuple[str, str]]: ...


class GenerationWatch(Protocol):
    """Where a worker says what to do when the shard turns out to have another generation."""

    on_new_generation: Callable[[], Awaitable[None]] | None


class WorkerStore(Protocol):
    """The parts of a store that a worker uses."""

    @property
    def runs(self) -> WorkerRuns: ...

    @property
    def clock(self) -> ServerClock: ...

    @property
    def processes(self) -> SignOff: ...

    @property
    def signals(self) -> WakeUps: ...

    @property
    def connection(self) -> GenerationWatch: ...


class Renewer(Protocol):
    """Renews leases from a thread of its own."""

    def renew(self, worker: WorkerId, *, lease_ms: int, items: Sequence[tuple[RunId, int]]) -> RenewReply: ...

    def close(self) -> None: ...
