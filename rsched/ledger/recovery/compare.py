"""What the reconciler holds Redis against: the newest the ledger knows about given jobs and runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from rsched.core.ids import JobId, RunId
from rsched.core.jobs.packed import JobHead, RunRecord, unpack_head
from rsched.core.states import JobState
from rsched.ledger.base import Database
from rsched.ledger.keys import DAY_MS, KEYS, claimed_on, run_keys
from rsched.ledger.read.stored import RUN_COLUMNS, RUN_NAMES, run_of
from rsched.ledger.recovery.pages import LedgerJob


class KnownJob(NamedTuple):
    """A job as the ledger has it. value: as Redis should have it; of a deleted job its tombstone."""

    version: int
    state: JobState
    forgotten: bool
    value: bytes

    def job(self, job_id: JobId) -> LedgerJob:
        """Returns it as a page of jobs has it."""
        return LedgerJob(job_id, self.value)


def order(job: KnownJob | JobHead) -> tuple[int, int]:
    """Returns what orders the records of a job: the greater one is the later."""
    return job.version, job.state.rank


def head_or_none(value: bytes | None) -> JobHead | None:
    """Returns the head of a value, None where there is none, or it can't be read: whoever claims it puts it in quarantine."""
    try:
        return unpack_head(value) if value else None
    except (ValueError, KeyError):
        return None


class Compare:
    """Look-ups of many at once. Every method raises Unavailable while Postgres is away."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def jobs(self, job_ids: Sequence[str]) -> dict[str, KnownJob]:
        """Returns those of the jobs that the ledger has, by id."""
        if not job_ids:
            return {}
        rows = await self._database.rows(
            "SELECT job_id, version, state::text, forgotten, value FROM jobs WHERE job_id = ANY(%s)", (list(job_ids),)
        )
        return {
            job: KnownJob(
                int(version),
                JobState(state),
                bool(forgotten),
                bytes(value).partition(b"\n")[0] + b"\n" if state == "deleted" else bytes(value),
            )
            for job, version, state, forgotten, value in rows
        }

    async def runs(self, run_ids: Sequence[str], *, since: int = 0) -> dict[RunId, RunRecord]:
        """Returns the latest record of those runs that the ledger has, by id.

        One that was withdrawn and claimed again on another day has two.

        Args:
            run_ids: The runs.
            since: When the first of them was claimed (ms).

        Returns:
            The records.
        """
        if not run_ids:
            return {}
        # The clock may have been set back for the later record.
        day = claimed_on(max(since - DAY_MS, 0))
        rows = await self._database.rows_by_index(
            f"SELECT {RUN_COLUMNS} FROM {KEYS} CROSS JOIN LATERAL (SELECT * FROM all_runs a WHERE a.job_id = u.job_id"
            " AND a.scheduled_at = at_ms(u.scheduled_ms) AND a.manual = u.manual AND a.claimed_on >= %s"
            f" ORDER BY fence DESC, revision DESC LIMIT 1) r {RUN_NAMES}",
            (*run_keys(run_ids), day),
        )
        return {run.run_id: run.record for run in map(run_of, rows)}
