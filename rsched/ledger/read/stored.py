"""What readers of the ledger get, and the columns that they get it from."""

from __future__ import annotations

from typing import Any, NamedTuple

from rsched.core.ids import JobId, RunId, split_run_id
from rsched.core.jobs.model import Definition, decode_definition
from rsched.core.jobs.packed import JobHead, RunRecord, unpack_head
from rsched.core.states import JobState, RunState


class StoredJob(NamedTuple):
    """A job. One that was deleted has its last definition."""

    job_id: JobId
    head: JobHead
    definition: Definition
    deleted: bool


class StoredAttempt(NamedTuple):
    """An attempt of a run.

    Attributes:
        attempt: Its number, from 1.
        fence: Its fence.
        worker: The process that ran it.
        state: The run state that the attempt ended in, RUNNING while it lasts.
        due_at: When it was due (ms).
        started_at: When it called its target (ms), 0 where it never did.
        ended_at: When it ended (ms).
        error: Why it failed.
    """

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
        """How long after its due time it started."""
        return self.started_at - self.due_at if self.started_at else None

    @property
    def duration_ms(self) -> int | None:
        """How long it took."""
        return _duration(self.started_at, self.ended_at)


class StoredRun(NamedTuple):
    """A run.

    Attributes:
        run_id: Its id.
        record: Its latest record.
        ended_at: When it ended (ms), None while it is unfinished.
        error: Why it ended as it did, or why it waits for its retry.
        attempts: Its attempts, oldest first; only where one run is asked for.
    """

    run_id: RunId
    record: RunRecord
    ended_at: int | None
    error: str | None
    attempts: tuple[StoredAttempt, ...] = ()

    @property
    def scheduled_at(self) -> int:
        """The occurrence, or the instant of the trigger (ms)."""
        split = split_run_id(self.run_id)
        return split[1] if split else 0

    @property
    def duration_ms(self) -> int | None:
        """How long the last attempt took."""
        return _duration(self.record.started_at, self.ended_at)


class StoredSkip(NamedTuple):
    """`total` occurrences in first_at..last_at (ms, both included) made no run, for `reason`; that was decided at `at` (ms)."""

    first_at: int
    last_at: int
    total: int
    reason: str
    at: int


class StoredCalendar(NamedTuple):
    """A team's holiday calendar; no entries: it was deleted."""

    team: str
    name: str
    version: int
    updated_at: int
    entries: list[str] | None


JOB_COLUMNS = "job_id, value, ms_of(created_at)"
# Of rows r of all_runs, finished_runs or unfinished_runs, joined with what they name.
RUN_COLUMNS = (
    "run_id_of(r.job_id, r.scheduled_at, r.manual), r.status::text, r.revision, coalesce(q.key, ''), r.schedule_version,"
    " r.attempt, r.fence, coalesce(w.name, ''), ms_of(r.claimed_at), coalesce(ms_of(r.due_at), 0),"
    " coalesce(ms_of(r.started_at), 0), r.flags, ms_of(r.ended_at), nullif(r.error, '')"
)
RUN_NAMES = "LEFT JOIN queue_keys q ON q.id = r.queue_key LEFT JOIN worker_names w ON w.id = r.worker"
RUN_WIDTH = 14


def _duration(started: int, ended: int | None) -> int | None:
    return max(0, ended - started) if started and ended is not None else None


def job_of(row: tuple[Any, ...]) -> StoredJob:
    """Makes a job of a row of JOB_COLUMNS."""
    value = bytes(row[1])
    head = unpack_head(value)
    body = value.partition(b"\n")[2]
    return StoredJob(JobId(row[0]), head, decode_definition(body), head.state is JobState.DELETED)


def run_of(row: tuple[Any, ...]) -> StoredRun:
    """Makes a run of a row that begins with RUN_COLUMNS."""
    record = RunRecord(RunState(row[1]), *row[2:12])
    return StoredRun(RunId(row[0]), record, row[12], row[13])


def with_attempts(run: StoredRun, failed: list[StoredAttempt]) -> StoredRun:
    """Adds the failed attempts on record to a run, and its own, present or last one."""
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
    """Makes an attempt of a row of its fields in order."""
    attempt, fence, worker, state, due, started, ended, error = row
    return StoredAttempt(attempt, fence, worker, RunState(state), due, started, ended, error)
