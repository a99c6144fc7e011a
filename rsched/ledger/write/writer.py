"""One batch of the journal is one transaction, and positions tell what is in."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import date, timedelta
from typing import NamedTuple
from weakref import WeakSet

import psycopg

from rsched.core.errors import Unavailable
from rsched.core.jobs.packed import Event
from rsched.ledger.base import Connection, Database
from rsched.ledger.failures import REFUSED
from rsched.ledger.keys import DAY_MS, claimed_on
from rsched.ledger.positions import CHANNEL, START, Position, parse_position
from rsched.ledger.write.batch import Batch, Ids, Refused
from rsched.ledger.write.names import Names
from rsched.ledger.write.quarantine import put_in_quarantine, without_detail
from rsched.ledger.write.upserts import PARTITION_LOCK, STAGING, make_partitions, write
from rsched.runtime import faults
from rsched.runtime.log import get_logger

_log = get_logger("rsched.ledger")
# For a batch of 50,000 events on a slow disk; one that takes longer is tried again.
_RECORD_S = 30.0


class _Moved(Exception):
    """The position is not what the caller read."""


class _Step(NamedTuple):
    """A stream of a shard, from the position before to the one after."""

    shard: str
    stream: str
    before: Position
    after: Position


class Writer:
    """The recorder's side of the ledger."""

    def __init__(self, database: Database) -> None:
        self._database, self._clock = database, database.clock
        self._staged: WeakSet[Connection] = WeakSet()
        self._days: set[date] = set()
        self._names = Names()
        self._quarantined: Counter[tuple[str, str]] = Counter()
        self._moves: Counter[str] = Counter()

    async def position(self, shard: str, stream: str) -> str:
        """Reads the position of a stream.

        Returns:
            The journal id of its last recorded entry, "0-0" for none.

        Raises:
            Unavailable: Postgres is away.
        """
        row = await self._database.row(
            "SELECT generation, sequence FROM positions WHERE shard = %s AND stream = %s", (shard, stream)
        )
        return str(Position(*row)) if row else str(START)

    def quarantined(self, shard: str, stream: str) -> int:
        """Returns how many events of the stream this process has put in quarantine."""
        return self._quarantined[shard, stream]

    def moves(self, shard: str) -> int:
        """Returns how many moves of runs of the shard this process has recorded."""
        return self._moves[shard]

    async def record(self, shard: str, *, stream: str, expected: str, new: str, events: Sequence[Event]) -> bool:
        """Records events and moves the position, all or nothing.

        Events that Postgres refuses are put in quarantine; a run's event is recorded all the same if it can be without its text.
        Entries of two generations go in two calls, so that the end of the first is known.

        Args:
            shard: The events' shard.
            stream: `journal` or `definitions`.
            expected: The journal id up to which the caller knows the stream to be recorded.
            new: The journal id of the last entry that the events are of.
            events: All events between the two, in their order.

        Returns:
            False where the position was not `expected`: someone else recorded.

        Raises:
            Unavailable: Not recorded, or (when the re-read failed, too) unknown; read the position again.
        """
        step = _Step(shard, stream, parse_position(expected), parse_position(new))
        refused: list[Refused] = []
        stripped: list[Event] = []
        while True:
            try:
                await self._transact(step, events, refused)
            except _Moved:
                return False
            except Unavailable:
                # The COMMIT may have been done all the same.
                if await self.position(shard, stream) != new:
                    raise
            except REFUSED as error:
                found = await self._bisect(shard, events)
                if not found:
                    raise Unavailable(f"Postgres refused a batch and none of its events: {error}") from error
                bad = {id(r.event) for r in found}
                tried = {id(e) for e in stripped}
                fresh = [r for r in found if id(r.event) not in tried]
                refused += fresh
                again = [e for r in fresh if (e := without_detail(r.event))]
                stripped += again
                events = [*(e for e in events if id(e) not in bad), *again]
                continue
            return True

    async def _transact(self, step: _Step, events: Sequence[Event], refused: Sequence[Refused]) -> None:
        batch = self._batch(step.shard, events)
        async with self._database.connection(within_s=_RECORD_S) as connection:
            ids = await self._prepare(connection, batch, shard=step.shard)
            async with connection.transaction():
                await _move(connection, step)
                faults.point("recorder.after_lock")
                await write(connection, batch, shard=step.shard, ids=ids)
                faults.point("recorder.after_upsert")
                quarantined = await put_in_quarantine(
                    connection, step.shard, stream=step.stream, batch=batch, refused=refused
                )
                note = f"{step.shard} {step.stream} {step.after}"
                await connection.execute("SELECT pg_notify(%s, %s)", (CHANNEL, note))
                faults.point("recorder.before_commit")
        self._quarantined[step.shard, step.stream] += quarantined
        self._moves[step.shard] += len(batch.runs)

    async def resync(self, shard: str, events: Sequence[Event]) -> None:
        """Writes what Redis has and Postgres may have lost; no position moves, and only what is newer is written.

        Args:
            shard: The events' shard.
            events: The events, as the journal would have them.

        Raises:
            Unavailable: Postgres is away; nothing, or a part, was written.
        """
        batch = self._batch(shard, events)
        try:
            async with self._database.connection(within_s=_RECORD_S) as connection:
                ids = await self._prepare(connection, batch, shard=shard)
                async with connection.transaction():
                    await write(connection, batch, shard=shard, ids=ids)
                    await put_in_quarantine(connection, shard, stream="definitions", batch=batch, refused=())
        except REFUSED as error:
            if len(events) == 1:
                _log.error("what Redis has can't be recorded", extra={"fields": {"shard": shard, "error": str(error)}})
                return
            half = len(events) // 2
            await self.resync(shard, events[:half])
            await self.resync(shard, events[half:])

    def _batch(self, shard: str, events: Sequence[Event]) -> Batch:
        batch = Batch(shard, now_ms=self._clock.wall_ms())
        batch.add(events)
        return batch

    async def _bisect(self, shard: str, events: Sequence[Event]) -> list[Refused]:
        """Returns the events that Postgres refuses, each found by trial transactions that are rolled back."""
        found = []
        parts = [list(events)]
        while parts:
            part = parts.pop()
            reason = await self._trial(shard, part)
            if reason is None:
                continue
            if len(part) == 1:
                found.append(Refused(part[0], reason))
            else:
                half = len(part) // 2
                parts += [part[:half], part[half:]]
        return found

    async def _trial(self, shard: str, events: Sequence[Event]) -> str | None:
        batch = self._batch(shard, events)
        try:
            async with self._database.connection(within_s=_RECORD_S) as connection:
                ids = await self._prepare(connection, batch, shard=shard)
                async with connection.transaction():
                    await write(connection, batch, shard=shard, ids=ids)
                    raise psycopg.Rollback
        except REFUSED as error:
            return f"{type(error).__name__}: {error}"
        return None

    async def _prepare(self, connection: Connection, batch: Batch, *, shard: str) -> Ids:
        """Makes staging tables for a new connection, and the partitions and ids of names that the batch needs."""
        if connection not in self._staged:
            await connection.execute(STAGING.encode())
            await connection.commit()
            self._staged.add(connection)
        days = set()
        for number in {e.record.claimed_at // DAY_MS for e in batch.runs.values()}:
            try:
                days.add(claimed_on(number * DAY_MS))
            except OverflowError:
                continue  # run_rows refuses that run
        missing = sorted(days - self._days)
        if missing:
            async with connection.transaction():
                await self._make(connection, missing)
        return await self._names.ids_of(connection, batch, shard=shard)

    async def _make(self, connection: Connection, days: Sequence[date]) -> None:
        # Two sessions that make one table at once would make one of them fail.
        await connection.execute("SELECT pg_advisory_xact_lock(%s)", (PARTITION_LOCK,))
        for day in days:
            await make_partitions(connection, day, 1)
        self._days.update(days)

    async def make_partitions_ahead(self, *, days: int = 8) -> None:
        """Makes the partitions from today on.

        Args:
            days: Of how many days.

        Raises:
            Unavailable: Postgres is away.
        """
        today = claimed_on(self._clock.wall_ms())
        # A server that was put back from a backup has fewer of them than this process remembers.
        self._days.clear()
        async with self._database.connection() as connection, connection.transaction():
            await self._make(connection, [today + timedelta(days=n) for n in range(days)])


async def _move(connection: Connection, step: _Step) -> None:
    """Moves the position, which no one else moves until the transaction is over."""
    if step.before == START:
        await connection.execute(
            "INSERT INTO positions (shard, stream, generation, sequence) VALUES (%s, %s, 0, 0) ON CONFLICT DO NOTHING",
            (step.shard, step.stream),
        )
    # Locks the row and compares it in one.
    moved = await connection.execute(
        "UPDATE positions SET generation = %s, sequence = %s, touched_at = now()"
        " WHERE shard = %s AND stream = %s AND generation = %s AND sequence = %s",
        (*step.after, step.shard, step.stream, *step.before),
    )
    if moved.rowcount != 1:
        raise _Moved
    if step.after.generation != step.before.generation and step.before != START:
        await connection.execute(
            "INSERT INTO position_ends (shard, stream, generation, sequence) VALUES (%s, %s, %s, %s)"
            " ON CONFLICT (shard, stream, generation) DO UPDATE SET sequence = excluded.sequence",
            (step.shard, step.stream, *step.before),
        )
