"""The statements of one recorded batch. Staging tables are temporary and empty themselves at the end of a transaction."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from datetime import date, timedelta
from operator import itemgetter
from typing import Any

from psycopg import AsyncConnection, sql
from psycopg.errors import CheckViolation

from rsched.core.states import RunState
from rsched.ledger.staging import Batch, Row
from rsched.runtime import faults

Connection = AsyncConnection[tuple[Any, ...]]
# Taken by whoever makes or detaches partitions.
PARTITION_LOCK = 7_231_043
OPEN = [s.value for s in RunState if not s.final]

_RUN_TYPES = ("date", "text", "text", "int8", "text", "int8", "int4", "int8", "text", "int8", "int8", "int8", "text",
              "int8", "text")  # fmt: skip
_ATTEMPT_TYPES = ("date", "text", "int4", "int8", "text", "text", "int8", "int8", "int8", "text")
_JOB_TYPES = ("text", "text", "text", "text", "text", "int8", "text", "int8", "int2", "text[]", "int8", "int8", "int8",
              "bytea")  # fmt: skip

STAGING = """
CREATE TEMP TABLE IF NOT EXISTS staged_runs (
    claimed_on date, run_id text, state text, revision bigint, queue_key text, schedule_version bigint, attempt integer, fence bigint,
    worker text, claimed_at bigint, due_at bigint, started_at bigint, flags text, ended_at bigint, error text
) ON COMMIT DELETE ROWS;
CREATE TEMP TABLE IF NOT EXISTS staged_attempts (
    claimed_on date, run_id text, attempt integer, fence bigint, state text, worker text, due_at bigint,
    started_at bigint, ended_at bigint, error text
) ON COMMIT DELETE ROWS;
CREATE TEMP TABLE IF NOT EXISTS staged_jobs (
    job_id text, shard text, team text, name text, handle text, incarnation bigint, state text, version bigint,
    state_rank smallint, tags text[], created_at bigint, updated_at bigint, completed_at bigint, value bytea
) ON COMMIT DELETE ROWS;
"""

# Rows are staged in key order and read in it, so that two writers lock rows in one order.
_RUNS = """
INSERT INTO runs AS t (claimed_on, run_id, shard, state, revision, queue_key, schedule_version, attempt, fence, worker, claimed_at, due_at,
    started_at, flags, ended_at, error, stream, generation, n)
SELECT claimed_on, run_id, %s, state, revision, queue_key, schedule_version, attempt, fence, worker, claimed_at, due_at, started_at, flags,
    ended_at, error, %s, %s, %s
FROM staged_runs
ON CONFLICT (claimed_on, run_id) DO UPDATE SET
    shard = excluded.shard, state = excluded.state, revision = excluded.revision, queue_key = excluded.queue_key, schedule_version = excluded.schedule_version,
    attempt = excluded.attempt, fence = excluded.fence, worker = excluded.worker, claimed_at = excluded.claimed_at,
    due_at = excluded.due_at, started_at = excluded.started_at, flags = excluded.flags, ended_at = excluded.ended_at,
    error = excluded.error, stream = excluded.stream, generation = excluded.generation, n = excluded.n
WHERE (t.fence, t.revision) < (excluded.fence, excluded.revision)
"""
# Runs that are open though claimed before the shard's mark. Those that are there, or ended by a later record, do no harm.
_UNFINISHED_RUNS = """
INSERT INTO unfinished_runs (shard, claimed_on, run_id)
SELECT %s, claimed_on, run_id FROM staged_runs WHERE claimed_at < %s AND state = ANY(%s) ORDER BY claimed_on, run_id
ON CONFLICT DO NOTHING
"""
# The lock is what moving the mark waits for, and only that (unfinished_runs.py).
_MARK = "SELECT indexing_until FROM unfinished_high_water WHERE shard = %s FOR KEY SHARE"
_ATTEMPTS = """
INSERT INTO attempts AS t SELECT * FROM staged_attempts
ON CONFLICT (claimed_on, run_id, attempt) DO UPDATE SET
    fence = excluded.fence, state = excluded.state, worker = excluded.worker, due_at = excluded.due_at,
    started_at = excluded.started_at, ended_at = excluded.ended_at, error = excluded.error
