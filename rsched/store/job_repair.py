"""The reconciler's verbs on jobs, their due times, pauses and occurrence caches.

Authority, pages and errors are as in `run_repair`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from rsched.core.ids import JobId
from rsched.store.connection import Part, tags
from rsched.store.findings import Finding, read_findings

# Pauses that could not be ended are put off for less than this.
_PUT_OFF_MS = 3_600_000


class LostDue(NamedTuple):
    """A due time (ms) of a job whose packed value, b"" for none, is not a definition."""

    job: JobId
    due: int
    value: bytes


class JobRepair(Part):
    """Looks at what belongs to jobs, and repairs it."""

    async def check_due_times(
        self, partition: int, cursor: int, *, count: int, write: bool
    ) -> tuple[int, list[Finding], list[LostDue]]:
        """Looks at a page of a partition's due times.

        Args:
            partition: Which one.
            cursor: See `run_repair`.
            count: See `run_repair`.
            write: Whether to drop those of jobs that are not active.

        Returns:
            The next cursor (0 at the end), what was found, and the due times of jobs without a readable definition.
        """
        reply = await self._redis.call(
            "repair_dues", partition=partition, cursor=str(cursor), count=count, write=int(write)
        )
        flat = reply[4]
        lost = [
            LostDue(JobId(job.decode(errors="surrogateescape")), int(due), value)
            for job, due, value in zip(flat[::3], flat[1::3], flat[2::3], strict=True)
        ]
        return int(reply[2]), read_findings(reply[3]), lost

    async def set_missing_due_times(self, items: Sequence[tuple[JobId, bytes, int]]) -> list[str]:
        """Makes active jobs due again, and lets pauses end, where Redis has no time for it.

        Args:
            items: (job, packed head as it was seen, due time or end of the pause in ms).

        Returns:
            The jobs of which it was set.
        """
        return tags((await self._redis.call("repair_missing_dues", items))[2])

    async def check_pauses(self, cursor: int, *, count: int, write: bool) -> tuple[int, list[Finding]]:
        """Looks at a page of the ends of pauses; returns the next cursor and what was found."""
        reply = await self._redis.call(
            "repair_pauses", cursor=str(cursor), count=count, write=int(write), late_ms=_PUT_OFF_MS
        )
        return int(reply[2]), read_findings(reply[3])

    async def quarantine(self, items: Sequence[tuple[int, bytes, bytes]]) -> list[bytes]:
        """Quarantines jobs that nobody can read, given as (partition, job, packed value as seen or b""); returns their ids."""
        return list((await self._redis.call("repair_unreadable_jobs", items))[2])

    async def journal_again(self, items: Sequence[tuple[JobId, int]]) -> list[str]:
        """Writes definitions, given as (job, version), to the journal once more; returns the jobs still of that version."""
        return tags((await self._redis.call("repair_definitions", items))[2])

    async def drop_occurrences(self, schedule: str, *, digest: str) -> bool:
        """Drops a wrong occurrence cache.

        Args:
            schedule: The schedule's id.
            digest: What `Reconciliation.inspect_occurrences` returned with it.

        Returns:
            Whether it was still the one that was inspected.
        """
        reply = await self._redis.call("repair_occurrences", schedule=schedule, digest=digest)
        return bool(reply[0] == "ok")
