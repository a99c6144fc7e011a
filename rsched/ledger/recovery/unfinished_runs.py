"""The unfinished runs of a shard, which are a table of their own, and its upkeep."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import NamedTuple

from rsched.core.ids import JobId, RunId
from rsched.core.jobs.packed import RunRecord
from rsched.ledger.base import Database, Row, connect, deadline
from rsched.ledger.failures import translated
from rsched.ledger.keys import RunKey, run_key
from rsched.ledger.positions import RUNS_LOCK, lock_key
from rsched.ledger.read.stored import RUN_COLUMNS, RUN_NAMES, run_of
from rsched.ledger.recovery.compare import Compare

FIRST = RunKey(JobId(""), 0, 0)
# The table has what is under way and what came and went since the last time.
_VACUUM_S = 60.0
_RUN_COLUMNS = RUN_COLUMNS.replace("r.ended_at", "NULL::timestamptz")
# A run that ended, and whose record of another day came late or by a clock that was set back.
_SUPERSEDED = (
    "EXISTS (SELECT FROM finished_runs f WHERE f.job_id = r.job_id AND f.scheduled_at = r.scheduled_at AND f.manual = r.manual"
    " AND (f.fence, f.revision) > (r.fence, r.revision))"
)


class Dropped(NamedTuple):
    """A page that was looked through: where the next begins (FIRST after the last), how many rows were taken out."""

    after: RunKey
    dropped: int


class UnfinishedRuns:
    """Pages of unfinished runs. Every method raises Unavailable while Postgres is away."""

    def __init__(self, database: Database, compare: Compare) -> None:
        self._database, self._compare = database, compare

    async def pages(self, shard: str, *, limit: int) -> AsyncIterator[list[tuple[RunId, RunRecord]]]:
        """Goes through all unfinished runs, by their latest record.

        A run that moves meanwhile may be in two pages, one that comes meanwhile in none.

        Args:
            shard: The shard.
            limit: How many runs a page has at most.

        Yields:
            Pages of (run, record), none of them empty.
        """
        after = FIRST
        while rows := await self._page(shard, after=after, limit=limit):
            runs = [run_of(row) for row in rows]
            after = run_key(runs[-1].run_id)
            # What ended by a record of another day is not unfinished.
            since = min(run.record.claimed_at for run in runs)
            latest = await self._compare.runs([run.run_id for run in runs], since=since)
            if page := [(run, record) for run, record in latest.items() if not record.state.final]:
                yield page

    async def forgettable(self, shard: str, *, before_ms: int, limit: int) -> Sequence[tuple[JobId, int]]:
        """Finds jobs that Redis need not have any more: those that ended long ago, and of which no run is unfinished.

        Args:
            shard: The shard.
            before_ms: They ended before this instant (ms, recorder's clock).
            limit: How many at most.

        Returns:
            (job, version) of each, the first that ended first.
        """
        rows = await self._database.rows(
            "SELECT job_id, version FROM jobs WHERE ended_at < at_ms(%s) AND ended_at IS NOT NULL AND NOT forgotten"
            " AND shard = %s AND NOT EXISTS (SELECT FROM unfinished_runs u WHERE u.job_id = jobs.job_id)"
            " ORDER BY ended_at LIMIT %s",
            (before_ms, shard, limit),
        )
        return [(JobId(r[0]), r[1]) for r in rows]

    async def mark_forgotten(self, items: Sequence[tuple[JobId, int]]) -> None:
        """Puts on record that Redis has these jobs no more, unless they have changed since the given version."""
        await self._database.execute(
            "UPDATE jobs t SET forgotten = true FROM unnest(%s::text[], %s::bigint[]) AS u(job_id, version)"
            " WHERE t.job_id = u.job_id AND t.version = u.version AND t.ended_at IS NOT NULL",
            ([j for j, _ in items], [v for _, v in items]),
        )

    async def drop_superseded(self, shard: str, *, after: RunKey, limit: int) -> Dropped:
        """Takes rows out of a page whose run has ended by a later record of another day.

        Args:
            shard: The shard.
            after: Where the page before ended; FIRST begins.
            limit: How many rows the page has at most.

        Returns:
            What was done.
        """
        rows = await self._page(shard, after=after, limit=limit)
        if not rows:
            return Dropped(FIRST, 0)
        last = run_key(rows[-1][0])
        async with self._database.connection() as connection:
            # Nobody records meanwhile: such a run may be replayed at this moment.
            await connection.execute("SELECT pg_advisory_xact_lock(%s, %s)", (RUNS_LOCK, lock_key(shard)))
            gone = await connection.execute(
                "DELETE FROM unfinished_runs r WHERE (job_id, scheduled_at, manual) > (%s, at_ms(%s), %s)"
                f" AND (job_id, scheduled_at, manual) <= (%s, at_ms(%s), %s) AND {_SUPERSEDED}"
                " AND EXISTS (SELECT FROM queue_keys q WHERE q.id = r.queue_key AND q.shard = %s)".encode(),
                (*after, *last, shard),
            )
            return Dropped(last if len(rows) == limit else FIRST, gone.rowcount)

    async def vacuum(self) -> None:
        """Frees the rows of runs that moved or ended, so that the table stays as small as what is under way.

        Autovacuum looks at a table once a minute at most, in which a hundred thousands of runs come and go.
        """
        connection = await connect(self._database.url)
        try:
            with translated(), deadline(connection, _VACUUM_S):
                await connection.execute("VACUUM (SKIP_LOCKED, TRUNCATE false) unfinished_runs")
        finally:
            await connection.close()

    async def _page(self, shard: str, *, after: RunKey, limit: int) -> list[Row]:
        return await self._database.rows_by_index(
            f"SELECT {_RUN_COLUMNS} FROM unfinished_runs r {RUN_NAMES} WHERE q.shard = %s"
            " AND (r.job_id, r.scheduled_at, r.manual) > (%s, at_ms(%s), %s)"
            " ORDER BY r.job_id, r.scheduled_at, r.manual LIMIT %s",
            (shard, *after, limit),
        )
