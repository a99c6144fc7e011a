"""The statements of one recorded batch. Staging tables are temporary and empty themselves at the end of a transaction.

Whoever writes runs of a shard does so alone, by an advisory lock; each statement compares (fence, revision) with what is
there. So a run is in one of unfinished_runs and finished_runs, and the later record stays.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from datetime import date, timedelta

from psycopg import sql
from psycopg.errors import CheckViolation

from rsched.ledger.base import Connection
from rsched.ledger.keys import day_of_number
from rsched.ledger.positions import RUNS_LOCK, lock_key
from rsched.ledger.write.batch import Batch, Ids, Row, RunRows
from rsched.ledger.write.small_rows import write_small_rows
from rsched.runtime import faults

# Taken by whoever makes or detaches partitions.
PARTITION_LOCK = 7_231_043

_RUN_TYPES = ("text", "int8", "int8", "int4", "text", "int8", "int4", "int8", "int8", "int8", "int4", "int8", "int8", "int8",
              "text", "text")  # fmt: skip
_ATTEMPT_TYPES = ("text", "int8", "int8", "int4", "int8", "int8", "text", "int4", "int8", "int8", "int8", "text")
_JOB_TYPES = ("text", "text", "text", "text", "text", "int8", "text", "int8", "int2", "text[]", "int8", "int8", "int8", "bytea",
              "int8", "int8", "int8", "text", "text", "text", "bytea")  # fmt: skip

# Instants and days are sent as Postgres' binary format has them (keys.timestamp, day_number), numbers of events as wide as there
# are, so that the server says what it can't take.
STAGING = """
CREATE TEMP TABLE IF NOT EXISTS staged_unfinished (
    job_id text, scheduled_at timestamptz, manual bigint, claimed_on date, status text, revision bigint, queue_key integer,
    schedule_version bigint, attempt bigint, fence bigint, worker integer, claimed_at timestamptz, due_at timestamptz,
    started_at timestamptz, flags text, error text
) ON COMMIT DELETE ROWS;
CREATE TEMP TABLE IF NOT EXISTS staged_finished (LIKE staged_unfinished, ended_at timestamptz) ON COMMIT DELETE ROWS;
CREATE TEMP TABLE IF NOT EXISTS staged_attempts (
    job_id text, scheduled_at timestamptz, manual bigint, claimed_on date, attempt bigint, fence bigint, status text,
    worker integer, due_at timestamptz, started_at timestamptz, ended_at timestamptz, error text
) ON COMMIT DELETE ROWS;
CREATE TEMP TABLE IF NOT EXISTS staged_jobs (
    job_id text, shard text, team text, name text, idempotency_key text, incarnation bigint, state text, version bigint,
    state_rank smallint, tags text[], created_at timestamptz, updated_at timestamptz, ended_at timestamptz,
    schedule_kind text, due_once_at timestamptz, interval_ms bigint, phase_ms bigint, schedule_key text, schedule text,
    target text, value bytea
) ON COMMIT DELETE ROWS;
"""
# Staging tables and a day that has just begun have no statistics: without this a join could read history from end to end, and the
# server would compile what takes milliseconds to do.
_ALONE = (
    "SELECT set_config('enable_hashjoin', 'off', true), set_config('enable_mergejoin', 'off', true),"
    " set_config('jit', 'off', true), pg_advisory_xact_lock(%s, %s)"
)

_COLUMNS = ("job_id, scheduled_at, manual, claimed_on, status, revision, queue_key, schedule_version, attempt, fence, worker, "
            "claimed_at, due_at, started_at, flags, error")  # fmt: skip
_VALUES = _COLUMNS.replace("status", "status::run_status")
_SAME_RUN = "t.job_id = s.job_id AND t.scheduled_at = s.scheduled_at AND t.manual = s.manual"
_LATER = "(t.fence, t.revision) < (s.fence, s.revision)"
_SET = ", ".join(
    f"{c} = excluded.{c}"
    for c in (
        "status",
        "revision",
        "queue_key",
        "schedule_version",
        "attempt",
        "fence",
        "worker",
        "claimed_at",
        "due_at",
        "started_at",
        "flags",
        "error",
    )
)

# Has any of these runs ended by what is recorded? Few have: a dead letter that is replayed, or an event that comes again.
_ENDED = f"""
SELECT 1 FROM staged_unfinished s JOIN finished_runs t ON {_SAME_RUN} AND t.claimed_on = s.claimed_on WHERE {{days}} LIMIT 1
"""
_REPLAYED = f"""
WITH gone AS (
    DELETE FROM finished_runs t USING staged_unfinished s
    WHERE {_SAME_RUN} AND t.claimed_on = s.claimed_on AND {{days}} AND {_LATER}
    RETURNING t.job_id, t.scheduled_at, t.manual
)
DELETE FROM dead_letters t USING gone s WHERE {_SAME_RUN}
"""
_OVERTAKEN = f"""
DELETE FROM staged_unfinished s USING finished_runs t WHERE {_SAME_RUN} AND t.claimed_on = s.claimed_on AND {{days}}
"""
_UNFINISHED = f"""
INSERT INTO unfinished_runs AS t ({_COLUMNS}) SELECT {_VALUES} FROM staged_unfinished
ON CONFLICT (job_id, scheduled_at, manual) DO UPDATE SET claimed_on = excluded.claimed_on, {_SET}
WHERE (t.fence, t.revision) < (excluded.fence, excluded.revision)
"""
# Of what left unfinished_runs, the rows that are later than the end: an old end that comes again.
_LEAVE = f"""
WITH gone AS (
    DELETE FROM unfinished_runs t USING staged_finished s WHERE {_SAME_RUN}
    RETURNING t.*, NOT {_LATER} AS later
)
SELECT {_COLUMNS} FROM gone WHERE later
"""
_STAYS = f"INSERT INTO unfinished_runs ({_COLUMNS}) VALUES ({', '.join(['%s'] * 16)})"
_OLD_END = "DELETE FROM staged_finished WHERE job_id = %s AND scheduled_at = %s AND manual = %s"
_FINISHED = f"""
INSERT INTO finished_runs AS t ({_COLUMNS}, ended_at) SELECT {_VALUES}, ended_at FROM staged_finished
ON CONFLICT (job_id, scheduled_at, manual, claimed_on) DO UPDATE SET ended_at = excluded.ended_at, {_SET}
WHERE (t.fence, t.revision) < (excluded.fence, excluded.revision)
"""
_DEAD = """
INSERT INTO dead_letters AS t (job_id, scheduled_at, manual, claimed_on, ended_at, team)
SELECT s.job_id, s.scheduled_at, s.manual, s.claimed_on, s.ended_at, q.team
FROM staged_finished s JOIN queue_keys q ON q.id = s.queue_key WHERE s.status = 'DEAD'
ON CONFLICT (job_id, scheduled_at, manual) DO UPDATE SET claimed_on = excluded.claimed_on, ended_at = excluded.ended_at
WHERE t.ended_at < excluded.ended_at
"""
_ATTEMPTS = """
INSERT INTO failed_attempts AS t (job_id, scheduled_at, manual, claimed_on, attempt, fence, status, worker, due_at, started_at,
    ended_at, error)
