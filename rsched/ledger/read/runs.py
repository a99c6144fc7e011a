"""Runs, as the API lists and looks them up."""

from __future__ import annotations

from rsched.core.ids import JobId
from rsched.core.states import RunState
from rsched.ledger.base import Database
from rsched.ledger.keys import run_key
from rsched.ledger.read.cursors import Page, decode_cursor, decode_number_cursor, encode_cursor, next_cursor
from rsched.ledger.read.stored import RUN_COLUMNS, RUN_NAMES, RUN_WIDTH, StoredRun, attempt_of, run_of, with_attempts

# Of a run that was withdrawn and claimed again on another day, the later record counts.
_LATEST = "fence DESC, revision DESC"
_IS_LATEST = (
    "NOT EXISTS (SELECT FROM all_runs b WHERE b.job_id = a.job_id AND b.scheduled_at = a.scheduled_at AND b.manual = a.manual"
    " AND (b.fence, b.revision, b.claimed_on) > (a.fence, a.revision, a.claimed_on))"
)


class Runs:
    """Reads of runs. Every method raises Unavailable while Postgres is away."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def get(self, run_id: str) -> StoredRun | None:
        """Returns a run with its attempts, None where the ledger has none of this id."""
        try:
            key = run_key(run_id)
        except ValueError:
            return None
        same = "job_id = %s AND scheduled_at = at_ms(%s) AND manual = %s"
        row = await self._database.row(
            f"SELECT {RUN_COLUMNS} FROM (SELECT * FROM all_runs WHERE {same} ORDER BY {_LATEST} LIMIT 1) r {RUN_NAMES}",
            key,
        )
        if row is None:
            return None
        failed = await self._database.rows(
            "SELECT a.attempt, a.fence, coalesce(w.name, ''), a.status::text, coalesce(ms_of(a.due_at), 0),"
            " coalesce(ms_of(a.started_at), 0), ms_of(a.ended_at), a.error"
            f" FROM failed_attempts a LEFT JOIN worker_names w ON w.id = a.worker WHERE {same} ORDER BY a.attempt, a.fence",
            key,
        )
        return with_attempts(run_of(row), [attempt_of(f) for f in failed])

    async def list(
        self, job_id: str, *, cursor: str | None = None, limit: int = 100, status: RunState | None = None
    ) -> Page[StoredRun]:
        """Lists a job's runs by scheduled_at, newest first, without their attempts.

        Args:
            job_id: The job.
            cursor: Where an earlier page ended.
            limit: How many runs a page has at most.
            status: Only runs of this status.

        Returns:
            The page, and the cursor of the next one; None where there is none.

        Raises:
            Invalid: No page gave this cursor.
        """
        where, after = "", ()
        if cursor is not None:
            where, after = " AND (scheduled_at, manual) < (at_ms(%s), %s)", decode_number_cursor(cursor)  # type: ignore[assignment]
        if status is not None:
            where, after = f"{where} AND status = %s::run_status", (*after, status.value)  # type: ignore[assignment]
        # The primary keys of the days serve this order, and the limit ends it.
        rows = await self._database.rows(
            f"SELECT {RUN_COLUMNS}, ms_of(r.scheduled_at), r.manual FROM (SELECT * FROM all_runs a WHERE job_id = %s{where}"
            f" AND {_IS_LATEST} ORDER BY scheduled_at DESC, manual DESC LIMIT %s) r {RUN_NAMES}"
            " ORDER BY r.scheduled_at DESC, r.manual DESC",
            (job_id, *after, limit + 1),
        )
        return [run_of(r) for r in rows[:limit]], next_cursor(rows, limit=limit, at=RUN_WIDTH, key=RUN_WIDTH + 1)

    async def dead_letters(
        self, *, team: str | None = None, cursor: str | None = None, limit: int = 100
    ) -> Page[StoredRun]:
        """Lists runs that are DEAD, the last to die first, without their attempts.

        Args:
            team: Only runs of this team.
            cursor: Where an earlier page ended.
            limit: How many runs a page has at most.

        Returns:
            The page, and the cursor of the next one; None where there is none.

        Raises:
            Invalid: No page gave this cursor.
        """
        clauses, params = ["true"], list[object]()
        if team is not None:
            clauses.append("d.team = %s")
            params.append(team)
        if cursor is not None:
            at, run_id = decode_cursor(cursor)
            clauses.append("(d.ended_at, d.job_id, d.scheduled_at, d.manual) < (at_ms(%s), %s, at_ms(%s), %s)")
            try:
                params += [at, *run_key(run_id)]
            except ValueError:
                return [], None
        order = "d.ended_at DESC, d.job_id DESC, d.scheduled_at DESC, d.manual DESC"
        # The join goes by the key of each, and the limit ends it: no statistics may lead to reading days of history.
        rows = await self._database.rows(
            f"SELECT {RUN_COLUMNS}, ms_of(d.ended_at) FROM dead_letters d CROSS JOIN LATERAL (SELECT * FROM finished_runs f"
            " WHERE f.job_id = d.job_id AND f.scheduled_at = d.scheduled_at AND f.manual = d.manual"
            f" AND f.claimed_on = d.claimed_on AND f.status = 'DEAD' OFFSET 0) r {RUN_NAMES}"
            f" WHERE {' AND '.join(clauses)} ORDER BY {order} LIMIT %s",
            (*params, limit + 1),
        )
        more = encode_cursor(rows[limit - 1][RUN_WIDTH], rows[limit - 1][0]) if len(rows) > limit else None
        return [run_of(r) for r in rows[:limit]], more

    async def payload(self, run_id: str) -> bytes | None:
        """Returns the run's own payload (msgpack), None where it is called with its job's."""
        row = await self._database.row("SELECT payload FROM payloads WHERE run_id = %s", (run_id,))
        return bytes(row[0]) if row else None

    async def occurrences(self, job_id: JobId, *, since: int, until: int, schedule_version: int) -> set[int]:
        """Returns the occurrences of a job that have a run.

        Args:
            job_id: The job.
            since: The first instant (ms).
            until: The end, exclusive (ms).
            schedule_version: An occurrence that was skipped under an earlier one has none.

        Returns:
            The occurrences (ms).
        """
        rows = await self._database.rows(
            "SELECT ms_of(scheduled_at) FROM all_runs WHERE job_id = %s AND scheduled_at >= at_ms(%s)"
            " AND scheduled_at < at_ms(%s) AND manual = 0 AND NOT (status = 'SKIPPED' AND schedule_version < %s)",
            (job_id, since, until, schedule_version),
        )
        return {row[0] for row in rows}
