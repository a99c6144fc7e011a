"""What readers of the ledger get."""

from __future__ import annotations

from typing import Any, NamedTuple

from rsched.core.ids import JobId, RunId, split_run_id
from rsched.core.jobs.model import Definition, decode_definition
from rsched.core.jobs.packed import JobHead, RunRecord, unpack_head
from rsched.core.states import JobState, RunState


class StoredJob(NamedTuple):
    """A deleted job has its last definition."""

    job_id: JobId
    head: JobHead
    definition: Definition
    deleted: bool


class StoredAttempt(NamedTuple):
    """state: the run state that the attempt ended in, RUNNING while it lasts. started_at 0: it never called its target."""

    attempt: int
    fence: int
    worker: str
    state: RunState
    due_at: int
    started_at: int
    ended_at: int | None
    error: str | None

    @property
    def lateness_ms(self) -> int | None:
        return self.started_at - self.due_at if self.started_at else None

    @property
    def duration_ms(self) -> int | None:
        return _duration(self.started_at, self.ended_at)


class StoredRun(NamedTuple):
    """Instants in ms. ended_at and error: of a final run, error also of one that waits for its retry.

    attempts: oldest first; only where one run is asked for.
    """

    run_id: RunId
    record: RunRecord
    ended_at: int | None
    error: str | None
    attempts: tuple[StoredAttempt, ...] = ()

    @property
    def scheduled_at(self) -> int:
        split = split_run_id(self.run_id)
        return split[1] if split else 0

    @property
    def duration_ms(self) -> int | None:
        return _duration(self.record.started_at, self.ended_at)


class StoredSkip(NamedTuple):
    """total occurrences in first_at..last_at (both included) made no run."""

    first_at: int
    last_at: int
    total: int
    reason: str
    at: int


class StoredCalendar(NamedTuple):
    """A team's calendar; no entries: it was deleted."""

    team: str
    name: str
    version: int
    updated_at: int
    entries: list[str] | None


JOB_COLUMNS = "job_id, value, created_at"
RUN_COLUMNS = "run_id, state, revision, queue_key, schedule_version, attempt, fence, worker, claimed_at, due_at, started_at, flags, ended_at, error"


def _duration(started: int, ended: int | None) -> int | None:
    return max(0, ended - started) if started and ended is not None else None


def job_of(row: tuple[Any, ...]) -> StoredJob:
    value = bytes(row[1])
    head = unpack_head(value)
    body = value.partition(b"\n")[2]
    return StoredJob(JobId(row[0]), head, decode_definition(body), head.state is JobState.DELETED)


def run_of(row: tuple[Any, ...]) -> StoredRun:
    record = RunRecord(RunState(row[1]), *row[2:12])
    return StoredRun(RunId(row[0]), record, row[12], row[13])


def with_attempts(run: StoredRun, failed: list[StoredAttempt]) -> StoredRun:
    """The failed attempts on record and the run's own, present or last one."""
    r = run.record
    attempts = {a.attempt: a for a in failed}
    own = attempts.get(r.attempt)
    # A run that waits, or was withdrawn while it did, has no attempt beyond its failed ones.
    ran = r.attempt > 0 and r.state in (RunState.RUNNING, RunState.SUCCEEDED, RunState.DEAD, RunState.CANCELLED)
    if ran and (own is None or own.fence < r.fence):
        attempts[r.attempt] = StoredAttempt(
            r.attempt, r.fence, r.worker, r.state, r.due_at, r.started_at, run.ended_at, run.error
        )
    return run._replace(attempts=tuple(attempts[n] for n in sorted(attempts)))


def attempt_of(row: tuple[Any, ...]) -> StoredAttempt:
    attempt, fence, worker, state, due, started, ended, error = row
    return StoredAttempt(attempt, fence, worker, RunState(state), due, started, ended, error)
