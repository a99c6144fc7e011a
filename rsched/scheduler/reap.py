"""Ending attempts whose lease ended: the attempt counts, and the job's retry policy decides what comes next."""

from __future__ import annotations

import logging
import random

from rsched.core.retry import backoff_ms
from rsched.runtime.metrics import REAPED
from rsched.scheduler.ports import ReapStore
from rsched.store.run_values import ReapItem

_PAGE = 100


class Reaper:
    """Ends attempts whose lease has ended, a page a step."""

    def __init__(self, store: ReapStore, *, after_ms: int, rng: random.Random, log: logging.Logger) -> None:
        self._store, self._after_ms, self._rng, self._log = store, after_ms, rng, log

    async def step(self) -> bool:
        """Reaps a page of attempts; True when there may be more."""
        expired, more = await self._store.runs.expired_leases(after_ms=self._after_ms, limit=_PAGE)
        # Asked after the reply, whose own time may show the step. By a clock that stepped ahead, leases end that workers keep.
        if not expired or self._store.clock.stepped_recently:
            return False
        items = []
        for run, record, job in expired:
            retry = job.definition.retry if job else None
            attempt = record.attempt if record else 0
            fence = record.fence if record else 0
            if retry is None:
                items.append(ReapItem(run, fence, "N", 0))
            elif attempt >= retry.max_attempts:
                items.append(ReapItem(run, fence, "D", 0))
            else:
                items.append(ReapItem(run, fence, "T", backoff_ms(retry, attempt, self._rng)))
        tags = await self._store.runs.reap(items, after_ms=self._after_ms)
        reaped = tags.count("ok")
        if reaped:
            self._store.connection.metrics.add(REAPED, by=reaped)
            self._log.warning("leases ended without a word from their workers: %d", reaped)
        # What could not be reaped now would be found again at once.
        return more and (reaped > 0 or "missing" in tags)
