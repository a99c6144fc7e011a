"""Release at the instant, and paying out of catch-up ranges at a pace. Any scheduler does both; neither needs ownership."""

from __future__ import annotations

import logging

from rsched.scheduler.schedules import Schedules
from rsched.store.store import Store

PAYOUT = 10
PACE_MS = 1000
_PAGE = 100


class Releaser:
    """`next_at`: the next instant (Redis-clock ms) known at which something is to be released."""

    def __init__(self, store: Store, *, batch: int) -> None:
        self._store, self._batch = store, batch
        self.next_at: int | None = None

    async def step(self) -> bool:
        reply = await self._store.release(limit=self._batch)
        self.next_at = reply.next_at
        return reply.more


class CatchUp:
    """Pays each range PAYOUT occurrences every PACE_MS, oldest first, so that a long catch-up delays nobody."""

    def __init__(self, store: Store, *, log: logging.Logger) -> None:
        self._store, self._schedules = store, Schedules(store, log=log)

    async def step(self) -> bool:
        ranges = await self._store.catchup(limit=_PAGE)
        for found in ranges:
            active = await self._schedules.of(found.job)
            # Of a job that is not active the script puts the rest on record as skipped.
            ahead = [] if active is None else active[1].upcoming(found.start - 1, PAYOUT + 1)
            owed = [t for t in ahead if t <= found.end]
            rest = found._replace(start=owed[PAYOUT]) if len(owed) > PAYOUT else None
            await self._store.payout(found, occurrences=owed[:PAYOUT], rest=rest, pace_ms=PACE_MS)
        return len(ranges) == _PAGE
