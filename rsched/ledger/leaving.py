"""How rows leave the tables of history: in one transaction, into tables of their own that nothing writes to any more."""

from __future__ import annotations

from datetime import date

from psycopg.errors import LockNotAvailable

from rsched.core.states import RunState
from rsched.ledger.staging import claimed_on
from rsched.ledger.upserts import PARTITION_LOCK, Connection

TABLES = ("runs", "attempts", "skips")
# A sweep's rows are copied and deleted in one transaction.
SWEEP_ROWS = 500_000
# Whoever wants a table waits behind whoever waits to detach its partition, so that may not wait for long.
_LIMITS = (
    "SET LOCAL lock_timeout = '1s'",
    # Of a recorder whose host is gone.
    "SET LOCAL idle_in_transaction_session_timeout = '5s'",
)
_STAY = ", ".join(f"'{s.value}'" for s in RunState if not s.final or s is RunState.DEAD)


def leaving(table: str, name: str) -> str:
    return f"leaving_{table}_{name.replace('-', '')}"


def stays(before_ms: int) -> str:
    """The condition of runs that stay whatever their day: open, DEAD, or ended at before_ms or later."""
    return f"(state IN ({_STAY}) OR coalesce(ended_at, 0) >= {before_ms})"


async def oldest_day(c: Connection, *, before: date) -> date | None:
    """The oldest day before `before` that has a partition of runs or of attempts."""
    found = await c.execute(
        "SELECT min(to_date(right(relname, 8), 'YYYYMMDD')) FROM pg_inherits JOIN pg_class ON oid = inhrelid"
        " WHERE inhparent IN ('runs'::regclass, 'attempts'::regclass) AND relname ~ '^(runs|attempts)_[0-9]{8}$'"
        " AND right(relname, 8) < %s",
        (f"{before:%Y%m%d}",),
    )
    row = await found.fetchone()
    return row[0] if row else None


async def leave_day(c: Connection, day: date, *, before_ms: int) -> bool:
    """Takes a day out of runs and attempts; what stays moves to the default partition. c: in autocommit mode.

    False where others hold the tables, and nothing was done.
    """
    suffix = f"{day:%Y%m%d}"
    present = await _tables(c, suffix)
    try:
        if "runs" in present:
            await _index_of_what_stays(c, suffix, before_ms=before_ms)
        await _detach(c, day, present, before_ms=before_ms)
    except LockNotAvailable:
        return False
    return True


async def _index_of_what_stays(c: Connection, suffix: str, *, before_ms: int) -> None:
    """Built beside writers, so that what stays is found at once when they are locked out.

    One that an earlier try left serves as well: what stays on a later day is a part of it.
    """
    found = await c.execute("SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass(%s)", (f"stays_{suffix}",))
    row = await found.fetchone()
    if row and row[0]:
        return
    if row:  # a try that was cut off
        async with c.transaction():
            await c.execute(_LIMITS[0].encode())
            await c.execute(f"DROP INDEX stays_{suffix}".encode())
    await c.execute(
        f"CREATE INDEX CONCURRENTLY stays_{suffix} ON runs_{suffix} (run_id) WHERE {stays(before_ms)}".encode()
    )


async def _detach(c: Connection, day: date, present: list[str], *, before_ms: int) -> None:
    suffix, name = f"{day:%Y%m%d}", day.isoformat()
    async with c.transaction():
        for limit in _LIMITS:
            await c.execute(limit.encode())
        await c.execute("SELECT pg_advisory_xact_lock(%s)", (PARTITION_LOCK,))
        # In the order in which the recorder locks them.
        await c.execute("LOCK TABLE runs, attempts IN ACCESS EXCLUSIVE MODE")
        # A partition of a day that left before was made by hands; it leaves under another name.
        known = await (await c.execute("SELECT count(*) FROM archived WHERE name LIKE %s", (name + "%",))).fetchone()
        again = int(known[0]) if known else 0
        name = f"{name}-{again + 1}" if again else name
        await c.execute(
            "INSERT INTO archived (name, day) VALUES (%s, %s) ON CONFLICT (name) DO NOTHING",
            (name, None if again else day),
        )
        for table in present:
            await c.execute(f"ALTER TABLE {table} DETACH PARTITION {table}_{suffix}".encode())
            await c.execute(f"ALTER TABLE {table}_{suffix} RENAME TO {leaving(table, name)}".encode())
        if "runs" in present:
            await _keep(c, name, before_ms=before_ms, attempts="attempts" in present)
            await c.execute(f"DROP INDEX stays_{suffix}".encode())


async def _keep(c: Connection, name: str, *, before_ms: int, attempts: bool) -> None:
    runs, condition = leaving("runs", name), stays(before_ms)
    if attempts:
        moved = leaving("attempts", name)
        await c.execute(
            f"WITH moved AS (DELETE FROM {moved} WHERE (claimed_on, run_id) IN"
            f" (SELECT claimed_on, run_id FROM {runs} WHERE {condition})"
            f" RETURNING *) INSERT INTO attempts SELECT * FROM moved".encode()
        )
    await c.execute(
        f"WITH moved AS (DELETE FROM {runs} WHERE {condition} RETURNING *) INSERT INTO runs SELECT * FROM moved".encode()
    )


