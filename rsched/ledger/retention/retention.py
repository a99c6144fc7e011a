"""History past its retention goes to Parquet files, verified, and only then out of Postgres.

Authority: the table `archived`. First the rows leave the tables of history, in one transaction (detach.py), then they are
exported, then dropped; whatever is repeated after a crash finds what is leaving and goes on with it. One session at a time
does any of this, by an advisory lock that ends with its connection.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import date, timedelta
from pathlib import Path
from typing import NamedTuple

from anyio import to_thread

from rsched.core.errors import Unavailable
from rsched.ledger.base import Connection, Database, connect
from rsched.ledger.failures import translated
from rsched.ledger.keys import DAY_MS, claimed_on, day_starts_at
from rsched.ledger.migrate import schema_version
from rsched.ledger.retention import detach
from rsched.ledger.retention.columns import COLUMNS, INSTANTS, ORDER, SOURCES
from rsched.ledger.retention.parquet import Manifest, ParquetSink, digest, rows_in, to_disk, write_manifest, written
from rsched.runtime import faults

RETENTION_LOCK = 7_231_044
# A row group: so much is in memory at once, as text and as columns.
_GROUP_ROWS = 100_000
_GROUP_BYTES = 32 << 20


class Done(NamedTuple):
    """What a step did.

    Attributes:
        kind: left (a day, or a sweep of what was kept, is on its way), archived, pruned, nothing, busy (another session), waits
            (others have locks on the tables that a day would leave: to be tried again in a minute or so, as each try stops all
            who record).
        name: The day, or the sweep.
        rows: How many rows were archived, or pruned.
    """

    kind: str
    name: str = ""
    rows: int = 0


class Retention:
    """Moves history to the archive, step by step."""

    def __init__(self, database: Database) -> None:
        self._database, self._clock = database, database.clock

    async def retain(self, folder: Path, *, days: int, swept_on: date | None = None) -> Done:
        """Does one step: at most one export, or one day that leaves.

        Args:
            folder: The archive's folder.
            days: How long history stays in Postgres.
            swept_on: The day of the last sweep that found nothing, which is not tried again.

        Returns:
            What was done.

        Raises:
            Unavailable: Postgres is away, the disk refuses, or counts differ; the step is to be tried again.
        """
        async with self._alone() as c:
            if c is None:
                return Done("busy")
            with translated():
                return await self._retain(c, folder, days=days, swept_on=swept_on)

    async def _retain(self, c: Connection, folder: Path, *, days: int, swept_on: date | None) -> Done:
        found = await detach.next_leaving(c)
        if found is not None:
            return await self._archive(c, folder, name=found[0], day=found[1])
        today = claimed_on(self._clock.wall_ms())
        first = today - timedelta(days=days)
        before_ms = day_starts_at(first)
        day = await detach.oldest_day(c, before=first)
        if day is not None:
            if not await detach.leave_day(c, day, before_ms=before_ms):
                return Done("waits", day.isoformat())
            faults.point("retention.after_leave")
            return Done("left", day.isoformat())
        if swept_on == today:
            return Done("nothing")
        if await detach.sweep(c, today=today, before_ms=before_ms):
            faults.point("retention.after_leave")
            return Done("left", f"sweep of {today}")
        pruned = await detach.prune_dead_letters(c, before_ms=day_starts_at(today) - DAY_MS)
        return Done("pruned", today.isoformat(), pruned)

    async def _archive(self, c: Connection, folder: Path, *, name: str, day: date | None) -> Done:
        total = 0
        for table in await detach.present(c, name):
            total += await self._export(c, folder, table=table, name=name, day=day)
        faults.point("retention.before_drop")
        await detach.drop(c, name)
        faults.point("retention.after_drop")
        return Done("archived", name, total)

    async def _export(self, c: Connection, folder: Path, *, table: str, name: str, day: date | None) -> int:
        source = detach.leaving(table, name)
        path = folder / table / f"{name}.parquet"
        async with c.transaction():
            await c.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            # Nothing writes to it since it left; the lock sees to it that this is so.
            await c.execute(f"LOCK TABLE {source} IN SHARE MODE".encode())
            row = await (
                await c.execute(
                    f"SELECT count(*), ms_of(min({INSTANTS[table]})), ms_of(max({INSTANTS[table]})) FROM {source}".encode()
                )
            ).fetchone()
            assert row is not None
            count, first, last = row
            if count == 0:
                return 0
            await self._write(c, path, source=source, table=table, count=count)
        size, sha256 = await to_thread.run_sync(digest, path)
        faults.point("retention.before_manifest")
        manifest = Manifest(
            name=name,
            day=None if day is None else day.isoformat(),
            table=table,
            file=f"{table}/{path.name}",
            rows=count,
            bytes=size,
            sha256=sha256,
            schema_version=schema_version(),
            min_at=first,
            max_at=last,
            written_at=self._clock.wall_ms(),
        )
        await to_thread.run_sync(write_manifest, path.with_suffix(".json"), manifest)
        return int(count)

    async def _write(self, c: Connection, path: Path, *, source: str, table: str, count: int) -> None:
        columns = COLUMNS[table]
        names = ", ".join(f"{expression} AS {name}" for name, _, expression in columns)
        query = f"COPY (SELECT {names} FROM {SOURCES[table].format(source)} ORDER BY {ORDER[table]}) TO STDOUT"
        query += " (FORMAT csv, ENCODING 'UTF8')"
        with written(path) as file:
            with await to_thread.run_sync(ParquetSink, file, [(name, kind) for name, kind, _ in columns]) as sink:
                await _stream(c, query, sink)
                await to_thread.run_sync(sink.close)
            await to_thread.run_sync(to_disk, file)
            faults.point("retention.before_verify")
            there = await to_thread.run_sync(rows_in, Path(file.name))
            if there != count:
                raise Unavailable(f"{path} got {there} rows of {count}; nothing is dropped, it is written again")
            faults.point("retention.before_rename")

    @asynccontextmanager
    async def _alone(self) -> AsyncIterator[Connection | None]:
        connection = await connect(self._database.url)
        try:
            with translated():
                row = await (await connection.execute("SELECT pg_try_advisory_lock(%s)", (RETENTION_LOCK,))).fetchone()
            yield connection if row and row[0] else None
        finally:
            await connection.close()


async def _stream(c: Connection, query: str, sink: ParquetSink) -> None:
    group, size = [], 0
    async with c.cursor() as cursor, cursor.copy(query.encode()) as copy:
        # The server sends one message a row.
        async for line in copy:
            group.append(bytes(line))
            size += len(line)
            if len(group) == _GROUP_ROWS or size >= _GROUP_BYTES:
                await to_thread.run_sync(sink.write, b"".join(group))
                faults.point("retention.in_export")
                group, size = [], 0
    if group:
        await to_thread.run_sync(sink.write, b"".join(group))
        faults.point("retention.in_export")
