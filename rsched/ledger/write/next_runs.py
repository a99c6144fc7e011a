"""When recurring jobs are due next, for people: written in bulk, as a row for each claim would cost as much as recording it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from rsched.core.ids import JobId
from rsched.ledger.base import Database

# By kind of schedule, the key of the index that has its active jobs.
_KEYS = {"e": "interval_ms, phase_ms, job_id", "c": "schedule_key, job_id"}


class Place(NamedTuple):
    """Where a page of recurring jobs ended. key: of the last job, empty at the begin of a kind."""

    kind: str
    key: tuple[Any, ...]


BEGIN = Place("e", ())


class Stale(NamedTuple):
    """The jobs of a page whose next_run_at is over or unknown, and where the next page begins; None after the last."""

    jobs: list[JobId]
    after: Place | None


class NextRuns:
    """The column jobs.next_run_at. Every method raises Unavailable while Postgres is away."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def stale(self, shard: str, *, now_ms: int, after: Place, limit: int) -> Stale:
        """Looks through a page of active recurring jobs for those that were due since they were written.

        Args:
            shard: The shard.
            now_ms: The instant (ms) up to which they were due.
            after: Where the page before ended; BEGIN begins.
            limit: How many jobs the page has at most.

        Returns:
            Those jobs.
        """
        key = _KEYS[after.kind]
        beyond = f" AND ({key}) > ({', '.join(['%s'] * len(after.key))})" if after.key else ""
        rows = await self._database.rows(
            f"SELECT next_run_at IS NULL OR next_run_at <= at_ms(%s), shard = %s, {key} FROM jobs WHERE state = 'active'"
            f" AND NOT forgotten AND schedule_kind = '{after.kind}'{beyond} ORDER BY {key} LIMIT %s",
            (now_ms, shard, *after.key, limit),
        )
        jobs = [JobId(row[-1]) for row in rows if row[0] and row[1]]
        if len(rows) == limit:
            return Stale(jobs, Place(after.kind, tuple(rows[-1][2:])))
        return Stale(jobs, Place("c", ()) if after.kind == "e" else None)

    async def write(self, dues: Sequence[tuple[JobId, int]]) -> int:
        """Writes when recurring jobs are due next.

        Args:
            dues: (job, instant in ms) as the due sets have them.

        Returns:
            How many rows had another value.
        """
        # In the order of the keys, in which the recorder locks the same rows.
        rows = sorted(dues)
        return await self._database.execute(
            "WITH changed AS MATERIALIZED (SELECT j.job_id, u.due FROM unnest(%s::text[], %s::bigint[]) AS u (job_id, due)"
            " JOIN jobs j ON j.job_id = u.job_id WHERE j.state = 'active' AND j.schedule_kind <> 'o'"
            " AND j.next_run_at IS DISTINCT FROM at_ms(u.due) ORDER BY j.job_id FOR UPDATE OF j)"
            " UPDATE jobs t SET next_run_at = at_ms(c.due) FROM changed c WHERE t.job_id = c.job_id",
            ([job for job, _ in rows], [due for _, due in rows]),
        )
