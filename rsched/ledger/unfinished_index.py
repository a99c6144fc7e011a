"""Moves a shard's mark on: the open runs claimed before it are put among the unfinished_runs, and those that ended are taken out.

Two steps, so that recording never waits for a search. First the mark ahead (`indexing_until`) is set while no transaction that
records is under way (each holds the shard's row): what was recorded before is there for the search, and whoever records
later adds unfinished_runs for himself. Then the window between the two marks is looked through, and the mark follows.
"""

from __future__ import annotations

from datetime import date
from typing import NamedTuple

from psycopg.errors import LockNotAvailable

from rsched.ledger.base import Base
from rsched.ledger.staging import DAY_MS, claimed_on
from rsched.ledger.unfinished_runs import STATE_OF, WINDOW_S, first_claim, open_within, widest
from rsched.ledger.upserts import OPEN, Connection
from rsched.runtime import faults

# Whoever records waits behind the lock meanwhile; a transaction that is longer is met again at the next step.
_LOCK = b"SET LOCAL lock_timeout = '200ms'"
Key = tuple[date, str]
FIRST: Key = (date.min, "")


class Looked(NamedTuple):
    """A page of unfinished_runs: where the next begins (FIRST after the last), how many were taken out."""

    after: Key
    dropped: int


class UnfinishedRunIndex(Base):
    async def index_unfinished_runs(self, shard: str, *, up_to: int, width_ms: int) -> bool:
        """Moves the mark on by one window, up to up_to (ms) at most; True where there may be more to do. Unavailable."""
        async with self._connection(within_s=WINDOW_S) as c:
            width_ms = min(width_ms, await widest(c))
            await c.commit()
            window = await self._aim(c, shard, up_to=up_to, width_ms=width_ms)
            if window is None:
                return False
            faults.point("housekeeping.before_listing")
            since, until = window
            async with c.transaction():
                query, params = await open_within(c, shard, since=since or None, until=until)
                # In the order in which those who record add theirs, and not before all are found: they wait for the same rows.
                await c.execute(
                    f"WITH found AS MATERIALIZED ({query}) INSERT INTO unfinished_runs (shard, claimed_on, run_id)"
                    " SELECT %s, claimed_on, run_id FROM found ORDER BY claimed_on, run_id ON CONFLICT DO NOTHING".encode(),
                    (*params, shard),
                )
                # Waits for nobody: the key stays, and that is all that those who record hold.
                await c.execute(
                    "UPDATE unfinished_high_water SET indexed_until = greatest(indexed_until, %s) WHERE shard = %s",
                    (until, shard),
                )
            return until < up_to

    async def index_claims(self) -> None:
        """Makes the index by claim know the pages that were written since. Unavailable.

        By itself it learns of them at a vacuum; until then every search reads them. (autosummarize has room for 256 of its ranges
        at a time and forgets the others.) Not while a vacuum is under way: who waits for a second has it cancelled.
        """
        days = [claimed_on(self._clock.wall_ms() - n * DAY_MS) for n in (0, 1)]
        tables = ["runs_kept", *(f"runs_{day:%Y%m%d}" for day in days)]
        async with self._connection(within_s=WINDOW_S) as c:
            for table in tables:
                try:
                    async with c.transaction():
                        await c.execute(_LOCK)
                        await c.execute(
                            "SELECT brin_summarize_new_values(i.indexrelid) FROM pg_index i JOIN pg_inherits h"
                            " ON h.inhrelid = i.indexrelid WHERE h.inhparent = 'runs_by_claim'::regclass"
                            " AND i.indrelid = to_regclass(%s)",
                            (table,),
                        )
                except LockNotAvailable:
                    continue

    async def drop_ended(self, shard: str, *, after: Key, limit: int) -> Looked:
        """Takes runs that have ended out of a page of unfinished_runs. Unavailable."""
        async with self._connection() as c:
            found = await c.execute(
                f"SELECT s.claimed_on, s.run_id, {STATE_OF} = ANY(%s) FROM unfinished_runs s WHERE s.shard = %s"
                " AND (s.claimed_on, s.run_id) > (%s, %s) ORDER BY s.claimed_on, s.run_id LIMIT %s",
                (OPEN, shard, *after, limit),
            )
            rows = await found.fetchall()
            ended = [(day, run) for day, run, is_open in rows if not is_open]
            dropped = await self._drop(c, shard, ended) if ended else 0
            return Looked((rows[-1][0], rows[-1][1]) if len(rows) == limit else FIRST, dropped)

    async def _aim(self, c: Connection, shard: str, *, up_to: int, width_ms: int) -> tuple[int, int] | None:
        """The window to look through, its end committed as the mark ahead."""
        try:
            async with c.transaction():
                await c.execute(_LOCK)
                found = await c.execute(
                    "SELECT indexed_until, indexing_until FROM unfinished_high_water WHERE shard = %s FOR UPDATE",
                    (shard,),
                )
                row = await found.fetchone()
                if row is None:
                    return None  # no run was ever recorded
                since, until = int(row[0]), int(row[1])
                if until == since:
                    until = min(up_to, since + width_ms if since else await first_claim(c, latest=up_to))
                    if until <= since:
                        return None
                    await c.execute(
                        "UPDATE unfinished_high_water SET indexing_until = %s WHERE shard = %s", (until, shard)
                    )
                # Else somebody ended half-way: nothing is under way that does not know that mark.
                return since, until
        except LockNotAvailable:
            return None

    async def _drop(self, c: Connection, shard: str, ended: list[Key]) -> int:
        # A run that ended may be open again (a dead letter that is replayed): looked at again while nobody records.
        try:
            async with c.transaction():
                await c.execute(_LOCK)
                await c.execute("SELECT 1 FROM unfinished_high_water WHERE shard = %s FOR UPDATE", (shard,))
                gone = await c.execute(
                    "DELETE FROM unfinished_runs s USING unnest(%s::date[], %s::text[]) AS u(claimed_on, run_id)"
                    " WHERE s.shard = %s AND s.claimed_on = u.claimed_on AND s.run_id = u.run_id"
                    f" AND ({STATE_OF} = ANY(%s)) IS NOT TRUE",
                    ([day for day, _ in ended], [run for _, run in ended], shard, OPEN),
                )
                return gone.rowcount
        except LockNotAvailable:
            return 0
