"""Tells Redis, after a recovery of the shard, which attempts are active, before anything else is fetched or finished."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

from rsched.core.ids import WorkerId
from rsched.runtime.clock import Clock
from rsched.worker.attempt import ActiveAttempts, Stop
from rsched.worker.ports import WorkerRuns


class Adoption:
    """Confirms a worker's active attempts to a shard that has recovered.

    Attributes:
        era: How many recoveries this worker has seen. An answer to a request of an earlier era says nothing about a run, since
            Redis may have lost the run in between.
    """

    def __init__(
        self, runs: WorkerRuns, worker: WorkerId, *, active: ActiveAttempts, queues: Sequence[str], lease_ms: int,
        margin_ms: int, clock: Clock, log: logging.Logger,
    ) -> None:  # fmt: skip
        self._runs, self._worker, self._active = runs, worker, active
        self._queues, self._lease_ms, self._margin_ms = queues, lease_ms, margin_ms
        self._clock, self._log = clock, log
        self._lock = asyncio.Lock()
        self._due = False
        self.era = 0

    async def on_new_generation(self) -> None:
        """Adopts at once; the store calls this when a reply shows a new generation, before it goes on with the verb.

        Raises:
            ShardClosed: The shard is still closed.
            Unavailable: Redis does not answer.
        """
        # Before the first await: other tasks must not slip through ensure_adopted() meanwhile.
        self._due = True
        self.era += 1
        await self.ensure_adopted()

    async def ensure_adopted(self) -> None:
        """Returns once Redis knows which attempts are active; after an error the adoption is still due.

        Raises:
            ShardClosed: The shard is still closed.
            Unavailable: Redis does not answer.
        """
        while self._due:
            async with self._lock:
                if self._due:
                    await self._adopt()

    async def _adopt(self) -> None:
        era, sent = self.era, self._clock.boot_ms()
        # Attempts that have ended are among them, since their results are still to be sent; those whose lease is over are not.
        confirmed = [
            a for a in self._active.all()
            if a.ended or (a.deadline > sent and not (a.stopping is not None and a.stopping.forfeits))
        ]  # fmt: skip
        items = [(a.run, a.attempt, a.fence) for a in confirmed]
        tags = await self._runs.adopt(self._worker, lease_ms=self._lease_ms, queues=self._queues, items=items)
        for a, tag in zip(confirmed, tags, strict=True):
            if tag == "ok":
                a.deadline = max(a.deadline, sent + self._lease_ms - self._margin_ms)
            elif not a.ended:
                a.stop(Stop.LOST, self._clock.boot_ms())
        self._log.warning(
            "adopted after a recovery", extra={"fields": {"active": len(confirmed), "kept": tags.count("ok")}}
        )
        if era == self.era:
            self._due = False
