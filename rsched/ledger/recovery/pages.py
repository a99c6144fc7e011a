"""The pages that a restore of a shard goes through: its jobs, those first that are due first, and what jobs have beside them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from rsched.core.ids import JobId
from rsched.ledger.base import Database
from rsched.ledger.keys import KEYS, claimed_on, run_keys

_PAGE_S = 60.0
_ACTIVE = "state = 'active' AND NOT forgotten AND schedule_kind"

# Skips from one value to the next along the index: there are few values and many jobs.
# Those of other shards are among them, which does no harm.
_DISTINCT = (
    f"WITH RECURSIVE t AS (SELECT (SELECT min({{x}}) FROM jobs WHERE {_ACTIVE} = '{{kind}}') AS x UNION ALL"
    f" SELECT (SELECT min({{x}}) FROM jobs WHERE {_ACTIVE} = '{{kind}}' AND {{x}} > t.x) FROM t WHERE t.x IS NOT NULL)"
)


# Nothing where the shard has a later generation. Locked, so that whoever gives one out waits for what goes with this.
_LATEST = "WITH latest AS (SELECT 1 FROM shards WHERE shard = %s AND generation <= %s FOR UPDATE)"


class DecidedRange(NamedTuple):
    """Occurrences of which it was decided what becomes of them, otherwise than by a run.

    Attributes:
        first: The first occurrence (ms).
        last: The last one (ms).
        at: When it was decided (ms).
        schedule_version: The schedule version of the catch-up range in which they are pending; None where they are skipped.
    """

    first: int
    last: int
    at: int
    schedule_version: int | None


class LedgerJob(NamedTuple):
    """A job as Redis has it. value: of a deleted job its tombstone."""

    job_id: JobId
    value: bytes


class Pages:
    """Reads by page. Every method raises Unavailable while Postgres is away."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def _jobs(self, where: str, params: Sequence[Any], *, order: str, limit: int) -> list[LedgerJob]:
        query = f"SELECT job_id, value, state = 'deleted' FROM jobs WHERE {where} ORDER BY {order} LIMIT %s"
        async with (
            self._database.connection(within_s=_PAGE_S) as connection,
            connection.cursor(binary=True) as cursor,
        ):
            # A server without statistics, as after a restore, would read and sort the whole table for each page.
            await cursor.execute(b"SELECT set_config('enable_sort', 'off', true), set_config('jit', 'off', true)")
            await cursor.execute(query.encode(), (*params, limit))
            rows = await cursor.fetchall()
        return [LedgerJob(JobId(j), v.partition(b"\n")[0] + b"\n" if deleted else bytes(v)) for j, v, deleted in rows]

    async def jobs_after(self, shard: str, *, after: str, limit: int) -> list[LedgerJob]:
        """Returns a page of the jobs that Redis should have (deleted ones as tombstones), by id; "" begins."""
        return await self._jobs(
            "job_id > %s AND shard = %s AND NOT forgotten", (after, shard), order="job_id", limit=limit
        )

    async def keep_watermarks(self, shard: str, *, generation: int) -> None:
        """Keeps the watermarks as they are for the restore that begins, or as an unfinished one has kept them.

        Does nothing where a later generation's restore has begun.
        """
        await self._database.execute(
            f"{_LATEST} INSERT INTO restore_watermarks (shard, partition, ms) SELECT shard, partition, ms FROM watermarks"
            " WHERE shard = %s AND EXISTS (SELECT 1 FROM latest)"
            " AND NOT EXISTS (SELECT 1 FROM restore_watermarks r WHERE r.shard = %s)",
            (shard, generation, shard, shard),
        )

    async def kept_watermarks(self, shard: str) -> dict[int, int]:
        """Returns the watermarks (ms) by partition, as keep_watermarks kept them."""
        return dict(
            await self._database.rows("SELECT partition, ms FROM restore_watermarks WHERE shard = %s", (shard,))
        )

    async def drop_watermarks(self, shard: str, *, generation: int) -> None:
        """Drops the kept watermarks; those of a later generation's restore stay."""
        await self._database.execute(
            f"{_LATEST} DELETE FROM restore_watermarks WHERE shard = %s AND EXISTS (SELECT 1 FROM latest)",
            (shard, generation, shard),
        )

    async def jobs_by_id(self, shard: str, ids: Sequence[str]) -> list[LedgerJob]:
        """Returns those of the jobs that Redis should have, by id."""
        return await self._jobs(
            "job_id = ANY(%s) AND shard = %s AND NOT forgotten", (list(ids), shard), order="job_id", limit=len(ids)
        )

    async def once_until(self, shard: str, *, until: int, after: tuple[int, str], limit: int) -> list[LedgerJob]:
        """Returns a page of active one-offs due (ms) up to `until`, after (due, job)."""
        return await self._jobs(
            f"shard = %s AND {_ACTIVE} = 'o' AND due_once_at <= at_ms(%s) AND (due_once_at, job_id) > (at_ms(%s), %s)",
            (shard, until, *after),
            order="due_once_at, job_id",
            limit=limit,
        )

    async def intervals(self, shard: str) -> list[int]:
        """Returns the lengths (ms) of all intervals that active jobs have, perhaps of other shards."""
        query = f"{_DISTINCT.format(kind='e', x='interval_ms')} SELECT x FROM t WHERE x IS NOT NULL"
        return [int(r[0]) for r in await self._database.rows(query, ())]

    async def schedules(self, shard: str) -> list[tuple[str, bytes]]:
        """Returns the schedules (`arg` of their heads) of active jobs whose occurrences are computed.

        Each comes with the value of one job of the shard that has it.
        """
        rows = await self._database.rows(
            f"{_DISTINCT.format(kind='c', x='schedule_key')} SELECT t.x, j.value FROM t CROSS JOIN LATERAL"
            f" (SELECT value FROM jobs WHERE shard = %s AND {_ACTIVE} = 'c' AND schedule_key = t.x ORDER BY job_id LIMIT 1) j"
            " WHERE t.x IS NOT NULL",
            (shard,),
        )
        return [(str(arg), bytes(value)) for arg, value in rows]

    async def jobs_of_interval(
        self, shard: str, *, every: int, phases: tuple[int, int], after: tuple[int, str], limit: int
    ) -> list[LedgerJob]:
        """Returns a page of active jobs of this interval (ms) whose anchor modulo it is in phases (ms, both included)."""
        return await self._jobs(
            f"shard = %s AND {_ACTIVE} = 'e' AND interval_ms = %s AND phase_ms BETWEEN %s AND %s"
            " AND (phase_ms, job_id) > (%s, %s)",
            (shard, every, *phases, *after),
            order="phase_ms, job_id",
            limit=limit,
        )

    async def jobs_of_schedule(self, shard: str, arg: str, *, after: str, limit: int) -> list[LedgerJob]:
        """Returns a page of active jobs of this schedule, by id."""
        return await self._jobs(
            f"shard = %s AND {_ACTIVE} = 'c' AND schedule_key = %s AND job_id > %s",
            (shard, arg, after),
            order="job_id",
            limit=limit,
        )

    async def runs_known(self, run_ids: Sequence[str], *, since: int) -> dict[str, tuple[bool, int]]:
        """Looks up occurrences that may have been claimed.

        Args:
            run_ids: The ids that their runs would have.
            since: When the first of them was claimed at the earliest (ms).

        Returns:
            Of each that has a run, whether it was only queued or skipped, and the greatest schedule version that it was claimed
            under.
        """
        rows = await self._database.rows_by_index(
            "SELECT run_id_of(u.job_id, at_ms(u.scheduled_ms), u.manual), bool_and(r.status IN ('SKIPPED', 'QUEUED')),"
            f" max(r.schedule_version) FROM {KEYS} CROSS JOIN LATERAL (SELECT a.status, a.schedule_version FROM all_runs a"
            " WHERE a.job_id = u.job_id AND a.scheduled_at = at_ms(u.scheduled_ms) AND a.manual = u.manual"
            " AND a.claimed_on >= %s OFFSET 0) r GROUP BY u.job_id, u.scheduled_ms, u.manual",
            (*run_keys(run_ids), claimed_on(since)),
        )
        return {r[0]: (bool(r[1]), int(r[2])) for r in rows}

    async def decided(self, dues: Sequence[tuple[JobId, int]]) -> dict[JobId, list[DecidedRange]]:
        """Returns what was decided, otherwise than by a run, about occurrences of jobs from the given instants (ms) on.

        They are skipped by the misfire policy, or pending in a catch-up range.
        """
        rows = await self._database.rows(
            "WITH u AS (SELECT * FROM unnest(%s::text[], %s::bigint[]) AS u(job_id, since))"
            " SELECT job_id, ms_of(first_at), ms_of(last_at), ms_of(skipped_at), NULL FROM u JOIN skips USING (job_id)"
            " WHERE last_at >= at_ms(since) AND reason = 'misfire' UNION ALL"
            " SELECT job_id, start_at, end_at, made_at, schedule_version FROM u JOIN catch_ups USING (job_id)"
            " WHERE end_at >= since AND start_at <= end_at",
            ([job for job, _ in dues], [due for _, due in dues]),
        )
        found: dict[JobId, list[DecidedRange]] = {}
        for job, first, last, at, schedule_version in rows:
            found.setdefault(JobId(job), []).append(DecidedRange(int(first), int(last), int(at), schedule_version))
        return found

    async def remember(self, jobs: Sequence[JobId]) -> None:
        """Takes back that jobs were forgotten, as they are in Redis again."""
        await self._database.execute(
            "UPDATE jobs SET forgotten = false WHERE job_id = ANY(%s) AND forgotten", (list(jobs),)
        )

    async def calendars(self, shard: str) -> list[tuple[str, str, int, bytes]]:
        """Returns all holiday calendars: (team, name, version, body)."""
        rows = await self._database.rows("SELECT team, name, version, body FROM calendars WHERE shard = %s", (shard,))
        return [(team, name, int(version), bytes(body)) for team, name, version, body in rows]

    async def pending_ranges(self, shard: str) -> list[tuple[str, int, int, int, str, int]]:
        """Returns the pending catch-up ranges: (job, start, end, schedule version, flags, made_at), instants in ms."""
        rows = await self._database.rows(
            "SELECT job_id, start_at, end_at, schedule_version, flags, made_at FROM catch_ups"
            " WHERE shard = %s AND start_at <= end_at",
            (shard,),
        )
        return [(j, int(s), int(e), int(v), f, int(m)) for j, s, e, v, f, m in rows]

    async def ended_ranges(self, ranges: Sequence[tuple[JobId, int, int]]) -> set[tuple[JobId, int, int]]:
        """Returns those of the catch-up ranges (job, made_at, end) of which nothing is pending any more."""
        if not ranges:
            return set()
        rows = await self._database.rows(
            "SELECT job_id, made_at, end_at FROM catch_ups JOIN unnest(%s::text[], %s::bigint[], %s::bigint[])"
            " AS u(job_id, made_at, end_at) USING (job_id, made_at, end_at) WHERE start_at > end_at",
            tuple(list(part) for part in zip(*ranges, strict=True)),
        )
        return {(JobId(j), int(m), int(e)) for j, m, e in rows}

    async def payloads_of(self, run_ids: Sequence[str]) -> dict[str, bytes]:
        """Returns the payloads of those runs that have one of their own."""
        rows = await self._database.rows(
            "SELECT run_id, payload FROM payloads WHERE run_id = ANY(%s)", (list(run_ids),)
        )
        return {run: bytes(payload) for run, payload in rows}

    async def count_jobs(self, shard: str) -> int:
        """Returns how many jobs Redis should have; an estimate, of all shards together, where they are very many."""
        about = await self._database.row("SELECT reltuples::bigint FROM pg_class WHERE oid = 'jobs'::regclass", ())
        if about is not None and about[0] > 200_000:
            return int(about[0])
        row = await self._database.row("SELECT count(*) FROM jobs WHERE shard = %s AND NOT forgotten", (shard,))
        return int(row[0]) if row else 0


def entries_of(body: bytes) -> list[str]:
    """Returns what a stored calendar holds, nothing where it was deleted."""
    return msgspec.msgpack.decode(body, type=list[str]) if body else []
