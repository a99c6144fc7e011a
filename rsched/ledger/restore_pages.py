"""The pages that a background restore of a shard goes through: its jobs, those first that are due first, and what jobs have beside them.

The head in jobs.value says when a job is due: expressions over it are indexed (migration unfinished_runs), so that no page has to
look at jobs that are not asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from rsched.core.ids import JobId
from rsched.ledger.base import Base
from rsched.ledger.staging import claimed_on

_PAGE_S = 60.0
# The fields of a head are told apart in its bytes as text; what is no number gives NULL and is found by its id.
_HEAD = "encode(substring(value FROM 1 FOR 240), 'escape')"
_KIND, _ARG = f"split_part({_HEAD}, '|', 6)", f"split_part({_HEAD}, '|', 7)"
_ONCE = f"(CASE WHEN {_ARG} ~ '^[0-9]{{1,16}}$' THEN {_ARG}::bigint END)"
_EVERY = f"(CASE WHEN {_ARG} ~ '^-?[0-9]{{1,16}},[1-9][0-9]{{0,15}}$' THEN split_part({_ARG}, ',', 2)::bigint END)"
_PHASE = (
    f"(CASE WHEN {_ARG} ~ '^-?[0-9]{{1,16}},[1-9][0-9]{{0,15}}$' THEN"
    f" mod(mod(split_part({_ARG}, ',', 1)::bigint, split_part({_ARG}, ',', 2)::bigint)"
    f" + split_part({_ARG}, ',', 2)::bigint, split_part({_ARG}, ',', 2)::bigint) END)"
)
_ACTIVE = "state = 'active' AND NOT forgotten"
_SHARD_OF = f"shard = %s AND {_ACTIVE} AND {_KIND}"

# Skips from one value to the next along the index: there are few values and many jobs.
_DISTINCT = (
    f"WITH RECURSIVE t AS (SELECT (SELECT min({{x}}) FROM jobs WHERE {_SHARD_OF} = '{{kind}}') AS x UNION ALL"
    f" SELECT (SELECT min({{x}}) FROM jobs WHERE {_SHARD_OF} = '{{kind}}' AND {{x}} > t.x) FROM t WHERE t.x IS NOT NULL)"
)


# Nothing where the shard has been opened under a later generation. Locked, so that a recovery waits for what goes with this.
_LATEST = "WITH latest AS (SELECT 1 FROM shards WHERE shard = %s AND generation <= %s FOR UPDATE)"


class DecidedRange(NamedTuple):
    """Occurrences from first to last (ms, both included). at: when it was decided. schedule_version: of a catch-up range that owes them, None
    where they are skipped.
    """

    first: int
    last: int
    at: int
    schedule_version: int | None


class LedgerJob(NamedTuple):
    """value: as Redis has it; of a deleted job its tombstone."""

    job_id: JobId
    value: bytes


class RestorePages(Base):
    async def _jobs(self, where: str, params: Sequence[Any], *, order: str, limit: int) -> list[LedgerJob]:
        query = f"SELECT job_id, value, state = 'deleted' FROM jobs WHERE {where} ORDER BY {order} LIMIT %s"
        async with self._connection(within_s=_PAGE_S) as c, c.cursor(binary=True) as cursor:
            # A server without statistics, as after a restore, would read and sort the whole table for each page.
            await cursor.execute(b"SET LOCAL enable_sort = off")
            await cursor.execute(query.encode(), (*params, limit))
            rows = await cursor.fetchall()
        return [LedgerJob(JobId(j), v.partition(b"\n")[0] + b"\n" if deleted else bytes(v)) for j, v, deleted in rows]

    async def jobs_after(self, shard: str, *, after: str, limit: int) -> list[LedgerJob]:
        """A page of the jobs that Redis should have (deleted ones as tombstones), by id; "" begins."""
        return await self._jobs(
            "job_id > %s AND shard = %s AND NOT forgotten", (after, shard), order="job_id", limit=limit
        )

    async def keep_marks(self, shard: str, *, generation: int) -> None:
        """Keeps the watermarks as they are for the background restore that begins, or as an unfinished one has kept them. Nothing where a
        later generation's has begun. Unavailable.
        """
        await self._do(
            f"{_LATEST} INSERT INTO restore_watermarks (shard, partition, ms) SELECT shard, partition, ms FROM watermarks"
            " WHERE shard = %s AND EXISTS (SELECT 1 FROM latest)"
            " AND NOT EXISTS (SELECT 1 FROM restore_watermarks r WHERE r.shard = %s)",
            (shard, generation, shard, shard),
        )

    async def kept_marks(self, shard: str) -> dict[int, int]:
        """partition -> ms, as keep_marks kept them."""
        return dict(await self._all("SELECT partition, ms FROM restore_watermarks WHERE shard = %s", (shard,)))

    async def drop_marks(self, shard: str, *, generation: int) -> None:
        """Those of a later generation's background_restore stay. Unavailable."""
        await self._do(
            f"{_LATEST} DELETE FROM restore_watermarks WHERE shard = %s AND EXISTS (SELECT 1 FROM latest)",
            (shard, generation, shard),
        )

    async def jobs_by_id(self, shard: str, ids: Sequence[str]) -> list[LedgerJob]:
        """Those of the jobs that Redis should have, by id."""
        return await self._jobs(
            "job_id = ANY(%s) AND shard = %s AND NOT forgotten", (list(ids), shard), order="job_id", limit=len(ids)
        )

    async def once_until(self, shard: str, *, until: int, after: tuple[int, str], limit: int) -> list[LedgerJob]:
        """A page of active one-offs due (ms) up to `until`, after (due, job)."""
        return await self._jobs(
            f"{_SHARD_OF} = 'o' AND {_ONCE} <= %s AND ({_ONCE}, job_id) > (%s, %s)",
            (shard, until, *after),
            order=f"{_ONCE}, job_id",
            limit=limit,
        )

    async def intervals(self, shard: str) -> list[int]:
        """The lengths (ms) of all intervals that active jobs have."""
        query = f"{_DISTINCT.format(kind='e', x=_EVERY)} SELECT x FROM t WHERE x IS NOT NULL"
        return [int(r[0]) for r in await self._all(query, (shard, shard))]

    async def schedules(self, shard: str) -> list[tuple[str, bytes]]:
        """The schedules (`arg` of their heads) of active jobs that have a calendar, each with the value of one such job."""
        rows = await self._all(
            f"{_DISTINCT.format(kind='c', x=_ARG)} SELECT t.x, j.value FROM t CROSS JOIN LATERAL"
            f" (SELECT value FROM jobs WHERE {_SHARD_OF} = 'c' AND {_ARG} = t.x ORDER BY job_id LIMIT 1) j"
            " WHERE t.x IS NOT NULL",
            (shard, shard, shard),
        )
        return [(str(arg), bytes(value)) for arg, value in rows]

    async def jobs_of_interval(
        self, shard: str, *, every: int, phases: tuple[int, int], after: tuple[int, str], limit: int
    ) -> list[LedgerJob]:
        """A page of active jobs of this interval whose anchor modulo it is in phases (ms, both included)."""
        return await self._jobs(
            f"{_SHARD_OF} = 'e' AND {_EVERY} = %s AND {_PHASE} BETWEEN %s AND %s AND ({_PHASE}, job_id) > (%s, %s)",
            (shard, every, *phases, *after),
            order=f"{_PHASE}, job_id",
            limit=limit,
        )

    async def jobs_of_schedule(self, shard: str, arg: str, *, after: str, limit: int) -> list[LedgerJob]:
        """A page of active jobs of this schedule, by id."""
        return await self._jobs(
            f"{_SHARD_OF} = 'c' AND {_ARG} = %s AND job_id > %s", (shard, arg, after), order="job_id", limit=limit
        )

    async def runs_known(self, run_ids: Sequence[str], *, since: int) -> dict[str, tuple[bool, int]]:
        """Of those runs that the ledger has, none claimed before since (ms): whether a later version of the schedule owes them
        again, being skipped or not started, and their schedule_version.
        """
        rows = await self._by_index(
            "SELECT run_id, bool_and(state IN ('SKIPPED', 'QUEUED')), max(schedule_version) FROM runs"
            " WHERE claimed_on >= %s AND run_id = ANY(%s) GROUP BY run_id",
            (claimed_on(since), list(run_ids)),
        )
        return {r[0]: (bool(r[1]), int(r[2])) for r in rows}

    async def settled(self, dues: Sequence[tuple[JobId, int]]) -> dict[JobId, list[DecidedRange]]:
        """Of those jobs what was decided, otherwise than by a run, about occurrences from the given instant (ms) on: skipped by
        the misfire policy, or pending by a catch-up range.
        """
        rows = await self._all(
            "WITH u AS (SELECT * FROM unnest(%s::text[], %s::bigint[]) AS u(job_id, since))"
            " SELECT job_id, first_at, last_at, at, NULL FROM u JOIN skips USING (job_id)"
            " WHERE last_at >= since AND reason = 'misfire' UNION ALL"
            " SELECT job_id, start_at, end_at, made_at, schedule_version FROM u JOIN catchups USING (job_id)"
            " WHERE end_at >= since AND start_at <= end_at",
            ([job for job, _ in dues], [due for _, due in dues]),
        )
        found: dict[JobId, list[DecidedRange]] = {}
        for job, first, last, at, schedule_version in rows:
            found.setdefault(JobId(job), []).append(DecidedRange(int(first), int(last), int(at), schedule_version))
        return found

    async def remember(self, jobs: Sequence[JobId]) -> None:
        """These were forgotten, and are in Redis again. Unavailable."""
        await self._do("UPDATE jobs SET forgotten = false WHERE job_id = ANY(%s) AND forgotten", (list(jobs),))

    async def calendars(self, shard: str) -> list[tuple[str, str, int, bytes]]:
        """All calendars of exclusions: (team, name, version, body)."""
        rows = await self._all("SELECT team, name, version, body FROM exclusions WHERE shard = %s", (shard,))
        return [(team, name, int(version), bytes(body)) for team, name, version, body in rows]

    async def open_ranges(self, shard: str) -> list[tuple[str, int, int, int, str, int]]:
        """Catch-up ranges that are not paid out: (job, start, end, schedule_version, flags, made_at)."""
        rows = await self._all(
            "SELECT job_id, start_at, end_at, schedule_version, flags, made_at FROM catchups WHERE shard = %s AND start_at <= end_at",
            (shard,),
        )
        return [(j, int(s), int(e), int(v), f, int(m)) for j, s, e, v, f, m in rows]

    async def ended_ranges(self, ranges: Sequence[tuple[JobId, int, int]]) -> set[tuple[JobId, int, int]]:
        """Of catch-up ranges (job, made_at, end) those of which nothing is left to be paid out."""
        if not ranges:
            return set()
        rows = await self._all(
            "SELECT job_id, made_at, end_at FROM catchups JOIN unnest(%s::text[], %s::bigint[], %s::bigint[])"
            " AS u(job_id, made_at, end_at) USING (job_id, made_at, end_at) WHERE start_at > end_at",
            tuple(list(part) for part in zip(*ranges, strict=True)),
        )
        return {(JobId(j), int(m), int(e)) for j, m, e in rows}

    async def payloads_of(self, run_ids: Sequence[str]) -> dict[str, bytes]:
        """The payloads of those runs that have one of their own."""
        rows = await self._all("SELECT run_id, payload FROM payloads WHERE run_id = ANY(%s)", (list(run_ids),))
        return {run: bytes(payload) for run, payload in rows}

    async def count_jobs(self, shard: str) -> int:
        """How many jobs Redis should have; an estimate, of all shards together, where they are very many."""
        about = await self._one("SELECT reltuples::bigint FROM pg_class WHERE oid = 'jobs'::regclass", ())
        if about is not None and about[0] > 200_000:
            return int(about[0])
        row = await self._one("SELECT count(*) FROM jobs WHERE shard = %s AND NOT forgotten", (shard,))
        return int(row[0]) if row else 0


def entries_of(body: bytes) -> list[str]:
    """What a stored calendar holds; none where it was deleted."""
    return msgspec.msgpack.decode(body, type=list[str]) if body else []
