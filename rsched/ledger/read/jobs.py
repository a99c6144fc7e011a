"""Jobs, as the API lists and looks them up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from rsched.core.ids import JobId
from rsched.core.states import JobState
from rsched.ledger.base import Database, Row, Rows
from rsched.ledger.read.cursors import Page, decode_cursor, encode_cursor, next_cursor
from rsched.ledger.read.stored import JOB_COLUMNS, StoredJob, job_of

_LIKE = str.maketrans({"\\": r"\\", "%": r"\%", "_": r"\_"})
_NOT_DELETED = [s for s in JobState if s is not JobState.DELETED]
# A page of a search by text looks at so many jobs at most, the newest first; the next page goes on behind them.
SEARCHED = 20_000


class _Filters(NamedTuple):
    """What a list of jobs leaves out: clauses of SQL with their parameters. searched: by text, which no index serves."""

    clauses: list[str]
    params: list[Any]
    searched: bool


class Jobs:
    """Reads of jobs. Every method raises Unavailable while Postgres is away."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def get(self, job_id: str) -> StoredJob | None:
        """Returns a job, deleted or not, None where there never was one of this id."""
        row = await self._database.row(f"SELECT {JOB_COLUMNS} FROM jobs WHERE job_id = %s", (job_id,))
        return job_of(row) if row else None

    async def last_incarnation(self, team: str, handle: str) -> StoredJob | None:
        """Returns the newest job that a team gave this handle (name, or idempotency key), deleted or not."""
        return (await self.last_incarnations([(team, handle)])).get((team, handle))

    async def last_incarnations(self, handles: Sequence[tuple[str, str]]) -> dict[tuple[str, str], StoredJob]:
        """Returns the last incarnation of each (team, handle) that has one, in one query."""
        rows = await self._database.rows(
            f"SELECT w.team, w.handle, j.* FROM unnest(%s::text[], %s::text[]) AS w (team, handle),"
            f" LATERAL (SELECT {JOB_COLUMNS} FROM jobs WHERE coalesce(name, idempotency_key) = w.handle AND team = w.team"
            " ORDER BY incarnation DESC LIMIT 1) j",
            ([team for team, _ in handles], [handle for _, handle in handles]),
        )
        return {(row[0], row[1]): job_of(row[2:]) for row in rows}

    async def list(
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
    ) -> Page[StoredJob]:
        """Lists jobs, newest first.

        Args:
            team: Only jobs of this team.
            state: Only jobs in this state; by default all but deleted ones.
            name: Only jobs of this name.
            tag: Only jobs with this tag.
            q: Only jobs that have this text in their name, in upper or lower case.
            pattern: Only jobs of which this is the whole name, `*` standing for any text.
            cursor: Where an earlier page ended.
            limit: How many jobs a page has at most. By q or pattern it may have fewer, or none, and there is more all the same.

        Returns:
            The page, and the cursor of the next one; None where there is none.

        Raises:
            Invalid: No page gave this cursor.
        """
        filters = _filters(team=team, name=name, tag=tag, q=q, pattern=pattern)
        after = None if cursor is None else decode_cursor(cursor)
        if any("\0" in str(v) for v in filters.params):
            return [], None  # Postgres has no such text, so nothing matches
        states = _NOT_DELETED if state is None else [state]
        # A name leads to its few jobs by itself.
        bound = await self._bound(states, team=team, after=after) if filters.searched and name is None else None
        rows = await self._page(states, filters, after=after, bound=bound, limit=limit)
        page = [job_of(r) for r in rows[:limit]]
        cursor = next_cursor(rows, limit=limit, at=2, key=0)
        if cursor is None and bound is not None:
            cursor = encode_cursor(bound[1], bound[0])
        return page, cursor

    async def _page(
        self,
        states: Sequence[JobState],
        filters: _Filters,
        *,
        after: tuple[int, str] | None,
        bound: Row | None,
        limit: int,
    ) -> Rows:
        clauses, params = list(filters.clauses), list(filters.params)
        for sign, key in (("<", after), (">=", (bound[1], bound[0]) if bound else None)):
            if key is not None:
                # The first one by itself, as an index serves it.
                clauses += [f"created_at {sign[0]}= at_ms(%s)", f"(created_at, job_id) {sign} (at_ms(%s), %s)"]
                params += [key[0], *key]
        return await self._newest(f"{JOB_COLUMNS}, created_at", states, clauses=clauses, params=params, limit=limit + 1)

    async def _bound(
        self, states: Sequence[JobState], *, team: str | None, after: tuple[int, str] | None
    ) -> Row | None:
        """Returns (job_id, created_at ms) of the last job that a search looks at, None where it can look at all."""
        clauses, params = [], list[Any]()
        if team is not None:
            clauses, params = ["team = %s"], [team]
        if after is not None:
            clauses += ["created_at <= at_ms(%s)", "(created_at, job_id) < (at_ms(%s), %s)"]
            params += [after[0], *after]
        columns = "job_id, ms_of(created_at), created_at"
        rows = await self._newest(columns, states, clauses=clauses, params=params, limit=SEARCHED + 1, last=True)
        return rows[0] if rows else None

    async def _newest(
        self,
        columns: str,
        states: Sequence[JobState],
        *,
        clauses: Sequence[str],
        params: Sequence[Any],
        limit: int,
        last: bool = False,
    ) -> Rows:
        """Returns the newest jobs in any of the states, merged from an index scan for each. last: of so many the last alone."""
        part = (
            f"(SELECT {columns} FROM jobs WHERE {' AND '.join(['state = %s', *clauses])}"
            " ORDER BY created_at DESC, job_id DESC LIMIT %s)"
        )
        values = [v for state in states for v in (state.value, *params, limit)]
        query = f"SELECT * FROM ({' UNION ALL '.join([part] * len(states))}) j ORDER BY created_at DESC, job_id DESC"
        query += f" OFFSET {limit - 1} LIMIT 1" if last else f" LIMIT {limit}"
        return await self._database.rows(query, values)

    async def that_may_name(self, team: str, text: str) -> Sequence[StoredJob]:
        """Returns the team's jobs, deleted and completed ones left out, whose definition has this text somewhere."""
        rows = await self._database.rows(
            f"SELECT {JOB_COLUMNS} FROM jobs WHERE team = %s AND state IN ('active', 'paused', 'invalid')"
            " AND position(convert_to(%s, 'UTF8') in value) > 0 ORDER BY created_at, job_id",
            (team, text),
        )
        return [job_of(r) for r in rows]

    async def pending_catch_ups(self, job_id: JobId, *, schedule_version: int) -> Sequence[tuple[int, int]]:
        """Returns the ranges (ms, both ends occurrences) of which catch-up runs are still to be enqueued."""
        return await self._database.rows(
            "SELECT start_at, end_at FROM catch_ups WHERE job_id = %s AND start_at <= end_at AND schedule_version = %s",
            (job_id, schedule_version),
        )


def _filters(*, team: str | None, name: str | None, tag: str | None, q: str | None, pattern: str | None) -> _Filters:
    clauses, params = [], list[Any]()
    if name is not None:
        clauses += ["name = %s", "coalesce(name, idempotency_key) = %s"]
        params += [name, name]
    for clause, value in (("team = %s", team), ("tags @> ARRAY[%s]", tag)):
        if value is not None:
            clauses.append(clause)
            params.append(value)
    if q:
        clauses.append("name ILIKE %s")
        params.append(f"%{q.translate(_LIKE)}%")
    if pattern is not None:
        clauses.append("name LIKE %s")
        params.append(pattern.translate(_LIKE).replace("*", "%"))
    return _Filters(clauses, params, bool(q) or pattern is not None)
