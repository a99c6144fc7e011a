"""Generations and fences of shards, and the lock by which recorders of a shard take turns."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from rsched.core.errors import Misconfigured
from rsched.ledger.base import Connection, Database, connect, deadline
from rsched.ledger.failures import translated
from rsched.ledger.positions import RECORDER_LOCK, lock_key

# Room for all attempts of one generation: fences of a lost tail stay below those of the next one.
FENCE_STEP = 2**36
# More attempts than a shard starts in a ms. As a floor it sets the fences of two generations apart by the time between them,
# where neither server remembers the first.
FENCE_PER_MS = 2048
# Past it scripts could not tell a fence from the next one (Lua has doubles). The wall clock takes it there in May 2109.
MAX_FENCE = 2**53


class RecorderLock:
    """A session's lock on a shard; gone when its connection is."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def check(self) -> None:
        """Checks that the lock is still there.

        Raises:
            Unavailable: The session, and so the lock, is gone.
        """
        with translated(), deadline(self._connection):
            await self._connection.execute("SELECT 1")


class Generations:
    """What was given out, and who records. Every method raises Unavailable while Postgres is away."""

    def __init__(self, database: Database) -> None:
        self._database, self._clock = database, database.clock

    async def next(self, shard: str, *, redis_fence: int, above: int = 0) -> tuple[int, int]:
        """Gives out the generation and fence of a recovery, committed: both above all that were ever given out.

        Where both servers lost their tails, what was given out since is below this process' wall clock; a clock that was stepped
        back is no floor, and both grow all the same.

        Args:
            shard: The shard.
            redis_fence: The fence that Redis knows.
            above: The generation that Redis knows, which is the later one where Postgres lost its tail.

        Returns:
            (generation, fence).

        Raises:
            Misconfigured: Fences run out, as the clock is decades ahead.
            Unavailable: Postgres is away.
        """
        now = self._clock.wall_ms()
        async with self._database.connection() as connection:
            found = await connection.execute(
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
                    f"shard {shard} would begin its next generation with fence {fence}, and there are none past"
                    f" {MAX_FENCE}: this machine's clock says {now} ms since 1970; set it right"
                )
        return generation, fence

    async def last(self, shard: str) -> int:
        """Returns the last generation that was given out, 0 for none."""
        row = await self._database.row("SELECT generation FROM shards WHERE shard = %s", (shard,))
        return int(row[0]) if row else 0

    async def keep_above(self, shard: str, *, generation: int, fence: int) -> None:
        """Makes what was given out count, though this Postgres may not know it any more."""
        await self._database.execute(
            "INSERT INTO shards AS t (shard, generation, fence) VALUES (%s, %s, %s) ON CONFLICT (shard) DO UPDATE SET"
            " generation = excluded.generation, fence = greatest(t.fence, excluded.fence)"
            " WHERE t.generation < excluded.generation",
            (shard, generation, fence),
        )

    @asynccontextmanager
    async def acquire_recorder(self, shard: str) -> AsyncIterator[RecorderLock | None]:
        """Takes the shard's recorder lock, with a connection of its own.

        Yields:
            The lock, None where another session has it.

        Raises:
            Unavailable: Postgres is away.
        """
        connection = await connect(self._database.url)
        try:
            with translated(), deadline(connection):
                found = await connection.execute(
                    "SELECT pg_try_advisory_lock(%s, %s)", (RECORDER_LOCK, lock_key(shard))
                )
                row = await found.fetchone()
            yield RecorderLock(connection) if row and row[0] else None
        finally:
            await connection.close()

    async def watermarks(self, shard: str) -> dict[int, int]:
        """Returns, by partition, the instant (ms) before which all its occurrences are claimed."""
        return dict(await self._database.rows("SELECT partition, ms FROM watermarks WHERE shard = %s", (shard,)))

    async def recorder_alive(self, shard: str) -> bool:
        """Returns whether some recorder has the shard's lock."""
        row = await self._database.row(
            "SELECT EXISTS (SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND granted AND classid = %s"
            " AND objid = %s AND objsubid = 2"
            " AND database = (SELECT oid FROM pg_database WHERE datname = current_database()))",
            (RECORDER_LOCK, lock_key(shard)),
        )
        return bool(row and row[0])
