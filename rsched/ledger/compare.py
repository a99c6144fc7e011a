"""What the reconciler holds Redis against: the newest the ledger knows about given jobs and runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from rsched.core.ids import JobId, RunId
from rsched.core.jobs.packed import JobHead, RunRecord, unpack_head
from rsched.core.states import JobState
from rsched.ledger.base import Base
from rsched.ledger.restore_pages import LedgerJob
from rsched.ledger.staging import DAY_MS, claimed_on
from rsched.ledger.stored import RUN_COLUMNS, run_of


class KnownJob(NamedTuple):
    """value: as Redis should have it; of a deleted job its tombstone."""

    version: int
    state: JobState
    forgotten: bool
    value: bytes

    def job(self, job_id: JobId) -> LedgerJob:
        return LedgerJob(job_id, self.value)


def order(job: KnownJob | JobHead) -> tuple[int, int]:
    """Of two records of a job the greater one is the later."""
    return job.version, job.state.rank


def head_or_none(value: bytes | None) -> JobHead | None:
    """None where there is no value, or it can't be read: whoever claims or looks at it sets it aside."""
    try:
        return unpack_head(value) if value else None
    except (ValueError, KeyError):
        return None


class CompareVerbs(Base):
    async def jobs_known(self, job_ids: Sequence[str]) -> dict[str, KnownJob]:
        """Of those jobs that the ledger has."""
        if not job_ids:
            return {}
        rows = await self._all(
            "SELECT job_id, version, state, forgotten, value FROM jobs WHERE job_id = ANY(%s)", (list(job_ids),)
        )
        return {
            j: KnownJob(
                int(v), JobState(s), bool(f), bytes(b).partition(b"\n")[0] + b"\n" if s == "deleted" else bytes(b)
            )
            for j, v, s, f, b in rows
        }

    async def runs_newest(self, run_ids: Sequence[str], *, since: int = 0) -> dict[RunId, RunRecord]:
        """The newest record of those runs that the ledger has, by id: one that was withdrawn and claimed again on another day has
        two. since: when (ms) the first of them was claimed.
        """
        if not run_ids:
            return {}
        # The clock may have been set back for the later record.
        day = claimed_on(max(since - DAY_MS, 0))
        rows = await self._by_index(
            f"SELECT DISTINCT ON (run_id) {RUN_COLUMNS} FROM runs WHERE claimed_on >= %s AND run_id = ANY(%s)"
            " ORDER BY run_id, fence DESC, revision DESC",
            (day, list(run_ids)),
        )
        return {run.run_id: run.record for run in map(run_of, rows)}
