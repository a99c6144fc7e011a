"""Forgets jobs that ended long ago and workers that died, and makes partitions ahead."""

from __future__ import annotations

from rsched.ledger import Ledger
from rsched.runtime.clock import Clock
from rsched.store.store import Store

_PAGE = 500
_RARELY_MS = 3_600_000


class Housekeeping:
    def __init__(self, store: Store, ledger: Ledger, *, shard: str, clock: Clock, forget_after_s: float) -> None:
        self._store, self._ledger, self._shard, self._clock = store, ledger, shard, clock
        self._forget_after_ms = int(forget_after_s * 1000)
        self._rare_at = clock.boot_ms()

    async def step(self) -> bool:
        """One page of jobs to forget; True when there may be more. Unavailable."""
        now = self._clock.boot_ms()
        if now - self._rare_at >= _RARELY_MS:
            await self._ledger.make_partitions_ahead()
            await self._store.leave_silent(silent_ms=_RARELY_MS)
            self._rare_at = now
        before = self._clock.wall_ms() - self._forget_after_ms
        items = await self._ledger.forgettable(self._shard, before_ms=before, limit=_PAGE)
        if not items:
            return False
        # Redis first: what is marked here is never looked at again. It drops only these very versions.
        await self._store.forget(items)
        await self._ledger.mark_forgotten(items)
        return len(items) == _PAGE
