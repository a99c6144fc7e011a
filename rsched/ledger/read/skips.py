"""Skips of a job: occurrences that made no run, and runs that were skipped."""

from __future__ import annotations

from collections.abc import Sequence

from rsched.core.ids import JobId
from rsched.ledger.base import Database
from rsched.ledger.read.cursors import Page, decode_cursor, next_cursor
from rsched.ledger.read.stored import StoredSkip

# Of a job. A run that was skipped and claimed again on another day was not skipped.
_SKIPPED = (
    "SELECT first_at, last_at, total, reason, skipped_at FROM skips WHERE job_id = %s UNION ALL"
    " SELECT scheduled_at, scheduled_at, 1, coalesce(nullif(error, ''), 'skipped'), ended_at FROM finished_runs f"
    " WHERE job_id = %s AND status = 'SKIPPED' AND manual = 0 AND NOT EXISTS (SELECT FROM all_runs a WHERE a.job_id = f.job_id"
    " AND a.scheduled_at = f.scheduled_at AND a.manual = 0 AND (a.fence, a.revision) > (f.fence, f.revision))"
)
_KEY = "(ms_of(last_at) || ' ' || ms_of(skipped_at) || ' ' || reason) COLLATE \"C\""


class Skips:
    """Reads of skips. Every method raises Unavailable while Postgres is away."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def latest(self, job_id: JobId, *, limit: int = 1000) -> Sequence[StoredSkip]:
        """Returns a job's ranges of skipped occurrences, the last ones first."""
        rows = await self._database.rows(
            "SELECT ms_of(first_at), ms_of(last_at), total, reason, ms_of(skipped_at) FROM skips WHERE job_id = %s"
            " ORDER BY skips.first_at DESC LIMIT %s",
            (job_id, limit),
        )
        return [StoredSkip(*r) for r in rows]

    async def list(self, job_id: JobId, *, cursor: str | None = None, limit: int = 100) -> Page[StoredSkip]:
        """Lists a job's skips, the last ones first: ranges, and single occurrences whose run was skipped.

        Args:
            job_id: The job.
            cursor: Where an earlier page ended.
            limit: How many skips a page has at most.

        Returns:
            The page, and the cursor of the next one; None where there is none.

        Raises:
            Invalid: No page gave this cursor.
        """
        where, after = "", ()
        if cursor is not None:
            at, key = decode_cursor(cursor)
            where = f"WHERE first_at <= at_ms(%s) AND (first_at, {_KEY}) < (at_ms(%s), %s)"
            after = (at, at, key)  # type: ignore[assignment]
        rows = await self._database.rows(
            f"SELECT ms_of(first_at), ms_of(last_at), total, reason, ms_of(skipped_at), {_KEY} FROM ({_SKIPPED}) s {where}"
            f" ORDER BY s.first_at DESC, {_KEY} DESC LIMIT %s",
            (job_id, job_id, *after, limit + 1),
        )
        return [StoredSkip(*r[:5]) for r in rows[:limit]], next_cursor(rows, limit=limit, at=0, key=5)

    async def totals(self, job_id: JobId) -> dict[str, int]:
        """Returns how many of the job's occurrences made no run, by reason."""
        rows = await self._database.rows(
            f"SELECT reason, sum(total)::bigint FROM ({_SKIPPED}) s GROUP BY reason ORDER BY reason", (job_id, job_id)
        )
        return dict(rows)
