"""Triggers with an idempotency key, kept for as long as a repeat is answered with the run that they made."""

from __future__ import annotations

from rsched.core.ids import JobId
from rsched.ledger.base import Base

Key = tuple[str, str]


class TriggerVerbs(Base):
    async def triggered_at(self, job_id: JobId, key_hash: str, *, since: int) -> int | None:
        """The instant (ms) in the id of the run that the key made at or after `since`; None where it made none. Unavailable."""
        row = await self._one(
            "SELECT at FROM triggers WHERE job_id = %s AND hash = %s AND at >= %s", (job_id, key_hash, since)
        )
        return int(row[0]) if row else None

    async def triggers_after(self, shard: str, *, after: Key, since: int, limit: int) -> list[tuple[str, str, int]]:
        """A page of (job, hash, at) from `since` (ms) on, in the order of (job, hash). Unavailable."""
        rows = await self._all(
            "SELECT job_id, hash, at FROM triggers WHERE (job_id, hash) > (%s, %s) AND shard = %s AND at >= %s"
            " ORDER BY job_id, hash LIMIT %s",
            (*after, shard, since, limit),
        )
        return [(job, key_hash, int(at)) for job, key_hash, at in rows]

    async def drop_triggers(self, shard: str, *, before: int, limit: int) -> int:
        """Deletes those of before (ms), the oldest first; how many. Unavailable."""
        # One that is being recorded anew is passed over: waiting for it could end with both waiting.
        return await self._do(
            "DELETE FROM triggers t USING (SELECT job_id, hash FROM triggers WHERE at < %s AND shard = %s ORDER BY at LIMIT %s"
            " FOR UPDATE SKIP LOCKED) old WHERE t.job_id = old.job_id AND t.hash = old.hash",
            (before, shard, limit),
        )
