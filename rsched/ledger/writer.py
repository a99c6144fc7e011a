"""The recorder's side of the ledger: one batch of the journal is one transaction, and positions tell what is in."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import date, timedelta
from weakref import WeakSet

import psycopg

from rsched.core.errors import Unavailable
from rsched.core.jobs.packed import Event
from rsched.ledger.failures import REFUSED
from rsched.ledger.positions import CHANNEL, START, Position, parse_position
from rsched.ledger.quarantine import Quarantine, without_detail
from rsched.ledger.staging import DAY_MS, Batch, Refused, claimed_on
from rsched.ledger.upserts import PARTITION_LOCK, STAGING, Connection, make_partitions, write
from rsched.runtime import faults
from rsched.runtime.clock import Clock
from rsched.runtime.log import get_logger

_log = get_logger("rsched.ledger")
# For a batch of 50,000 events on a slow disk; one that takes longer is tried again.
_RECORD_S = 30.0


class _Moved(Exception):
    """The position is not what the caller read."""


class Writer(Quarantine):
    def __init__(self, url: str, *, pool_max: int, clock: Clock) -> None:
        super().__init__(url, pool_max=pool_max, clock=clock)
        self._staged: WeakSet[Connection] = WeakSet()
        self._days: set[date] = set()
        self._claimed_to: dict[str, int] = {}
        self._aside: Counter[tuple[str, str]] = Counter()

    async def position(self, shard: str, stream: str) -> str:
        """The last recorded entry of a stream, "0-0" for none. Unavailable."""
        row = await self._one("SELECT generation, n FROM positions WHERE shard = %s AND stream = %s", (shard, stream))
        return str(Position(*row)) if row else str(START)

    def claimed_to(self, shard: str) -> int:
        """The latest claim (ms) that this process recorded of the shard, 0 for none yet."""
        return self._claimed_to.get(shard, 0)

    def quarantined(self, shard: str, stream: str) -> int:
        """How many events of the stream this process has quarantined."""
        return self._aside[shard, stream]

    async def record(self, shard: str, *, stream: str, expected: str, new: str, events: Sequence[Event]) -> bool:
        """Records the events after `expected` up to `new` and moves the position, all or nothing.

        False where the position was not `expected`: someone else recorded. Events that Postgres refuses are quarantined
        in `quarantine`; a run's event is recorded all the same if it can be without its text. Unavailable: not recorded, or (when
        the re-read failed, too) unknown; read the position again.
        Entries of two generations go in two calls, so that the end of the first is known.
        """
        before, after = parse_position(expected), parse_position(new)
        refused: list[Refused] = []
        again: list[Event] = []
        while True:
            try:
                await self._transact(shard, stream=stream, before=before, after=after, events=events, refused=refused)
            except _Moved:
                return False
            except Unavailable:
                # The COMMIT may have been done all the same.
                if await self.position(shard, stream) != new:
                    raise
            except REFUSED as error:
                found = await self._bisect(shard, stream=stream, after=after, events=events)
                if not found:
                    raise Unavailable(f"Postgres refused a batch and none of its events: {error}") from error
                bad = {id(r.event) for r in found}
                tried = {id(e) for e in again}
                fresh = [r for r in found if id(r.event) not in tried]
                refused += fresh
                stripped = [e for r in fresh if (e := without_detail(r.event))]
                again += stripped
                events = [*(e for e in events if id(e) not in bad), *stripped]
                continue
            return True

    async def _transact(
        self,
        shard: str,
        *,
        stream: str,
        before: Position,
        after: Position,
        events: Sequence[Event],
        refused: Sequence[Refused],
    ) -> None:
        batch = Batch(shard, now_ms=self._clock.wall_ms())
        batch.add(events)
        async with self._connection(within_s=_RECORD_S) as c:
            await self._prepare(c, batch)
            async with c.transaction():
                await self._move(c, shard, stream=stream, before=before, after=after)
                faults.point("recorder.after_lock")
                claimed_to = await write(c, batch, shard=shard, journal_id=(stream, *after))
                faults.point("recorder.after_upsert")
                aside = await self._quarantine(c, shard, stream=stream, batch=batch, refused=refused)
                await c.execute("SELECT pg_notify(%s, %s)", (CHANNEL, f"{shard} {stream} {after}"))
                faults.point("recorder.before_commit")
        self._claimed_to[shard] = max(claimed_to, self.claimed_to(shard))
        self._aside[shard, stream] += aside

    async def _move(self, c: Connection, shard: str, *, stream: str, before: Position, after: Position) -> None:
        if before == START:
            await c.execute(
                "INSERT INTO positions (shard, stream, generation, n) VALUES (%s, %s, 0, 0) ON CONFLICT DO NOTHING",
                (shard, stream),
            )
        # Locks the row and compares it in one.
        moved = await c.execute(
            "UPDATE positions SET generation = %s, n = %s, touched_at = now()"
            " WHERE shard = %s AND stream = %s AND generation = %s AND n = %s",
            (*after, shard, stream, *before),
        )
        if moved.rowcount != 1:
            raise _Moved
        if after.generation != before.generation and before != START:
            await c.execute(
                "INSERT INTO position_ends (shard, stream, generation, n) VALUES (%s, %s, %s, %s)"
                " ON CONFLICT (shard, stream, generation) DO UPDATE SET n = excluded.n",
                (shard, stream, *before),
            )

    async def write_again(self, shard: str, events: Sequence[Event]) -> None:
        """What Redis has and Postgres may have lost; no position moves, and only what is newer is written. Unavailable."""
        last = parse_position(await self.position(shard, "definitions"))
        batch = Batch(shard, now_ms=self._clock.wall_ms())
        batch.add(events)
        try:
            async with self._connection(within_s=_RECORD_S) as c:
                await self._prepare(c, batch)
                async with c.transaction():
                    await write(c, batch, shard=shard, journal_id=("definitions", *last))
                    await self._quarantine(c, shard, stream="definitions", batch=batch, refused=())
        except REFUSED as error:
            if len(events) == 1:
                _log.error("what Redis has can't be recorded", extra={"fields": {"shard": shard, "error": str(error)}})
                return
            half = len(events) // 2
            await self.write_again(shard, events[:half])
            await self.write_again(shard, events[half:])

    async def _bisect(self, shard: str, *, stream: str, after: Position, events: Sequence[Event]) -> list[Refused]:
        """The events that Postgres refuses, each found by trial transactions that are rolled back."""
        found = []
        parts = [list(events)]
        while parts:
            part = parts.pop()
            reason = await self._trial(shard, stream=stream, after=after, events=part)
            if reason is None:
                continue
            if len(part) == 1:
                found.append(Refused(part[0], reason))
            else:
                half = len(part) // 2
                parts += [part[:half], part[half:]]
        return found

    async def _trial(self, shard: str, *, stream: str, after: Position, events: Sequence[Event]) -> str | None:
        batch = Batch(shard, now_ms=self._clock.wall_ms())
        batch.add(events)
        try:
            async with self._connection(within_s=_RECORD_S) as c:
                await self._prepare(c, batch)
                async with c.transaction():
                    await write(c, batch, shard=shard, journal_id=(stream, *after))
                    raise psycopg.Rollback
        except REFUSED as error:
            return f"{type(error).__name__}: {error}"
        return None

    async def _prepare(self, c: Connection, batch: Batch) -> None:
        """Staging tables for a new connection, and the partitions that the batch needs."""
        if c not in self._staged:
            await c.execute(STAGING.encode())
            await c.commit()
            self._staged.add(c)
        days = set()
        for number in {e.record.claimed_at // DAY_MS for e in batch.runs.values()}:
            try:
                days.add(claimed_on(number * DAY_MS))
            except OverflowError:
                continue  # run_rows refuses that run
        missing = sorted(days - self._days)
        if missing:
            async with c.transaction():
                await self._make(c, missing)

    async def _make(self, c: Connection, days: Sequence[date]) -> None:
        # Two sessions that make one table at once would make one of them fail.
        await c.execute("SELECT pg_advisory_xact_lock(%s)", (PARTITION_LOCK,))
        for day in days:
            await make_partitions(c, day, 1)
        self._days.update(days)

    async def make_partitions_ahead(self, *, days: int = 8) -> None:
        """Partitions from today on. Unavailable."""
        today = claimed_on(self._clock.wall_ms())
        # A server that was put back from a backup has fewer of them than this process remembers.
        self._days.clear()
        async with self._connection() as c, c.transaction():
            await self._make(c, [today + timedelta(days=n) for n in range(days)])