SELECT job_id, scheduled_at, manual, claimed_on, attempt, fence, status::run_status, worker, due_at, started_at, ended_at, error
FROM staged_attempts
ON CONFLICT (job_id, scheduled_at, manual, attempt, claimed_on) DO UPDATE SET
    fence = excluded.fence, status = excluded.status, worker = excluded.worker, due_at = excluded.due_at,
    started_at = excluded.started_at, ended_at = excluded.ended_at, error = excluded.error
WHERE t.fence < excluded.fence
"""
_JOBS = """
INSERT INTO jobs AS t (job_id, shard, team, name, idempotency_key, incarnation, state, version, state_rank, tags, created_at,
    updated_at, next_run_at, ended_at, schedule_kind, due_once_at, interval_ms, phase_ms, schedule_key, schedule, target, value)
SELECT job_id, shard, team, name, idempotency_key, incarnation, state::job_state, version, state_rank, tags, created_at,
    updated_at, CASE WHEN state = 'active' THEN due_once_at END, ended_at, schedule_kind::"char", due_once_at, interval_ms,
    phase_ms, schedule_key, schedule::jsonb, target::jsonb, value
FROM staged_jobs WHERE team IS NOT NULL
ON CONFLICT (job_id) DO UPDATE SET
    state = excluded.state, version = excluded.version, state_rank = excluded.state_rank, tags = excluded.tags,
    updated_at = excluded.updated_at, ended_at = excluded.ended_at, forgotten = false, value = excluded.value,
    next_run_at = CASE WHEN excluded.state = 'active' THEN coalesce(excluded.due_once_at,
        CASE WHEN t.schedule = excluded.schedule THEN t.next_run_at END) END,
    schedule_kind = excluded.schedule_kind, due_once_at = excluded.due_once_at, interval_ms = excluded.interval_ms,
    phase_ms = excluded.phase_ms, schedule_key = excluded.schedule_key, schedule = excluded.schedule, target = excluded.target
