"""Lists and look-ups for the API. Lists are newest first, in keyset pages with opaque cursors."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from rsched.core.ids import JobId
from rsched.core.states import JobState, RunState
from rsched.ledger.base import Base
from rsched.ledger.cursors import decode_cursor, encode_cursor
from rsched.ledger.positions import RECORDER_LOCK, lock_key
from rsched.ledger.stored import (
    JOB_COLUMNS,
    RUN_COLUMNS,
    StoredCalendar,
    StoredJob,
    StoredRun,
    StoredSkip,
    attempt_of,
    job_of,
    run_of,
    with_attempts,
)

_LIKE = str.maketrans({"\\": r"\\", "%": r"\%", "_": r"\_"})
# Of a run that was withdrawn and claimed again on another day, the later record counts.
_NEWEST = "DISTINCT ON (at, run_id)"
_AT = "substring(run_id from ':(?:m-)?([0-9]+)')::bigint"

# Of one job: job_id, and the bounds of its run ids. Manual runs are no occurrences.
_SKIPPED = (
    "SELECT first_at, last_at, total, reason, at FROM skips WHERE job_id = %s UNION ALL"
    " SELECT at, at, 1, coalesce(nullif(error, ''), 'skipped'), coalesce(ended_at, due_at)"
    f" FROM (SELECT {_NEWEST} *, {_AT} AS at FROM runs WHERE run_id >= %s AND run_id < %s AND run_id !~ ':m-'"
    " ORDER BY at, run_id, fence DESC, revision DESC) r WHERE state = 'SKIPPED'"
)
_SKIP_KEY = "(last_at || ' ' || at || ' ' || reason) COLLATE \"C\""
_ALIKE_MS = 1_000_000_000_000  # from here on instants have 13 digits, so that run ids sort as they do


class Reader(Base):
    async def job(self, job_id: str) -> StoredJob | None:
        row = await self._one(f"SELECT {JOB_COLUMNS} FROM jobs WHERE job_id = %s", (job_id,))
        return job_of(row) if row else None

    async def last_incarnation(self, team: str, handle: str) -> StoredJob | None:
        """The newest job that the team gave this handle (name, or key), deleted or not."""
        row = await self._one(
            f"SELECT {JOB_COLUMNS} FROM jobs WHERE team = %s AND handle = %s ORDER BY incarnation DESC LIMIT 1",
            (team, handle),
        )
        return job_of(row) if row else None

    async def last_incarnations(self, handles: Sequence[tuple[str, str]]) -> dict[tuple[str, str], StoredJob]:
        """last_incarnation of each (team, handle) that has one, in one query."""
        rows = await self._all(
            f"SELECT w.team, w.handle, j.* FROM unnest(%s::text[], %s::text[]) AS w (team, handle),"
            f" LATERAL (SELECT {JOB_COLUMNS} FROM jobs WHERE team = w.team AND handle = w.handle"
            " ORDER BY incarnation DESC LIMIT 1) j",
            ([team for team, _ in handles], [handle for _, handle in handles]),
        )
        return {(row[0], row[1]): job_of(row[2:]) for row in rows}

    async def jobs(
        self,
        *,
        team: str | None = None,
        state: JobState | None = None,
        name: str | None = None,
        tag: str | None = None,
        q: str | None = None,
        pattern: str | None = None,
        cursor: str | None = None,
        limit: int = 100,
    ) -> tuple[list[StoredJob], str | None]:
        """A page and the cursor of the next; q: part of the name; pattern: the whole of it, `*` for any text. Deleted ones only
        where state asks. Invalid cursor.
        """
        where, params = (
            ["state <> 'deleted'" if state is None else "state = %s"],
            [] if state is None else [state.value],
        )
        wanted: list[Any] = params
        for clause, value in (("team = %s", team), ("name = %s", name), ("%s = ANY(tags)", tag)):
            if value is not None:
                where.append(clause)
                wanted.append(value)
        if q:
            where.append("name ILIKE %s")
            wanted.append(f"%{q.translate(_LIKE)}%")
        if pattern is not None:
            where.append("name LIKE %s")
            wanted.append(pattern.translate(_LIKE).replace("*", "%"))
        if cursor is not None:
            where.append("(created_at, job_id) < (%s, %s)")
            wanted.extend(decode_cursor(cursor))
        if any("\0" in str(v) for v in wanted):
            return [], None  # Postgres has no such text, so nothing matches
        rows = await self._all(
            f"SELECT {JOB_COLUMNS} FROM jobs WHERE {' AND '.join(where)}"
            " ORDER BY created_at DESC, job_id DESC LIMIT %s",
            (*wanted, limit + 1),
        )
        return [job_of(r) for r in rows[:limit]], _next(rows, limit=limit, at=2, key=0)

    async def run(self, run_id: str) -> StoredRun | None:
        """With its attempts."""
        row = await self._one(
            f"SELECT {RUN_COLUMNS} FROM runs WHERE run_id = %s ORDER BY fence DESC, revision DESC LIMIT 1", (run_id,)
        )
        if row is None:
            return None
        failed = await self._all(
            "SELECT attempt, fence, worker, state, due_at, started_at, ended_at, error FROM attempts"
            " WHERE run_id = %s ORDER BY attempt, fence",
            (run_id,),
        )
        return with_attempts(run_of(row), [attempt_of(f) for f in failed])

    async def runs(
        self, job_id: str, *, cursor: str | None = None, limit: int = 100, status: RunState | None = None
    ) -> tuple[list[StoredRun], str | None]:
        """A job's runs by scheduled_at, newest first, without their attempts."""
        where, params = "", []
        if status is not None:
            where, params = "WHERE state = %s", [status.value]
        after: Sequence[Any] = ()
        if cursor is not None:
            where += f" {'AND' if where else 'WHERE'} (at, run_id) < (%s, %s)"
            after = decode_cursor(cursor)
        # Run ids begin with their job's: the primary keys of the days serve this range.
        rows = await self._all(
            f"SELECT {RUN_COLUMNS}, at FROM (SELECT {_NEWEST} {RUN_COLUMNS}, {_AT} AS at FROM runs"
            " WHERE run_id >= %s AND run_id < %s ORDER BY at DESC, run_id DESC, fence DESC, revision DESC) r"
            f" {where} ORDER BY at DESC, run_id DESC LIMIT %s",
            (job_id + ":", job_id + ";", *params, *after, limit + 1),
        )
        return [run_of(r[:14]) for r in rows[:limit]], _next(rows, limit=limit, at=14, key=0)

    async def dead_letters(
        self, *, team: str | None = None, cursor: str | None = None, limit: int = 100
    ) -> tuple[list[StoredRun], str | None]:
        """Runs that are DEAD, the last to die first, without their attempts."""
        where, params = "", []
        if team is not None:
            where += " AND split_part(r.queue_key, ':', 2) = %s"
            params.append(team)
        after: Sequence[Any] = ()
        if cursor is not None:
            where += " AND (d.ended_at, d.run_id) < (%s, %s)"
            after = decode_cursor(cursor)
        columns = ", ".join(f"r.{c.strip()}" for c in RUN_COLUMNS.split(","))
        rows = await self._all(
            f"SELECT {columns}, d.ended_at FROM dead_letters d"
            " JOIN runs r ON r.claimed_on = d.claimed_on AND r.run_id = d.run_id"
            f" WHERE r.state = 'DEAD'{where} ORDER BY d.ended_at DESC, d.run_id DESC LIMIT %s",
            (*params, *after, limit + 1),
        )
        return [run_of(r[:14]) for r in rows[:limit]], _next(rows, limit=limit, at=14, key=0)

    async def skips(self, job_id: JobId, *, limit: int = 1000) -> list[StoredSkip]:
        """The last ones first."""
        rows = await self._all(
            "SELECT first_at, last_at, total, reason, at FROM skips WHERE job_id = %s ORDER BY first_at DESC LIMIT %s",
            (job_id, limit),
        )
        return [StoredSkip(*r) for r in rows]

    async def skips_page(
        self, job_id: JobId, *, cursor: str | None = None, limit: int = 100
    ) -> tuple[list[StoredSkip], str | None]:
        """The last ones first: ranges, and single occurrences whose run was skipped."""
        where, after = "", ()
        if cursor is not None:
            where, after = "WHERE (first_at, key) < (%s, %s)", decode_cursor(cursor)  # type: ignore[assignment]
        rows = await self._all(
            f"SELECT first_at, last_at, total, reason, at, key FROM (SELECT *, {_SKIP_KEY} AS key FROM ({_SKIPPED}) s) k"
            f" {where} ORDER BY first_at DESC, key DESC LIMIT %s",
            (job_id, job_id + ":", job_id + ";", *after, limit + 1),
        )
        return [StoredSkip(*r[:5]) for r in rows[:limit]], _next(rows, limit=limit, at=0, key=5)

    async def skipped(self, job_id: JobId) -> dict[str, int]:
        """How many of the job's occurrences made no run, by reason."""
        rows = await self._all(
            f"SELECT reason, sum(total)::bigint FROM ({_SKIPPED}) s GROUP BY reason ORDER BY reason",
            (job_id, job_id + ":", job_id + ";"),
        )
        return dict(rows)

    async def payload(self, run_id: str) -> bytes | None:
        """msgpack; None where the run is called with its job's."""
        row = await self._one("SELECT payload FROM payloads WHERE run_id = %s", (run_id,))
        return bytes(row[0]) if row else None

    async def occurrences_run(self, job_id: JobId, *, since: int, until: int, schedule_version: int) -> set[int]:
        """The occurrences in since <= t < until (ms) that have a run; one that was skipped under an earlier schedule version
        than schedule_version has none.
        """
        rows = await self._all(
            f"SELECT at FROM (SELECT {_AT} AS at, state, schedule_version FROM runs WHERE run_id >= %s AND run_id < %s"
            " AND run_id !~ ':m-') r WHERE at >= %s AND at < %s AND NOT (state = 'SKIPPED' AND schedule_version < %s)",
            (*_range_of(job_id, since, until), since, until, schedule_version),
        )
        return {row[0] for row in rows}

    async def open_catchups(self, job_id: JobId, *, schedule_version: int) -> list[tuple[int, int]]:
        """Ranges (ms, both ends occurrences) that are still to be paid out."""
        return await self._all(
            "SELECT start_at, end_at FROM catchups WHERE job_id = %s AND start_at <= end_at AND schedule_version = %s",
            (job_id, schedule_version),
        )

    async def exclusions(self, names: Iterable[tuple[str, str]]) -> dict[tuple[str, str], StoredCalendar]:
        """The calendars of these (team, name) that there are, deleted ones too."""
        wanted = sorted(set(names))
        if not wanted:
            return {}
        rows = await self._all(
            "SELECT team, name, version, updated_at, body FROM exclusions"
            " WHERE (team, name) IN (SELECT * FROM unnest(%s::text[], %s::text[]))",
            ([team for team, _ in wanted], [name for _, name in wanted]),
        )
        return {(row[0], row[1]): _calendar_of(row) for row in rows}

    async def calendars_page(
        self, team: str, *, cursor: str | None = None, limit: int = 100
    ) -> tuple[list[StoredCalendar], str | None]:
        """A team's calendars by name."""
        after = "" if cursor is None else decode_cursor(cursor)[1]
        rows = await self._all(
            "SELECT team, name, version, updated_at, body FROM exclusions"
            " WHERE team = %s AND name > %s AND body <> '' ORDER BY name LIMIT %s",
            (team, after, limit + 1),
        )
        return [_calendar_of(r) for r in rows[:limit]], _next(rows, limit=limit, at=2, key=1)

    async def jobs_that_may_name(self, team: str, name: str) -> list[StoredJob]:
        """The team's jobs, deleted and completed ones left out, whose definition has this text somewhere."""
        rows = await self._all(
            f"SELECT {JOB_COLUMNS} FROM jobs WHERE team = %s AND state NOT IN ('deleted', 'completed')"
            " AND position(convert_to(%s, 'UTF8') in value) > 0 ORDER BY created_at, job_id",
            (team, name),
        )
        return [job_of(r) for r in rows]

    async def recorder_alive(self, shard: str) -> bool:
        """Whether some recorder holds the shard."""
        row = await self._one(
            "SELECT EXISTS (SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND granted AND classid = %s"
            " AND objid = %s AND objsubid = 2"
            " AND database = (SELECT oid FROM pg_database WHERE datname = current_database()))",
            (RECORDER_LOCK, lock_key(shard)),
        )
        return bool(row and row[0])


def _range_of(job_id: JobId, since: int, until: int) -> tuple[str, str]:
    """Bounds of the ids of the runs in since <= t < until."""
    if since < _ALIKE_MS:
        return job_id + ":", job_id + ";"
    return f"{job_id}:{since}", f"{job_id}:{until}"


def _calendar_of(row: tuple[Any, ...]) -> StoredCalendar:
    team, name, version, updated_at, body = row
    entries = msgspec.msgpack.decode(body, type=list[str]) if len(body) else None
    return StoredCalendar(team, name, version, updated_at, entries)


def _next(rows: list[tuple[Any, ...]], *, limit: int, at: int, key: int) -> str | None:
    if len(rows) <= limit:
        return None
    last = rows[limit - 1]
    return encode_cursor(last[at], last[key])