WHERE t.fence < excluded.fence
"""
_DEAD = """
INSERT INTO dead_letters AS t (run_id, claimed_on, ended_at)
SELECT run_id, claimed_on, ended_at FROM staged_runs WHERE state = 'DEAD' ORDER BY run_id
ON CONFLICT (run_id) DO UPDATE SET claimed_on = excluded.claimed_on, ended_at = excluded.ended_at
WHERE t.ended_at < excluded.ended_at
"""
_JOBS = """
INSERT INTO jobs AS t (job_id, shard, team, name, handle, incarnation, state, version, state_rank, tags, created_at,
    updated_at, completed_at, value, stream, generation, n)
SELECT job_id, shard, team, name, handle, incarnation, state, version, state_rank, tags, created_at, updated_at,
    completed_at, value, %s, %s, %s
FROM staged_jobs WHERE team IS NOT NULL
ON CONFLICT (job_id) DO UPDATE SET
    state = excluded.state, version = excluded.version, state_rank = excluded.state_rank, tags = excluded.tags,
    updated_at = excluded.updated_at, completed_at = excluded.completed_at, forgotten = false, value = excluded.value,
    stream = excluded.stream, generation = excluded.generation, n = excluded.n
WHERE (t.version, t.state_rank) < (excluded.version, excluded.state_rank)
"""
_TOMBSTONES = """
UPDATE jobs AS t SET state = s.state, version = s.version, state_rank = s.state_rank, completed_at = s.completed_at,
    forgotten = false, value = s.value || substring(t.value FROM position('\\x0a'::bytea IN t.value) + 1),
    stream = %s, generation = %s, n = %s
FROM staged_jobs s
WHERE s.team IS NULL AND t.job_id = s.job_id AND (t.version, t.state_rank) < (s.version, s.state_rank)
"""


async def _copy(c: Connection, table: str, *, types: Sequence[str], rows: Sequence[Row]) -> None:
    async with (
        c.cursor() as cursor,
        cursor.copy(sql.SQL("COPY {} FROM STDIN (FORMAT BINARY)").format(sql.Identifier(table))) as copy,
    ):
        copy.set_types(types)
        for row in rows:
            await copy.write_row(row)


_claimed_at = itemgetter(9)


async def write(c: Connection, batch: Batch, *, shard: str, journal_id: tuple[str, int, int]) -> int:
    """All rows of the batch; the latest claim among its runs (ms), 0 for none. journal_id: stream, generation, n."""
    claimed_to = 0
    if rows := batch.run_rows():
        claimed_to = max(map(_claimed_at, rows))
        mark = await _mark(c, shard)
        await _copy(c, "staged_runs", types=_RUN_TYPES, rows=rows)
        faults.point("recorder.after_copy")
        await c.execute(_RUNS, (shard, *journal_id))
        if any(row[2] == "DEAD" for row in rows):
            await c.execute(_DEAD)
        if min(map(_claimed_at, rows)) < mark:
            await c.execute(_UNFINISHED_RUNS, (shard, mark, OPEN))
    if rows := batch.attempt_rows():
        await _copy(c, "staged_attempts", types=_ATTEMPT_TYPES, rows=rows)
        await c.execute(_ATTEMPTS)
    if rows := batch.job_rows():
        await _copy(c, "staged_jobs", types=_JOB_TYPES, rows=rows)
        await c.execute(_JOBS, journal_id)
        if any(row[2] is None for row in rows):
            await c.execute(_TOMBSTONES, journal_id)
    await _small(c, batch, shard)
    return claimed_to


async def _mark(c: Connection, shard: str) -> int:
    """The shard's mark ahead (ms), which stays until the transaction is over."""
    while (row := await (await c.execute(_MARK, (shard,))).fetchone()) is None:
        # Not by whoever moves it: then those who had found none would hold no lock.
        await c.execute("INSERT INTO unfinished_high_water (shard) VALUES (%s) ON CONFLICT DO NOTHING", (shard,))
    return int(row[0])


