"""How rows leave the tables of history: in one transaction, into tables of their own that nothing writes to any more."""

from __future__ import annotations

from datetime import date

from psycopg.errors import LockNotAvailable

from rsched.ledger.base import Connection
from rsched.ledger.keys import claimed_on
from rsched.ledger.write.upserts import PARTITION_LOCK

# What the archive has, and the table that it comes from.
TABLES = {"runs": "finished_runs", "attempts": "failed_attempts", "skips": "skips", "jobs": "jobs"}
# A sweep's rows are copied and deleted in one transaction.
SWEEP_ROWS = 500_000
# Whoever wants a table waits behind whoever waits to detach its partition, so that may not wait for long.
_LIMITS = (
    "SET LOCAL lock_timeout = '1s'",
    # Of a recorder whose host is gone.
    "SET LOCAL idle_in_transaction_session_timeout = '5s'",
)
_KEY = "job_id, scheduled_at, manual, claimed_on"


def leaving(table: str, name: str) -> str:
    """Returns the name of the table in which rows are on their way to the archive."""
    return f"leaving_{table}_{name.replace('-', '')}"


def stays(before_ms: int) -> str:
    """Returns the condition of runs that stay whatever their day: DEAD, or ended at before_ms or later."""
    return f"(status = 'DEAD' OR ended_at >= at_ms({before_ms}))"


async def oldest_day(connection: Connection, *, before: date) -> date | None:
    """Returns the oldest day before `before` that has a partition of runs or of attempts."""
    days = await connection.execute(
        "SELECT min(to_date(right(relname, 8), 'YYYYMMDD')) FROM pg_inherits JOIN pg_class ON oid = inhrelid"
        " WHERE inhparent IN ('finished_runs'::regclass, 'failed_attempts'::regclass)"
        " AND relname ~ '^(finished_runs|failed_attempts)_[0-9]{8}$' AND right(relname, 8) < %s",
        (f"{before:%Y%m%d}",),
    )
    row = await days.fetchone()
    return row[0] if row else None


async def leave_day(connection: Connection, day: date, *, before_ms: int) -> bool:
    """Takes a day out of runs and attempts; what stays moves to the default partition.

    Args:
        connection: A connection in autocommit mode.
        day: The day (UTC).
        before_ms: Runs that ended then (ms) or later stay.

    Returns:
        False where others have locks on the tables, and nothing was done.
    """
    suffix = f"{day:%Y%m%d}"
    there = await _tables(connection, suffix)
    try:
        if "runs" in there:
            await _index_of_what_stays(connection, suffix, before_ms=before_ms)
        await _detach(connection, day, there, before_ms=before_ms)
    except LockNotAvailable:
        return False
    return True


async def _index_of_what_stays(connection: Connection, suffix: str, *, before_ms: int) -> None:
    """Builds an index beside writers, so that what stays is found at once when they are locked out.

    One that an earlier try left serves as well: what stays on a later day is a part of it.
    """
    index = await connection.execute(
        "SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass(%s)", (f"stays_{suffix}",)
    )
    row = await index.fetchone()
    if row and row[0]:
        return
    if row:  # a try that was cut off
        async with connection.transaction():
            await connection.execute(_LIMITS[0].encode())
            await connection.execute(f"DROP INDEX stays_{suffix}".encode())
    await connection.execute(
        f"CREATE INDEX CONCURRENTLY stays_{suffix} ON finished_runs_{suffix} (job_id) WHERE {stays(before_ms)}".encode()
    )


async def _detach(connection: Connection, day: date, there: list[str], *, before_ms: int) -> None:
    suffix, name = f"{day:%Y%m%d}", day.isoformat()
    async with connection.transaction():
        for limit in _LIMITS:
            await connection.execute(limit.encode())
        await connection.execute("SELECT pg_advisory_xact_lock(%s)", (PARTITION_LOCK,))
        # In the order in which the recorder locks them.
        await connection.execute("LOCK TABLE finished_runs, failed_attempts IN ACCESS EXCLUSIVE MODE")
        # A partition of a day that left before was made by hands; it leaves under another name.
        count = await connection.execute("SELECT count(*) FROM archived WHERE name LIKE %s", (name + "%",))
        known = await count.fetchone()
        again = int(known[0]) if known else 0
        name = f"{name}-{again + 1}" if again else name
        await connection.execute(
            "INSERT INTO archived (name, day) VALUES (%s, %s) ON CONFLICT (name) DO NOTHING",
            (name, None if again else day),
        )
        for table in there:
            partition = f"{TABLES[table]}_{suffix}"
            await connection.execute(f"ALTER TABLE {TABLES[table]} DETACH PARTITION {partition}".encode())
            await connection.execute(f"ALTER TABLE {partition} RENAME TO {leaving(table, name)}".encode())
        if "runs" in there:
            await _keep(connection, name, before_ms=before_ms, attempts="attempts" in there)
            await connection.execute(f"DROP INDEX stays_{suffix}".encode())
        elif "attempts" in there:
            await _keep_attempts(connection, name)


