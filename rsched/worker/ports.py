"""What a worker needs of the store; rsched.store.Store and SyncRenewer are these, tests bring smaller ones."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Protocol

from rsched.core.ids import RunId, WorkerId
from rsched.store.run_values import FetchReply, FinishItem, RenewReply


class WorkStore(Protocol):
    on_new_generation: Callable[[], Awaitable[None]] | None

    def now_ms(self) -> int: ...

    async def fetch(
        self, worker: WorkerId, *, request: int, slots: int, lease_ms: int, queues: Sequence[str]
    ) -> FetchReply: ...

    async def finish(self, worker: WorkerId, *, request: int, items: Sequence[FinishItem]) -> list[str]: ...

    async def requeue(self, worker: WorkerId, items: Sequence[tuple[RunId, int]]) -> list[str]: ...

    async def renew(self, worker: WorkerId, *, lease_ms: int, items: Sequence[tuple[RunId, int]]) -> RenewReply: ...

    async def adopt(
        self, worker: WorkerId, *, lease_ms: int, queues: Sequence[str], items: Sequence[tuple[RunId, int, int]]
    ) -> list[str]: ...

    async def leave(self, worker: WorkerId) -> None: ...

    def signals(self) -> AsyncIterator[tuple[str, str]]: ...


class Renewer(Protocol):
    def renew(self, worker: WorkerId, *, lease_ms: int, items: Sequence[tuple[RunId, int]]) -> RenewReply: ...

    def close(self) -> None: ...
