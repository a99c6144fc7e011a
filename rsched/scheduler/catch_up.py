"""Paying out catch-up ranges, oldest first, at a pace that delays nobody. Any scheduler does it; it needs no ownership."""

from __future__ import annotations

import logging
import math
from collections import Counter
from collections.abc import Callable, Sequence

from rsched.core.ids import JobId
from rsched.core.packed import JobRecord
from rsched.core.schedule import Schedule
from rsched.core.states import JobState
from rsched.runtime.clock import Clock
from rsched.scheduler.schedules import Schedules
from rsched.store.store import Store
from rsched.store.ticks import CatchupRange

PACE_MS = 1000
_PAGE = 500


class CatchUp:
    """Each second a job gets up to per_s of its late occurrences; all of a queue with work waiting, `share` of its starts."""

    def __init__(
        self,
        store: Store,
        *,
        per_s: int,
        share: float,
        schedulers: Callable[[], int],
        clock: Clock,
        log: logging.Logger,
    ) -> None:
        """schedulers: how many there are, which share what a queue allows."""
        self._store, self._schedules = store, Schedules(store, log=log)
        self._per_s, self._share, self._schedulers, self._clock = per_s, share, schedulers, clock
        self._started: dict[str, tuple[int, int]] = {}

    async def step(self) -> bool:
        """Pays what may be paid now; more: a full page of ranges was looked at and something was paid."""
        ranges = await self._store.catchup(limit=_PAGE)
        if not ranges:
            return False
        jobs = list(dict.fromkeys(r.job for r in ranges))
        active = await self._schedules.of_all(jobs)
        stopped = [job for job in jobs if job not in active]
        paused = await self._schedules.of_all(stopped, state=JobState.PAUSED) if stopped else {}
        room = await self._room([record for record, _ in active.values()])
        paid: Counter[JobId] = Counter()
        for found in ranges:
            if found.job in active:
                record, schedule = active[found.job]
                queue = _queue(record)
                most = int(min(self._per_s - paid[found.job], room[queue]))
                if most > 0:
                    count = await self._pay(found, schedule, most)
                    paid[found.job] += count
                    room[queue] -= count
            else:
                # The script puts the rest on record as skipped.
                left = paused[found.job][1].missed(found.start - 1, found.end).count if found.job in paused else 0
                await self._store.payout(found, occurrences=[], rest=None, pace_ms=PACE_MS, left=left)
        return len(ranges) == _PAGE and paid.total() > 0

    async def _pay(self, found: CatchupRange, schedule: Schedule, most: int) -> int:
        owed = [t for t in schedule.upcoming(found.start - 1, most + 1) if t <= found.end]
        rest = found._replace(start=owed[most]) if len(owed) > most else None
        left = 0 if rest is None else schedule.missed(found.start - 1, found.end).count
        await self._store.payout(found, occurrences=owed[:most], rest=rest, pace_ms=PACE_MS, left=left)
        return min(len(owed), most)

    async def _room(self, records: Sequence[JobRecord]) -> dict[str, float]:
        """How many more late runs each queue takes now: any number while nobody waits in it."""
        now = self._clock.boot_ms()
        room: dict[str, float] = {}
        for queue, load in (await self._store.queue_loads(sorted({_queue(r) for r in records}))).items():
            before, since = self._started.get(queue, (load.started, now - PACE_MS))
            self._started[queue] = load.started, now
            fair = self._share * (load.started - before) * PACE_MS / max(now - since, 1) / max(self._schedulers(), 1)
            room[queue] = max(1, math.floor(fair)) if load.waiting else math.inf
        return room


def _queue(record: JobRecord) -> str:
    return record.head.lane.partition(":")[0]