async def _keep(connection: Connection, name: str, *, before_ms: int, attempts: bool) -> None:
    runs, condition = leaving("runs", name), stays(before_ms)
    if attempts:
        moved = leaving("attempts", name)
        await connection.execute(
            f"WITH moved AS (DELETE FROM {moved} WHERE ({_KEY}) IN (SELECT {_KEY} FROM {runs} WHERE {condition})"
            f" RETURNING *) INSERT INTO failed_attempts SELECT * FROM moved".encode()
        )
        await _keep_attempts(connection, name)
    await connection.execute(
        f"WITH moved AS (DELETE FROM {runs} WHERE {condition} RETURNING *) INSERT INTO finished_runs SELECT * FROM moved".encode()
    )


async def _keep_attempts(connection: Connection, name: str) -> None:
    """Those of runs that are not over stay."""
    moved = leaving("attempts", name)
    await connection.execute(
        f"WITH moved AS (DELETE FROM {moved} a USING unfinished_runs u WHERE a.job_id = u.job_id"
        " AND a.scheduled_at = u.scheduled_at AND a.manual = u.manual AND a.claimed_on = u.claimed_on RETURNING a.*)"
        " INSERT INTO failed_attempts SELECT * FROM moved".encode()
    )


async def _tables(connection: Connection, suffix: str) -> list[str]:
    tables = await connection.execute(
        "SELECT inhparent::regclass::text FROM pg_inherits JOIN pg_class ON oid = inhrelid WHERE relname = ANY(%s)",
        ([f"{TABLES[t]}_{suffix}" for t in ("runs", "attempts")],),
    )
    there = {row[0] for row in await tables.fetchall()}
    return [t for t in ("runs", "attempts") if TABLES[t] in there]


def _sweeps(name: str, *, before_ms: int) -> list[str]:
    """Returns the statements that move rows which need not stay; another sweep finds those that are being recorded."""
    day = claimed_on(before_ms)
    runs, attempts, skips, jobs = (leaving(table, name) for table in TABLES)
    return [
        f"WITH gone AS (DELETE FROM finished_runs_kept WHERE ({_KEY}) IN (SELECT {_KEY} FROM finished_runs_kept r"
        f" WHERE r.claimed_on < '{day}' AND NOT {stays(before_ms)} LIMIT {SWEEP_ROWS} FOR UPDATE SKIP LOCKED) RETURNING *)"
        f" INSERT INTO {runs} SELECT * FROM gone",
        f"WITH gone AS (DELETE FROM failed_attempts_kept a WHERE claimed_on < '{day}' AND NOT EXISTS (SELECT FROM"
        " finished_runs_kept r WHERE r.job_id = a.job_id AND r.scheduled_at = a.scheduled_at AND r.manual = a.manual"
        " AND r.claimed_on = a.claimed_on) AND NOT EXISTS (SELECT FROM unfinished_runs r WHERE r.job_id = a.job_id"
        " AND r.scheduled_at = a.scheduled_at AND r.manual = a.manual) RETURNING *)"
        f" INSERT INTO {attempts} SELECT * FROM gone",
        f"WITH gone AS (DELETE FROM skips WHERE ctid IN (SELECT ctid FROM skips WHERE skipped_at < at_ms({before_ms})"
        f" ORDER BY skipped_at LIMIT {SWEEP_ROWS}) RETURNING *) INSERT INTO {skips} SELECT * FROM gone",
        # The id of a named job, or of one with a key, is derived from its incarnation, which has to be known for good.
        f"WITH gone AS (DELETE FROM jobs WHERE job_id IN (SELECT job_id FROM jobs j WHERE ended_at < at_ms({before_ms})"
        " AND forgotten AND name IS NULL AND idempotency_key IS NULL AND schedule_kind = 'o'"
        " AND NOT EXISTS (SELECT FROM all_runs r WHERE r.job_id = j.job_id)"
        f" ORDER BY ended_at LIMIT {SWEEP_ROWS} FOR UPDATE SKIP LOCKED) RETURNING *) INSERT INTO {jobs} SELECT * FROM gone",
    ]


