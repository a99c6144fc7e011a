"""What the recorder needs beyond recording: openings, the recorder's lock, and the pages that repair goes through."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from rsched.core.ids import JobId, RunId
from rsched.core.packed import RunRecord
from rsched.core.states import RunState
from rsched.ledger.base import Base, connect, deadline
from rsched.ledger.failures import translated
from rsched.ledger.positions import RECORDER_LOCK, Position, lock_key
from rsched.ledger.stored import RUN_COLUMNS, run_of
from rsched.ledger.upserts import Connection

# Room for all attempts of one opening: fences of a lost tail stay below those of the next opening.
FENCE_STEP = 2**36
_OPEN = [s.value for s in RunState if not s.final]


class RecorderLock:
    """A session's lock on a shard; gone when its connection is."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def check(self) -> None:
        """Unavailable where the session, and so the lock, is gone."""
        with translated(), deadline(self._connection):
            await self._connection.execute("SELECT 1")


class RepairVerbs(Base):
    async def next_generation(self, shard: str, *, redis_fence: int, above: int = 0) -> tuple[int, int]:
        """(generation, fence) of a new opening, committed: both above all that were ever given out.

        above: the generation that Redis knows, which is the later one where Postgres lost its tail.
        """
        row = await self._one(
            "INSERT INTO shards AS t (shard, generation, fence) VALUES (%s, %s::bigint + 1, %s::bigint + %s)"
            " ON CONFLICT (shard) DO UPDATE SET generation = greatest(t.generation + 1, excluded.generation),"
            " fence = greatest(t.fence + %s, excluded.fence) RETURNING generation, fence",
            (shard, above, redis_fence, FENCE_STEP, FENCE_STEP),
        )
        assert row is not None
        return int(row[0]), int(row[1])

    async def keep_above(self, shard: str, *, generation: int, fence: int) -> None:
        """What was given out counts, though this Postgres may not know it any more. Unavailable."""
        await self._do(
            "INSERT INTO shards AS t (shard, generation, fence) VALUES (%s, %s, %s) ON CONFLICT (shard) DO UPDATE SET"
            " generation = excluded.generation, fence = greatest(t.fence, excluded.fence)"
            " WHERE t.generation < excluded.generation",
            (shard, generation, fence),
        )

    @asynccontextmanager
    async def acquire_recorder(self, shard: str) -> AsyncIterator[RecorderLock | None]:
        """The shard's recorder lock, held by a connection of its own; None where another session has it."""
        connection = await connect(self._url)
        try:
            with translated(), deadline(connection):
                found = await connection.execute(
                    "SELECT pg_try_advisory_lock(%s, %s)", (RECORDER_LOCK, lock_key(shard))
                )
                row = await found.fetchone()
            yield RecorderLock(connection) if row and row[0] else None
        finally:
            await connection.close()

    async def forgettable(self, shard: str, *, before_ms: int, limit: int) -> list[tuple[JobId, int]]:
        """(job, version) of jobs that were completed or deleted before (recorder's clock) and are not forgotten yet.

        None of which a run is still open: its attempts need the definition.
        """
        rows = await self._all(
            "SELECT job_id, version FROM jobs WHERE completed_at < %s AND completed_at IS NOT NULL AND NOT forgotten"
            " AND shard = %s AND NOT EXISTS ("
            "SELECT 1 FROM runs r WHERE r.run_id > jobs.job_id || ':' AND r.run_id < jobs.job_id || ';'"
            " AND r.state IN ('QUEUED', 'RUNNING', 'RETRYING')) ORDER BY completed_at LIMIT %s",
            (before_ms, shard, limit),
        )
        return [(JobId(r[0]), r[1]) for r in rows]

    async def mark_forgotten(self, items: Sequence[tuple[JobId, int]]) -> None:
        await self._do(
            "UPDATE jobs t SET forgotten = true FROM unnest(%s::text[], %s::bigint[]) AS u(job_id, version)"
            " WHERE t.job_id = u.job_id AND t.version = u.version AND t.completed_at IS NOT NULL",
            ([j for j, _ in items], [v for _, v in items]),
        )

    async def watermarks(self, shard: str) -> dict[int, int]:
        """partition -> ms: all its occurrences before are claimed."""
        return dict(await self._all("SELECT partition, ms FROM watermarks WHERE shard = %s", (shard,)))

    async def open_runs(self, shard: str, *, after: str, limit: int) -> list[tuple[RunId, RunRecord]]:
        """A page of runs that are not final, by id; "" begins."""
        rows = await self._all(
            "SELECT run_id FROM runs WHERE run_id > %s AND shard = %s AND state = ANY(%s) ORDER BY run_id LIMIT %s",
            (after, shard, _OPEN, limit),
        )
        return await self._newest([r[0] for r in rows])

    async def runs_above(
        self, shard: str, *, stream: str, above: Position, after: str, limit: int
    ) -> list[tuple[RunId, RunRecord]]:
        """A page of runs, final ones among them, that entries after `above` changed last."""
        rows = await self._all(
            "SELECT run_id FROM runs WHERE run_id > %s AND shard = %s AND stream = %s AND (generation, n) > (%s, %s)"
            " ORDER BY run_id LIMIT %s",
            (after, shard, stream, *above, limit),
        )
        return await self._newest([r[0] for r in rows])

    async def _newest(self, run_ids: list[str]) -> list[tuple[RunId, RunRecord]]:
        # A run that was withdrawn and claimed again on another day has two rows.
        if not run_ids:
            return []
        rows = await self._all(
            f"SELECT DISTINCT ON (run_id) {RUN_COLUMNS} FROM runs WHERE run_id = ANY(%s)"
            " ORDER BY run_id, fence DESC, rev DESC",
            (run_ids,),
        )
        return [(run.run_id, run.record) for run in map(run_of, rows)]
