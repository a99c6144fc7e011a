"""Release at the instant, and paying out of catch-up ranges at a pace. Any scheduler does both; neither needs ownership."""

from __future__ import annotations

import logging

from rsched.core.packed import JobHead
from rsched.core.schedule import load
from rsched.store.store import Store

PAYOUT = 10
PACE_MS = 1000


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
        self._store, self._log = store, log

    async def step(self) -> bool:
        ranges = await self._store.catchup(limit=100)
        for found in ranges:
            record = await self._store.get_job(found.job)
            if record is None or isinstance(record, JobHead):
                await self._store.payout(found, occurrences=(), rest=None, pace_ms=PACE_MS)
                continue
            definition = record.definition
            schedule = load(definition.schedule, team=definition.team, name=definition.name)
            ahead = [t for t in schedule.upcoming(found.start - 1, PAYOUT + 1) if t <= found.end]
            rest = found._replace(start=ahead[PAYOUT]) if len(ahead) > PAYOUT else None
            await self._store.payout(found, occurrences=ahead[:PAYOUT], rest=rest, pace_ms=PACE_MS)
        return len(ranges) == 100