async def sweep(connection: Connection, *, today: date, before_ms: int) -> bool:
    """Takes out old skips, kept runs and attempts that need not stay, and one-off jobs without name or key.

    Args:
        connection: A connection in autocommit mode.
        today: The day (UTC), which names the sweep.
        before_ms: What ended before this instant (ms) leaves.

    Returns:
        False where there was nothing.
    """
    async with connection.transaction():
        name = await _sweep_name(connection, today)
        for table, source in TABLES.items():
            await connection.execute(f"CREATE TABLE {leaving(table, name)} (LIKE {source})".encode())
        rows = 0
        for query in _sweeps(name, before_ms=before_ms):
            rows += (await connection.execute(query.encode())).rowcount
        if not rows:
            for table in TABLES:
                await connection.execute(f"DROP TABLE {leaving(table, name)}".encode())
            return False
        await connection.execute(
            f"DELETE FROM catch_ups c USING {leaving('jobs', name)} j WHERE c.job_id = j.job_id".encode()
        )
        await connection.execute("INSERT INTO archived (name) VALUES (%s)", (name,))
        return True


async def _sweep_name(connection: Connection, today: date) -> str:
    names = await connection.execute("SELECT count(*) FROM archived WHERE name LIKE %s", (f"sweep-{today}%",))
    row = await names.fetchone()
    count = int(row[0]) if row else 0
    return f"sweep-{today}-{count + 1}" if count else f"sweep-{today}"


async def next_leaving(connection: Connection) -> tuple[str, date | None] | None:
    """Returns (name, day) of what has left its tables and is not in the archive yet."""
    names = await connection.execute("SELECT name, day FROM archived WHERE archived_at IS NULL ORDER BY name LIMIT 1")
    row = await names.fetchone()
    return (row[0], row[1]) if row else None


async def present(connection: Connection, name: str) -> list[str]:
    """Returns the tables of which a name has rows that are leaving."""
    there = []
    for table in TABLES:
        found = await connection.execute("SELECT to_regclass(%s) IS NOT NULL", (leaving(table, name),))
        row = await found.fetchone()
        if row and row[0]:
            there.append(table)
    return there


async def drop(connection: Connection, name: str) -> None:
    """Drops what is in the archive, with the payloads of runs that are nowhere else."""
    tables = await present(connection, name)
    async with connection.transaction():
        if "runs" in tables:
            await connection.execute(
                f"DELETE FROM payloads p USING {leaving('runs', name)} l WHERE p.run_id = run_id_of(l.job_id, l.scheduled_at,"
                " l.manual) AND strpos(l.flags, 'P') > 0 AND NOT EXISTS (SELECT FROM all_runs r WHERE r.job_id = l.job_id"
                " AND r.scheduled_at = l.scheduled_at AND r.manual = l.manual)".encode()
            )
        for table in tables:
            await connection.execute(f"DROP TABLE {leaving(table, name)}".encode())
        await connection.execute("UPDATE archived SET archived_at = now() WHERE name = %s", (name,))


async def prune_dead_letters(connection: Connection, *, before_ms: int) -> int:
    """Deletes entries of runs that are DEAD no more, and returns how many.

    Args:
        connection: A connection.
        before_ms: Only entries older than this (ms), a day back or more: one that is renewed just now is younger, and stays.
    """
    deleted = await connection.execute(
        "DELETE FROM dead_letters d WHERE d.ended_at < at_ms(%s) AND NOT EXISTS (SELECT FROM finished_runs r"
        " WHERE r.job_id = d.job_id AND r.scheduled_at = d.scheduled_at AND r.manual = d.manual"
        " AND r.claimed_on = d.claimed_on AND r.status = 'DEAD')",
        (before_ms,),
    )
    return deleted.rowcount