async def _small(c: Connection, batch: Batch, shard: str) -> None:
    async with c.cursor() as cursor:
        if batch.skips:
            await cursor.executemany(
                "INSERT INTO skips (job_id, first_at, last_at, total, reason, at) VALUES (%s, %s, %s, %s, %s, %s)"
                " ON CONFLICT DO NOTHING",
                sorted(batch.skips),
            )
        if batch.ranges:
            await cursor.executemany(
                "INSERT INTO catchups AS t (shard, job_id, made_at, end_at, start_at, schedule_version, flags, at)"
                " VALUES (%s, %s, %s, %s, %s, %s, %s, %s) ON CONFLICT (job_id, made_at, end_at) DO UPDATE SET"
                " start_at = excluded.start_at, at = excluded.at WHERE t.start_at < excluded.start_at",
                [(shard, *r) for r in sorted(batch.ranges.values())],
            )
        if batch.exclusions:
            await cursor.executemany(
                "INSERT INTO exclusions AS t (shard, team, name, version, updated_at, body)"
                " VALUES (%s, %s, %s, %s, %s, %s) ON CONFLICT (team, name) DO UPDATE SET shard = excluded.shard,"
                " version = excluded.version, updated_at = excluded.updated_at, body = excluded.body"
                " WHERE t.version < excluded.version",
                [(shard, *e) for e in sorted(batch.exclusions.values())],
            )
        if batch.payloads:
            await cursor.executemany(
                "INSERT INTO payloads (run_id, payload) VALUES (%s, %s) ON CONFLICT DO NOTHING",
                sorted(batch.payloads.items()),
            )
        if batch.triggers:
            keyed = sorted(batch.triggers.items())
            await cursor.execute(
                "INSERT INTO triggers AS t (shard, job_id, hash, at)"
                " SELECT %s, j, h, a FROM unnest(%s::text[], %s::text[], %s::bigint[]) AS u(j, h, a)"
                " ON CONFLICT (job_id, hash) DO UPDATE SET shard = excluded.shard, at = excluded.at WHERE t.at < excluded.at",
                (shard, [k[0] for k, _ in keyed], [k[1] for k, _ in keyed], [at for _, at in keyed]),
            )
        if batch.watermarks:
            parts = sorted(batch.watermarks.items())
            await cursor.execute(
                "INSERT INTO watermarks AS t (shard, partition, ms)"
                " SELECT %s, p, m FROM unnest(%s::int[], %s::bigint[]) AS u(p, m)"
                " ON CONFLICT (shard, partition) DO UPDATE SET ms = excluded.ms WHERE t.ms < excluded.ms",
                (shard, [p for p, _ in parts], [m for _, m in parts]),
            )
        if batch.workers:
            await cursor.executemany(
                "INSERT INTO workers AS t (shard, worker, queues, seen_at) VALUES (%s, %s, %s, %s)"
                " ON CONFLICT (shard, worker) DO UPDATE SET queues = excluded.queues, seen_at = excluded.seen_at"
                " WHERE t.seen_at < excluded.seen_at",
                [(shard, *w) for w in sorted(batch.workers.values())],
            )


async def make_partitions(c: Connection, first: date, days: int) -> None:
    """Tables for `days` days from `first`; those that are there stay. Under PARTITION_LOCK.

    Not for a day that has left for the archive: what is recorded of it goes to the default partition. Nor for one of which
    there is something in the default partition already, because it had no table when that was recorded.
    """
    found = await c.execute(
        "SELECT day FROM archived WHERE day >= %s AND day < %s", (first, first + timedelta(days=days))
    )
    left = {row[0] for row in await found.fetchall()}
    for n in range(days):
        day = first + timedelta(days=n)
        if day in left:
            continue
        for table in ("runs", "attempts"):
            # fillfactor: room on each page for a run's moves as heap-only updates.
            room = " WITH (fillfactor = 70)" if table == "runs" else ""
            with suppress(CheckViolation):
                async with c.transaction():
                    await c.execute(
                        f"CREATE TABLE IF NOT EXISTS {table}_{day:%Y%m%d} PARTITION OF {table}"
                        f" FOR VALUES FROM ('{day}') TO ('{day + timedelta(days=1)}'){room}".encode()
                    )
