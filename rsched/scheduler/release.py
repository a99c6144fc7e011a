"""Release at the instant. Any scheduler does it; it needs no ownership."""

from __future__ import annotations

from rsched.runtime.metrics import RELEASED
from rsched.scheduler.ports import ReleaseStore


class Releaser:
    """`next_at`: the next instant (Redis-clock ms) known at which something is to be released."""

    def __init__(self, store: ReleaseStore, *, batch: int) -> None:
        self._store, self._batch = store, batch
        self.next_at: int | None = None

    async def step(self) -> bool:
        """Releases a batch of runs; True when there may be more."""
        reply = await self._store.runs.release(limit=self._batch)
        self.next_at = reply.next_at
        self._store.connection.metrics.add(RELEASED, by=reply.total)
        return reply.more
