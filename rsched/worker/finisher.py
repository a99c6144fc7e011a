"""Tells Redis how attempts ended, in batches, and keeps each result until Redis has answered for it."""

from __future__ import annotations

from collections import deque

from rsched.core.ids import WorkerId
from rsched.core.jobs.model import queue_of
from rsched.runtime.clock import Clock
from rsched.runtime.loop import Wake
from rsched.runtime.metrics import Metrics
from rsched.store.run_values import FinishItem
from rsched.worker.adoption import Adoption
from rsched.worker.attempt import ActiveAttempts, Attempt
from rsched.worker.ports import WorkerRuns

BATCH = 200
# Short enough to delay a single run by nothing that matters, long enough to send the results of a burst in one call.
GATHER_MS = 2.0


class Finisher:
    """Sends results, one call at a time; a repeat has the same request number, so that it changes nothing.

    Attributes:
        wake: Set when there is a first result to send.
        emptied: Set when all results are acknowledged.
        refused: How many results Redis has refused.
    """

    def __init__(
        self,
        runs: WorkerRuns,
        worker: WorkerId,
        *,
        active: ActiveAttempts,
        adoption: Adoption,
        clock: Clock,
        metrics: Metrics,
    ) -> None:
        self._runs, self._worker, self._active = runs, worker, active
        self._adoption, self._clock, self._attempts = adoption, clock, metrics.attempts
        self._pending: deque[tuple[Attempt, FinishItem]] = deque()
        self._batch: list[tuple[Attempt, FinishItem]] = []
        self._request = 0
        self._era = 0
        self.wake = Wake()
        self.emptied = Wake()
        self.refused = 0

    def put(self, attempt: Attempt, item: FinishItem) -> None:
        """Takes the result of an attempt, to be sent with the next batch."""
        self._pending.append((attempt, item))
        if len(self._pending) == 1:
            self.wake.set()

    def __len__(self) -> int:
        return len(self._pending) + len(self._batch)

    async def step(self) -> bool:
        """Sends one batch, and returns whether there is more to send.

        Raises:
            ShardClosed: The shard is closed; the batch is sent again with the next step.
            Unavailable: Redis does not answer; the batch is sent again with the next step.
        """
        if not self._batch:
            if not self._pending:
                return False
            if len(self._pending) < BATCH:
                await self._clock.sleep(GATHER_MS)
            self._batch = [self._pending.popleft() for _ in range(min(BATCH, len(self._pending)))]
            self._request += 1
            self._era = self._adoption.era
        await self._adoption.ensure_adopted()
        tags = await self._runs.finish(self._worker, request=self._request, items=[item for _, item in self._batch])
        again = []
        for entry, tag in zip(self._batch, tags, strict=True):
            # A recovery came in between: Redis may have lost the run, or adopted it again after an answer that was
            # lost. Send it again.
            if tag != "ok" and self._era != self._adoption.era:
                again.append(entry)
                continue
            attempt, item = entry
            self._active.remove(attempt)
            refused = tag in ("stale_fence", "missing")
            self.refused += refused
            d = attempt.definition
            # Not a look-up by state: the hash of an enum's member costs more than the rest of this line.
            self._attempts.child(queue_of(d.target), d.team, "refused" if refused else str.lower(item.outcome)).inc()
        self._batch = []
        self._pending.extendleft(reversed(again))
        if not self._pending:
            self.emptied.set()
        return bool(self._pending)