async def _tables(c: Connection, suffix: str) -> list[str]:
    found = await c.execute(
        "SELECT inhparent::regclass::text FROM pg_inherits JOIN pg_class ON oid = inhrelid WHERE relname = ANY(%s)"
        " ORDER BY 1 DESC",
        ([f"runs_{suffix}", f"attempts_{suffix}"],),
    )
    return [row[0] for row in await found.fetchall()]


async def sweep(c: Connection, *, today: date, before_ms: int) -> bool:
    """Takes out skips, and of the kept runs and attempts those that need not stay. False where there are none."""
    day = claimed_on(before_ms)
    old = f"r.claimed_on < '{day}' AND NOT {stays(before_ms)}"
    async with c.transaction():
        name = await _sweep_name(c, today)
        tables = [leaving(t, name) for t in TABLES]
        for table, made in zip(TABLES, tables, strict=True):
            await c.execute(f"CREATE TABLE {made} (LIKE {table})".encode())
        runs, attempts, skips = tables
        rows = 0
        # Rows that are locked are being recorded; another sweep finds them.
        for query in (
            f"WITH gone AS (DELETE FROM runs_kept WHERE (claimed_on, run_id) IN (SELECT claimed_on, run_id FROM"
            f" runs_kept r WHERE {old} LIMIT {SWEEP_ROWS} FOR UPDATE SKIP LOCKED) RETURNING *)"
            f" INSERT INTO {runs} SELECT * FROM gone",
            f"WITH gone AS (DELETE FROM attempts_kept a WHERE claimed_on < '{day}' AND NOT EXISTS (SELECT FROM runs_kept r"
            f" WHERE r.claimed_on = a.claimed_on AND r.run_id = a.run_id) RETURNING *)"
            f" INSERT INTO {attempts} SELECT * FROM gone",
            f"WITH gone AS (DELETE FROM skips WHERE ctid IN (SELECT ctid FROM skips WHERE at < {before_ms} ORDER BY at"
            f" LIMIT {SWEEP_ROWS}) RETURNING *) INSERT INTO {skips} SELECT * FROM gone",
        ):
            rows += (await c.execute(query.encode())).rowcount
        if not rows:
            for made in tables:
                await c.execute(f"DROP TABLE {made}".encode())
            return False
        await c.execute("INSERT INTO archived (name) VALUES (%s)", (name,))
        return True


async def _sweep_name(c: Connection, today: date) -> str:
    found = await c.execute("SELECT count(*) FROM archived WHERE name LIKE %s", (f"sweep-{today}%",))
    row = await found.fetchone()
    count = int(row[0]) if row else 0
    return f"sweep-{today}-{count + 1}" if count else f"sweep-{today}"


async def next_leaving(c: Connection) -> tuple[str, date | None] | None:
    """(name, day) of what has left its tables and is not in the archive yet."""
    found = await c.execute("SELECT name, day FROM archived WHERE archived_at IS NULL ORDER BY name LIMIT 1")
    row = await found.fetchone()
    return (row[0], row[1]) if row else None


async def present(c: Connection, name: str) -> list[str]:
    """The tables of which a name has rows that are leaving."""
    out = []
    for table in TABLES:
        row = await (await c.execute("SELECT to_regclass(%s) IS NOT NULL", (leaving(table, name),))).fetchone()
        if row and row[0]:
            out.append(table)
    return out


async def drop(c: Connection, name: str) -> None:
    """What is in the archive is dropped, with the payloads of runs that are nowhere else."""
    tables = await present(c, name)
    async with c.transaction():
        if "runs" in tables:
            await c.execute(
                f"DELETE FROM payloads p USING {leaving('runs', name)} l WHERE p.run_id = l.run_id"
                " AND strpos(l.flags, 'P') > 0 AND NOT EXISTS (SELECT FROM runs r WHERE r.run_id = p.run_id)".encode()
            )
        for table in tables:
            await c.execute(f"DROP TABLE {leaving(table, name)}".encode())
        await c.execute("UPDATE archived SET archived_at = now() WHERE name = %s", (name,))


async def prune_dead_letters(c: Connection, *, before_ms: int) -> int:
    """Entries of runs that are DEAD no more.

    before_ms a day back or more: an entry that is renewed at this moment is younger, and so stays.
    """
    found = await c.execute(
        "DELETE FROM dead_letters d WHERE d.ended_at < %s AND NOT EXISTS (SELECT FROM runs r"
        " WHERE r.claimed_on = d.claimed_on AND r.run_id = d.run_id AND r.state = 'DEAD')",
        (before_ms,),
    )
    return found.rowcount
