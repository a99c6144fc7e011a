"""What the recorder needs beyond recording: recoveries, the recorder's lock, and the pages that repair goes through."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from rsched.core.errors import Misconfigured
from rsched.core.ids import JobId
from rsched.ledger.base import connect, deadline
from rsched.ledger.failures import translated
from rsched.ledger.positions import RECORDER_LOCK, lock_key
from rsched.ledger.unfinished_runs import UnfinishedRuns
from rsched.ledger.upserts import Connection

# Room for all attempts of one recovery: fences of a lost tail stay below those of the next recovery.
FENCE_STEP = 2**36
# More attempts than a shard starts in a ms. As a floor it sets the fences of two recoveries apart by the time between them, where
# neither server remembers the first.
FENCE_PER_MS = 2048
# Past it scripts could not tell a fence from the next one (Lua has doubles). The wall clock takes it there in May 2109.
MAX_FENCE = 2**53


class RecorderLock:
    """A session's lock on a shard; gone when its connection is."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def check(self) -> None:
        """Unavailable where the session, and so the lock, is gone."""
        with translated(), deadline(self._connection):
            await self._connection.execute("SELECT 1")


class RecoveryReads(UnfinishedRuns):
    async def next_generation(self, shard: str, *, redis_fence: int, above: int = 0) -> tuple[int, int]:
        """(generation, fence) of a new recovery, committed: both above all that were ever given out.

        above: the generation that Redis knows, which is the later one where Postgres lost its tail. Where both lost it, what was
        given out since is below this process' wall clock; a clock that was stepped back is no floor, and both grow all the same.
        Misconfigured where fences run out. Unavailable.
        """
        now = self._clock.wall_ms()
        async with self._connection() as c:
            found = await c.execute(
                "INSERT INTO shards AS t (shard, generation, fence) VALUES (%s, %s, %s)"
                " ON CONFLICT (shard) DO UPDATE SET generation = greatest(t.generation + 1, excluded.generation),"
                " fence = greatest(t.fence + %s, excluded.fence) RETURNING generation, fence",
                (shard, max(above + 1, now), max(redis_fence + FENCE_STEP, now * FENCE_PER_MS), FENCE_STEP),
            )
            row = await found.fetchone()
            assert row is not None
            generation, fence = int(row[0]), int(row[1])
            if fence + FENCE_STEP > MAX_FENCE:
                # Raised in the transaction, which is rolled back.
                raise Misconfigured(
                    f"shard {shard} would be opened with fence {fence}, and there are none past {MAX_FENCE}: this machine's"
                    f" clock says {now} ms since 1970; set it right"
                )
        return generation, fence

    async def generation(self, shard: str) -> int:
        """Of the last recovery, 0 for none. Unavailable."""
        row = await self._one("SELECT generation FROM shards WHERE shard = %s", (shard,))
        return int(row[0]) if row else 0

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

    async def mark_forgotten(self, items: Sequence[tuple[JobId, int]]) -> None:
        await self._do(
            "UPDATE jobs t SET forgotten = true FROM unnest(%s::text[], %s::bigint[]) AS u(job_id, version)"
            " WHERE t.job_id = u.job_id AND t.version = u.version AND t.completed_at IS NOT NULL",
            ([j for j, _ in items], [v for _, v in items]),
        )

    async def watermarks(self, shard: str) -> dict[int, int]:
        """partition -> ms: all its occurrences before are claimed."""
        return dict(await self._all("SELECT partition, ms FROM watermarks WHERE shard = %s", (shard,)))
