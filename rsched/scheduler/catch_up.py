"""Paying out catch-up ranges, oldest first, at a pace that delays nobody. Any scheduler does it; it needs no ownership."""

from __future__ import annotations

import logging
import math
from collections import Counter
from collections.abc import Callable, Collection

from rsched.core.ids import JobId
from rsched.core.jobs.packed import JobRecord
from rsched.core.schedule.schedule import Schedule
from rsched.core.states import JobState
from rsched.runtime.clock import Clock
from rsched.scheduler.ports import CatchupStore
from rsched.scheduler.schedules import Schedules
from rsched.store.catchup import CatchupRange

PACE_MS = 1000
_PAGE = 500
_MOST_BEHIND = 3600  # occurrences: a longer range holds the next one of its job back no further


class CatchUp:
    """Each second a job gets up to per_s of its late occurrences; all of a queue with work waiting, `share` of its starts.

    A range that gets nothing is put off, so that it does not hide those behind it.
    """

    def __init__(
        self,
        store: CatchupStore,
        *,
        per_s: int,
        share: float,
        schedulers: Callable[[], int],
        clock: Clock,
        log: logging.Logger,
    ) -> None:
        """schedulers: how many there are, which share what a queue allows."""
        self._store, self._schedules = store, Schedules(store, log=log)
        self._per_s = per_s
        self._room = Room(store, share=share, schedulers=schedulers, clock=clock)

    async def step(self) -> bool:
        """Pays what may be paid now; more: a full page of ranges was looked at."""
        ranges = await self._store.catchup.list_due(limit=_PAGE)
        if not ranges:
            return False
        jobs = list(dict.fromkeys(r.job for r in ranges))
        active = await self._schedules.of_all(jobs)
        stopped = [job for job in jobs if job not in active]
        paused = await self._schedules.of_all(stopped, state=JobState.PAUSED) if stopped else {}
        await self._room.learn({_queue(record) for record, _ in active.values()})
        before: Counter[JobId] = Counter()
        waiting: list[tuple[CatchupRange, int]] = []
        for found in ranges:
            if found.job not in active:
                # The script puts the rest on record as skipped.
                left = _count(found, paused[found.job][1]) if found.job in paused else 0
                await self._store.catchup.enqueue(
                    found, occurrences=[], rest=None, pace_ms=PACE_MS, most=self._per_s, left=left
                )
                continue
            record, schedule = active[found.job]
            queue = _queue(record)
            most = int(min(self._per_s - before[found.job], self._room.of(queue)))
            count = await self._pay(found, schedule, most) if most > 0 else 0
            if count:
                before[found.job] += count
                self._room.take(queue, count)
            else:
                # Each behind the ones of the same job that come before it.
                behind = 1 + before[found.job] // self._per_s
                before[found.job] += min(_count(found, schedule), _MOST_BEHIND)
                waiting.append((found, behind * PACE_MS))
        await self._store.catchup.postpone(waiting)
        return len(ranges) == _PAGE

    async def _pay(self, found: CatchupRange, schedule: Schedule, most: int) -> int:
        """How many were paid; 0 where another scheduler has given the job enough, or has paid of the range."""
        pending = [t for t in schedule.upcoming(found.start - 1, most + 1) if t <= found.end]
        rest = found._replace(start=pending[most]) if len(pending) > most else None
        left = len(pending) if rest is None else _count(found, schedule)
        tag = await self._store.catchup.enqueue(
            found, occurrences=pending[:most], rest=rest, pace_ms=PACE_MS, most=self._per_s, left=left
        )
        return min(len(pending), most) if tag == "ok" else 0


class Room:
    """Says how many late runs each queue takes.

    That is any number while nobody waits in the queue; else a share of what it starts, and at least one a second, so that
    catching up goes on at all.
    """

    def __init__(self, store: CatchupStore, *, share: float, schedulers: Callable[[], int], clock: Clock) -> None:
        self._store, self._share, self._schedulers, self._clock = store, share, schedulers, clock
        self._seen: dict[str, tuple[int, int]] = {}
        self._room: dict[str, float] = {}

    async def learn(self, queues: Collection[str]) -> None:
        """Measures the queues, and earns them room for what they started since the last time."""
        now = self._clock.boot_ms()
        for queue, load in (await self._store.catchup.measure_queues(sorted(queues))).items():
            started, since = self._seen.get(queue, (load.started, now - PACE_MS))
            self._seen[queue] = load.started, now
            if not load.waiting:
                self._room[queue] = math.inf
                continue
            earned = max(self._share * (load.started - started), (now - since) / PACE_MS) / max(self._schedulers(), 1)
            kept = self._room.get(queue, 0.0)
            # What was not used is kept for a second at most.
            self._room[queue] = max(earned, min(kept + earned, max(1.0, earned))) if kept < math.inf else earned

    def of(self, queue: str) -> float:
        """Returns how many late runs the queue takes now."""
        return self._room[queue]

    def take(self, queue: str, count: int) -> None:
        """Uses room of a queue up."""
        self._room[queue] -= count


def _count(found: CatchupRange, schedule: Schedule) -> int:
    return schedule.missed(found.start - 1, found.end).count


def _queue(record: JobRecord) -> str:
    return record.head.queue_key.partition(":")[0]
