"""Triggers with an idempotency key, kept for as long as a repeat is answered with the run that they made."""

from __future__ import annotations

from rsched.core.ids import JobId
from rsched.ledger.base import Database

Key = tuple[str, str]


class Triggers:
    """Keyed triggers. Every method raises Unavailable while Postgres is away."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def triggered_at(self, job_id: JobId, key_hash: str, *, since: int) -> int | None:
        """Returns the instant (ms) in the id of the run that the key made at or after `since` (ms), None where it made none."""
        row = await self._database.row(
            "SELECT at FROM triggers WHERE job_id = %s AND hash = %s AND at >= %s", (job_id, key_hash, since)
        )
        return int(row[0]) if row else None

    async def page(self, shard: str, *, after: Key, since: int, limit: int) -> list[tuple[str, str, int]]:
        """Returns at most limit of (job, hash, at) made from `since` (ms) on, after the given one, by (job, hash)."""
        rows = await self._database.rows(
            "SELECT job_id, hash, at FROM triggers WHERE (job_id, hash) > (%s, %s) AND shard = %s AND at >= %s"
            " ORDER BY job_id, hash LIMIT %s",
            (*after, shard, since, limit),
        )
        return [(job, key_hash, int(at)) for job, key_hash, at in rows]

    async def drop(self, shard: str, *, before: int, limit: int) -> int:
        """Deletes at most limit of those made before (ms), the oldest first, and returns how many."""
        # One that is being recorded anew is passed over: waiting for it could end with both waiting.
        return await self._database.execute(
            "DELETE FROM triggers t USING (SELECT job_id, hash FROM triggers WHERE at < %s AND shard = %s ORDER BY at LIMIT %s"
            " FOR UPDATE SKIP LOCKED) old WHERE t.job_id = old.job_id AND t.hash = old.hash",
            (before, shard, limit),
        )
