"""What a worker needs of the store; rsched.store.Store and SyncRenewer satisfy it, and tests bring smaller ones."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Protocol

from rsched.core.ids import RunId, WorkerId
from rsched.store.run_values import FetchReply, FinishItem, RenewReply


class WorkerRuns(Protocol):
    """The verbs on runs that a worker calls; rsched.store.runs documents their arguments and errors."""

    async def fetch(
        self, worker: WorkerId, *, request: int, slots: int, lease_ms: int, queues: Sequence[str]
    ) -> FetchReply:
        """Leases up to `slots` runs for lease_ms."""

    async def finish(self, worker: WorkerId, *, request: int, items: Sequence[FinishItem]) -> list[str]:
        """Reports how attempts ended; returns a tag for each."""

    async def requeue(self, worker: WorkerId, items: Sequence[tuple[RunId, int]]) -> list[str]:
        """Returns (run, fence) pairs that were not started to their queues; a tag for each."""

    async def renew(self, worker: WorkerId, *, lease_ms: int, items: Sequence[tuple[RunId, int]]) -> RenewReply:
        """Extends the leases of (run, fence) pairs to lease_ms from now."""

    async def adopt(
        self, worker: WorkerId, *, lease_ms: int, queues: Sequence[str], items: Sequence[tuple[RunId, int, int]]
    ) -> list[str]:
        """Confirms (run, attempt, fence) triples after a recovery; returns a tag for each."""


class ServerClock(Protocol):
    """Redis' clock as far as the process knows it."""

    def now_ms(self) -> int:
        """Returns Redis' time (ms, UTC), without asking Redis."""


class SignOff(Protocol):
    """Lets a worker sign off."""

    async def forget_worker(self, worker: WorkerId) -> None:
        """Removes a worker that has no attempts any more."""


class WakeUps(Protocol):
    """What Redis publishes to wake loops up."""

    def listen(self) -> AsyncIterator[tuple[str, str]]:
        """Yields wake-ups as (kind, argument)."""


class GenerationWatch(Protocol):
    """Calls what a worker sets here when the shard turns out to have another generation."""

    on_new_generation: Callable[[], Awaitable[None]] | None


class WorkerStore(Protocol):
    """The parts of a store that a worker uses."""

    @property
    def runs(self) -> WorkerRuns:
        """The verbs on runs."""

    @property
    def clock(self) -> ServerClock:
        """Redis' clock."""

    @property
    def processes(self) -> SignOff:
        """The register of processes."""

    @property
    def signals(self) -> WakeUps:
        """The wake-ups."""

    @property
    def connection(self) -> GenerationWatch:
        """The connection, which notices a new generation."""


class Renewer(Protocol):
    """Renews leases from a thread of its own."""

    def renew(self, worker: WorkerId, *, lease_ms: int, items: Sequence[tuple[RunId, int]]) -> RenewReply:
        """Extends the leases of (run, fence) pairs to lease_ms from now; blocks until Redis answers."""

    def close(self) -> None:
        """Closes the connection."""