WHERE (t.version, t.state_rank) < (excluded.version, excluded.state_rank)
"""
_TOMBSTONES = """
UPDATE jobs AS t SET state = s.state::job_state, version = s.version, state_rank = s.state_rank, ended_at = s.ended_at,
    forgotten = false, next_run_at = NULL, value = s.value || substring(t.value FROM position('\\x0a'::bytea IN t.value) + 1)
FROM staged_jobs s
WHERE s.team IS NULL AND t.job_id = s.job_id AND (t.version, t.state_rank) < (s.version, s.state_rank)
"""


async def _copy(connection: Connection, table: str, *, types: Sequence[str], rows: Sequence[Row]) -> None:
    async with (
        connection.cursor() as cursor,
        cursor.copy(sql.SQL("COPY {} FROM STDIN (FORMAT BINARY)").format(sql.Identifier(table))) as copy,
    ):
        copy.set_types(types)
        # As write_row does, but waiting only when there is something to send.
        for row in rows:
            if data := copy.formatter.write_row(row):
                await copy.writer.write(data)


async def write(connection: Connection, batch: Batch, *, shard: str, ids: Ids) -> None:
    """Writes all rows of the batch, in the transaction that the connection is in.

    Args:
        connection: One that has the staging tables.
        batch: The rows.
        shard: The shard that they are of.
        ids: Ids of all names that the rows have.
    """
    if batch.runs:
        rows = batch.run_rows(ids)
        await connection.execute(_ALONE, (RUNS_LOCK, lock_key(shard)))
        if rows.unfinished:
            await _write_unfinished(connection, rows)
        if rows.finished:
            await _write_finished(connection, rows)
    if attempts := batch.attempt_rows(ids):
        await _copy(connection, "staged_attempts", types=_ATTEMPT_TYPES, rows=attempts)
        await connection.execute(_ATTEMPTS)
    if jobs := batch.job_rows():
        await _copy(connection, "staged_jobs", types=_JOB_TYPES, rows=jobs)
        await connection.execute(_JOBS)
        if any(row.team is None for row in jobs):
            await connection.execute(_TOMBSTONES)
    await write_small_rows(connection, batch, shard=shard)


async def _write_unfinished(connection: Connection, rows: RunRows) -> None:
    await _copy(connection, "staged_unfinished", types=_RUN_TYPES, rows=rows.unfinished)
    faults.point("recorder.after_copy")
    # Named, so that the server plans for the tables of these days alone.
    days = (
        "t.claimed_on IN ("
        + ", ".join(f"'{day_of_number(n)}'" for n in sorted({row[3] for row in rows.unfinished}))
        + ")"
    )
    if await (await connection.execute(_ENDED.format(days=days).encode())).fetchone():
        await connection.execute(_REPLAYED.format(days=days).encode())
        await connection.execute(_OVERTAKEN.format(days=days).encode())
    await connection.execute(_UNFINISHED)


async def _write_finished(connection: Connection, rows: RunRows) -> None:
    await _copy(connection, "staged_finished", types=(*_RUN_TYPES, "int8"), rows=rows.finished)
    faults.point("recorder.after_copy")
    for row in await (await connection.execute(_LEAVE)).fetchall():
        await connection.execute(_STAYS, row)
        await connection.execute(_OLD_END, row[:3])
    await connection.execute(_FINISHED)
    if any(row[4] == "DEAD" for row in rows.finished):
        await connection.execute(_DEAD)


async def make_partitions(connection: Connection, first: date, days: int) -> None:
    """Makes the tables for some days; those that are there stay.

    Not for a day that has left for the archive: what is recorded of it goes to the default partition. Nor for one of which
    there is something in the default partition already, because it had no table when that was recorded.

    Args:
        connection: A connection in a transaction that has PARTITION_LOCK.
        first: The first of the days (UTC).
        days: How many days.
    """
    archived = await connection.execute(
        "SELECT day FROM archived WHERE day >= %s AND day < %s", (first, first + timedelta(days=days))
    )
    left = {row[0] for row in await archived.fetchall()}
    for number in range(days):
        day = first + timedelta(days=number)
        if day in left:
            continue
        for table in ("finished_runs", "failed_attempts"):
            with suppress(CheckViolation):
                async with connection.transaction():
                    await connection.execute(
                        f"CREATE TABLE IF NOT EXISTS {table}_{day:%Y%m%d} PARTITION OF {table}"
                        f" FOR VALUES FROM ('{day}') TO ('{day + timedelta(days=1)}')".encode()
                    )
