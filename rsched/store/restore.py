"""Writes back what Redis had lost, from what the ledger has.

Authority: versions and revisions. Each verb writes only where Redis has nothing or something earlier, so that a page twice
changes nothing and what changed meanwhile is never undone. Errors: ShardClosed where the shard is another generation's by now,
Unavailable.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from rsched.core.ids import JobId, RunId
from rsched.store.catchup import CatchupRange
from rsched.store.connection import Part, tags


class RestoreProgress(NamedTuple):
    """How far a restore is.

    Attributes:
        phase: runs (the shard is still closed), jobs (it is open), done.
        generation: The recovery that it belongs to.
        jobs_done: How many jobs were written.
        jobs_total: How many there are.
        runs_done: How many runs were written.
        started_at: When it began (ms by Redis' clock).
    """

    phase: str
    generation: int
    jobs_done: int
    jobs_total: int
    runs_done: int
    started_at: int


class Restore(Part):
    """Writes jobs, runs and what belongs to them back."""

    async def put_jobs(self, items: Sequence[tuple[JobId, int | None, bytes]], *, generation: int | None = None) -> int:
        """Writes jobs where Redis has none or an earlier version.

        Args:
            items: (job, when it is due in ms or None, packed value).
            generation: What the shard must still have if it is open, None for any.

        Returns:
            How many were written.
        """
        known = {} if generation is None else {"generation": str(generation)}
        group = [(job.encode(), b"" if due is None else b"%d" % due, value) for job, due, value in items]
        return int((await self._redis.call("restore_jobs", group, **known))[2])

    async def put_runs(
        self, items: Sequence[tuple[RunId, str]], *, lease_ms: int, payloads: Mapping[str, bytes] | None = None
    ) -> int:
        """Writes runs where Redis has an earlier revision; a final one is dropped from Redis.

        Args:
            items: (run, packed record).
            lease_ms: A worker's lease, which running attempts get.
            payloads: The payloads of runs that have one of their own.

        Returns:
            How many were written.
        """
        group = [(run, record, (payloads or {}).get(run, b"")) for run, record in items]
        return int((await self._redis.call("restore_runs", group, lease_ms=lease_ms))[2])

    async def put_calendars(self, items: Sequence[tuple[str, str, int, bytes]]) -> int:
        """Writes (team, name, version, body) where Redis has an earlier version; returns how many."""
        group = [(f"{team}/{name}", b"%d\n%s" % (version, body)) for team, name, version, body in items]
        return int((await self._redis.call("restore_entries", group, kind="calendars"))[2])

    async def put_catchup_ranges(self, ranges: Sequence[CatchupRange]) -> int:
        """Writes catch-up ranges where Redis has none, or has made fewer runs of them; returns how many.

        A range that starts past its end is dropped from Redis.
        """
        if not ranges:
            return 0
        group = [(pending.member, "") for pending in ranges]
        return int((await self._redis.call("restore_entries", group, kind="catchup"))[2])

    async def put_triggers(self, items: Sequence[tuple[str, str, int]], *, generation: int) -> int:
        """Writes triggers that came with an idempotency key, where Redis has not got them.

        Args:
            items: (job, hash of the key, instant of the run in ms).
            generation: What the shard must still have.

        Returns:
            How many were written.
        """
        group = [(f"{job}|{key_hash}", str(at)) for job, key_hash, at in items]
        return int((await self._redis.call("restore_entries", group, kind="triggers", generation=str(generation)))[2])

    async def move_due_times(self, items: Sequence[tuple[JobId, int, int, int | None]]) -> list[str]:
        """Moves due times on, each where the job's version and its due time are still those.

        Args:
            items: (job, version, due time as it is, due time as it should be or None), in ms.

        Returns:
            The jobs of which it was moved.
        """
        group = [(job, version, due, "" if later is None else later) for job, version, due, later in items]
        return tags((await self._redis.call("restore_dues", group))[2])

    async def get_progress(self) -> RestoreProgress | None:
        """Returns how far the present or last restore is, None where there was none on this server."""
        fields = await self._redis.ask(self._redis.client.hgetall(self._redis.keys.restore))
        if b"phase" not in fields:
            return None
        told = {name.decode(): value.decode() for name, value in fields.items()}
        return RestoreProgress(told["phase"], *(int(told.get(name, 0)) for name in RestoreProgress._fields[1:]))

    async def is_in_progress(self) -> bool:
        """Returns whether what Redis had lost is still being restored."""
        progress = await self.get_progress()
        return progress is not None and progress.phase != "done"

    async def set_progress(self, progress: RestoreProgress) -> None:
        """Notes how far a restore is, for whoever goes on after a crash and for people."""
        await self._redis.call("report_restore", **{**progress._asdict(), "generation": str(progress.generation)})
