"""Brings back which triggers came with an idempotency key: a part of a background restore.

Authority: the ledger, until all are back. Whoever is asked to repeat a trigger meanwhile looks there, so nobody waits for this.
"""

from __future__ import annotations

from rsched.core.jobs.packed import KEYED_FOR_MS
from rsched.ledger import Ledger
from rsched.store.store import Store

# Of one script: about 3 ms of Redis, which claims wait for.
_PAGE = 300


class KeyedTriggers:
    """step() restores a page. What Redis has stays, so that a page too many changes nothing."""

    def __init__(self, store: Store, ledger: Ledger, *, shard: str, generation: int) -> None:
        self._store, self._ledger, self._shard = store, ledger, shard
        self._generation = generation
        self._after = ("", "")
        self._since: int | None = None

    async def step(self) -> bool:
        """False when all are back. Unavailable."""
        if self._since is None:
            self._since = await self._store.clock.read() - KEYED_FOR_MS
        page = await self._ledger.recovery.triggers.page(self._shard, after=self._after, since=self._since, limit=_PAGE)
        if page:
            await self._store.restore.put_triggers(page, generation=self._generation)
            self._after = page[-1][:2]
        return len(page) == _PAGE
