"""Finds the open runs of a shard without looking through its history.

Of what was claimed before the shard's mark (`unfinished_high_water.indexed_until`) the open ones are in the table `unfinished_runs`; what was
claimed since is looked through by the time of the claim, which an index of whole page ranges serves. unfinished_runs.py moves the
mark on, and whoever records (upserts.py) adds the open runs that come from before it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import date

from rsched.core.ids import JobId, RunId
from rsched.core.jobs.packed import RunRecord
from rsched.ledger.compare import CompareVerbs
from rsched.ledger.leaving import oldest_day
from rsched.ledger.staging import DAY_MS, claimed_on, day_starts_at
from rsched.ledger.upserts import OPEN, Connection

FIRST_WIDTH_MS = 10_000
_LEAST_WIDTH_MS = 1000
# Much below, a query costs more than what it reads; much above, it comes near the deadline.
_SOON_S, _LATE_S = 0.05, 0.5
# Of a window whose rows are on a slow disk.
WINDOW_S = 30.0
_MOST_BYTES = 1 << 30
_EVER_MS = 1000 * 365 * DAY_MS
# Of a unfinished_run s. No join: of tables without statistics that may be done by reading all of history.
STATE_OF = "(SELECT r.state FROM runs r WHERE r.claimed_on = s.claimed_on AND r.run_id = s.run_id)"


def next_width(width_ms: int, *, took_s: float) -> int:
    """How long the next window of claims should be, after one of width_ms that took so long to look through."""
    if took_s < _SOON_S:
        return min(width_ms * 4, _EVER_MS)
    return max(width_ms // 4, _LEAST_WIDTH_MS) if took_s > _LATE_S else width_ms


async def widest(c: Connection) -> int:
    """How long (ms) a window may be, whatever the one before took: as much of the greatest day as is read in seconds."""
    found = await c.execute(
        "SELECT max(pg_relation_size(inhrelid)) FROM pg_inherits JOIN pg_class ON oid = inhrelid"
        " WHERE inhparent = 'runs'::regclass AND relname ~ '^runs_[0-9]{8}$'"
    )
    row = await found.fetchone()
    size = int(row[0] or 0) if row else 0
    return _EVER_MS if size <= _MOST_BYTES else max(DAY_MS * _MOST_BYTES // size, _LEAST_WIDTH_MS)


async def first_claim(c: Connection, *, latest: int) -> int:
    """Where (ms) the oldest day begins that has a partition; latest, where that is earlier or there is none."""
    day = await oldest_day(c, before=date.max)
    return latest if day is None else min(latest, day_starts_at(day))


async def open_within(
    c: Connection, shard: str, *, since: int | None, until: int | None
) -> tuple[str, list[str | int | list[str]]]:
    """A query, and its parameters, for claimed_on and run_id of open rows claimed at since or later and before until (ms).

    To be executed in the transaction that c is in; no day leaves meanwhile. It names the days' tables: asked for days by
    runs.claimed_on, a server without statistics of a day, as of one that has just begun, reads all of it by the primary key.
    """
    await c.execute(b"SET LOCAL enable_seqscan = off; LOCK TABLE ONLY runs IN ACCESS SHARE MODE")
    first = "00000000" if since is None else f"{claimed_on(since):%Y%m%d}"
    last = "99999999" if until is None else f"{claimed_on(until):%Y%m%d}"
    found = await c.execute(
        "SELECT inhrelid::regclass::text FROM pg_inherits JOIN pg_class ON oid = inhrelid WHERE inhparent = 'runs'::regclass"
        " AND (relname !~ '^runs_[0-9]{8}$' OR right(relname, 8) BETWEEN %s AND %s)",
        (first, last),
    )
    condition, params = "shard = %s AND state = ANY(%s)", list[str | int | list[str]]((shard, OPEN))
    for bound, at in ((">=", since), ("<", until)):
        if at is not None:
            condition += f" AND claimed_at {bound} %s"
            params.append(at)
    tables = [row[0] for row in await found.fetchall()]
    query = " UNION ALL ".join(f"SELECT claimed_on, run_id FROM {t} WHERE {condition}" for t in tables)
    return query, params * len(tables)


class UnfinishedRuns(CompareVerbs):
    async def unfinished_runs(self, shard: str, *, limit: int) -> AsyncIterator[list[tuple[RunId, RunRecord]]]:
        """Pages of at most limit runs that are not final, by their newest record. Unavailable.

        A run that moves meanwhile may be in two pages, one that comes meanwhile in none.
        """
        # Read first: what is added to the unfinished_runs later was claimed since, or is itself later.
        mark = await self._indexed_until(shard)
        key = (date.min, "")
        while rows := await self._unfinished_runs(shard, after=key, limit=limit):
            key = rows[-1]
            if page := await self._open_of([run for _, run in rows], since=day_starts_at(rows[0][0])):
                yield page
        now, width = self._clock.wall_ms(), FIRST_WIDTH_MS
        since: int | None = mark or None
        async with self._connection() as c:
            most = await widest(c)
            until: int | None = None if mark else await first_claim(c, latest=now)
        while True:
            if since is not None:
                until = since + width if since + width < now else None
            began = self._clock.perf_s()
            runs = await self._open_within(shard, since=since, until=until)
            width = min(next_width(width, took_s=self._clock.perf_s() - began), most)
            for i in range(0, len(runs), limit):
                if page := await self._open_of(runs[i : i + limit], since=since or 0):
                    yield page
            if until is None:
                return
            since = until

    async def forgettable(self, shard: str, *, before_ms: int, limit: int) -> list[tuple[JobId, int]]:
        """(job, version) of jobs that were completed or deleted before (recorder's clock) and are not forgotten yet.

        None of which a run is still open: its attempts need the definition.
        """
        mark = await self._indexed_until(shard)
        rows = await self._all(
            "SELECT job_id, version FROM jobs WHERE completed_at < %s AND completed_at IS NOT NULL AND NOT forgotten"
            " AND shard = %s AND NOT EXISTS ("
            "SELECT FROM unfinished_runs s WHERE s.run_id > jobs.job_id || ':' AND s.run_id < jobs.job_id || ';'"
            f" AND {STATE_OF} = ANY(%s))"
            " AND NOT EXISTS (SELECT FROM runs r WHERE r.run_id > jobs.job_id || ':' AND r.run_id < jobs.job_id || ';'"
            " AND r.claimed_on >= %s AND r.claimed_at >= %s AND r.state = ANY(%s)) ORDER BY completed_at LIMIT %s",
            (before_ms, shard, OPEN, claimed_on(mark), mark, OPEN, limit),
        )
        return [(JobId(r[0]), r[1]) for r in rows]

    async def _indexed_until(self, shard: str) -> int:
        row = await self._one("SELECT indexed_until FROM unfinished_high_water WHERE shard = %s", (shard,))
        return int(row[0]) if row else 0

    async def _unfinished_runs(self, shard: str, *, after: tuple[date, str], limit: int) -> list[tuple[date, str]]:
        rows = await self._all(
            "SELECT s.claimed_on, s.run_id FROM unfinished_runs s WHERE s.shard = %s AND (s.claimed_on, s.run_id) > (%s, %s)"
            f" AND {STATE_OF} = ANY(%s) ORDER BY s.claimed_on, s.run_id LIMIT %s",
            (shard, *after, OPEN, limit),
        )
        return [(row[0], row[1]) for row in rows]

    async def _open_within(self, shard: str, *, since: int | None, until: int | None) -> list[str]:
        async with self._connection(within_s=WINDOW_S) as c:
            query, params = await open_within(c, shard, since=since, until=until)
            return [row[1] for row in await (await c.execute(query.encode(), params)).fetchall()]

    async def _open_of(self, run_ids: list[str], *, since: int) -> list[tuple[RunId, RunRecord]]:
        """Those of them, claimed at since (ms) or later, that are open still."""
        return [(run, r) for run, r in (await self.runs_newest(run_ids, since=since)).items() if not r.state.final]
