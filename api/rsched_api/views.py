"""From stored records to the JSON that people see."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import msgspec
from starlette.responses import Response

from rsched.core.answers import AttemptView, JobView, MisfireView, PauseView, RetryView, RunView, SkipView
from rsched.core.errors import RschedError
from rsched.core.ids import JobId, split_run_id
from rsched.core.instants import format_local, format_utc
from rsched.core.jobs.model import Misfire, MisfirePolicy, RetryPolicy, shared_fields
from rsched.core.jobs.packed import JobRecord, RunRecord, misfire_policy_of
from rsched.core.schedule import schedule as schedules
from rsched.core.schedule.schedule import Calendars
from rsched.core.states import JobState
from rsched.ledger import StoredAttempt, StoredRun, StoredSkip

_encode = msgspec.json.Encoder().encode
# The jobs of a batch have few instants and policies between them.
_utc = lru_cache(maxsize=4096)(format_utc)
_local = lru_cache(maxsize=4096)(format_local)


def respond(value: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """Returns a JSON answer."""
    return Response(_encode(value), status, headers, "application/json")


def next_run_at(record: JobRecord, now: int, calendars: Calendars | None = None) -> str | None:
    """The next occurrence in the job's own zone; None where none follows or the schedule does not run."""
    if record.head.state is not JobState.ACTIVE:
        return None
    definition = record.definition
    try:
        schedule = schedules.load(definition, calendars=calendars)
        at = schedule.next_after(now)
        return None if at is None else _local(at, schedule.zone)
    except (RschedError, ValueError):
        # A schedule that a newer tz database no longer reads: the scheduler marks the job as invalid.
        return None


@lru_cache(maxsize=1024)
def _retry_view(policy: RetryPolicy) -> RetryView:
    return RetryView(**msgspec.structs.asdict(policy))


@lru_cache(maxsize=1024)
def _misfire_view(policy: Misfire) -> MisfireView:
    return MisfireView(**msgspec.structs.asdict(policy))


def _pause_view(record: JobRecord) -> PauseView | None:
    head = record.head
    if head.state is not JobState.PAUSED:
        return None
    return PauseView(note=head.note or None, until=_instant(head.until), missed=missed_policy(record))


def missed_policy(record: JobRecord) -> MisfirePolicy:
    """What is done about what the job misses while it is paused, unless who resumes it says otherwise."""
    head = record.head
    if head.missed:
        return misfire_policy_of(head.missed)
    return record.definition.misfire_policy if head.kind == "o" else "skip"


def job_view(
    job_id: JobId, record: JobRecord, now: int, calendars: Calendars | None = None, *, warnings: Sequence[str] = ()
) -> JobView:
    """Returns a job as people see it.

    Args:
        job_id: Its id.
        record: What is kept of it.
        now: After which instant (ms) the next run counts.
        calendars: Those that the job's schedule names.
        warnings: About the schedule.
    """
    definition = record.definition
    fields = shared_fields(definition) | {
        "retry": _retry_view(definition.retry),
        "misfire": _misfire_view(definition.misfire),
        "pause": _pause_view(record),
        "warnings": warnings,
    }
    # Unset fields are left out of the JSON; whoever reads it has their empty defaults again.
    fields |= {name: msgspec.UNSET for name in JobView.leaves_out if not fields.get(name)}
    return JobView(
        **fields,
        job_id=job_id,
        state=record.head.state.value,
        next_run_at=next_run_at(record, now, calendars),
        version=record.head.version,
        created_at=_utc(definition.created_at),
        updated_at=_utc(definition.updated_at),
    )


def job_response(
    job_id: JobId,
    record: JobRecord,
    *,
    now: int,
    status: int = 200,
    calendars: Calendars | None = None,
    schedule_warnings: Sequence[str] = (),
) -> Response:
    """schedule_warnings: warnings about the schedule."""
    headers = {"ETag": f'"{record.head.version}"'}
    if status == 201:
        headers["Location"] = f"/v1/jobs/{job_id}"
    return respond(job_view(job_id, record, now, calendars, warnings=schedule_warnings), status, headers)


def _instant(ms: int | None) -> str | None:
    return format_utc(ms) if ms else None


def _duration_s(started: int | None, ended: int | None) -> float | None:
    return max(0, ended - started) / 1000 if started and ended else None


def queued_run(run_id: str) -> RunView:
    """Shows a manual run that became pending just now."""
    return _run_view(run_id, record=None, ended_at=None, error=None)


def run_view(run: StoredRun) -> RunView:
    """Shows a run without its attempts."""
    return _run_view(run.run_id, record=run.record, ended_at=run.ended_at, error=run.error)


def _run_view(run_id: str, *, record: RunRecord | None, ended_at: int | None, error: str | None) -> RunView:
    split = split_run_id(run_id)
    assert split is not None, run_id
    job_id, scheduled_at, _ = split
    started = record.started_at if record else 0
    ended = ended_at if record and record.state.final else None
    return RunView(
        run_id=run_id,
        job_id=job_id,
        scheduled_at=format_utc(scheduled_at),
        status=record.state.value if record else "QUEUED",
        attempt=max(1, record.attempt if record else 0),
        created_at=format_utc(record.claimed_at if record else scheduled_at),
        started_at=_instant(started),
        finished_at=_instant(ended),
        duration_s=_duration_s(started, ended),
        lateness_ms=record.lateness_ms if record else None,
        error=error or None,
    )


def page(items: list[Any], cursor: str | None) -> dict[str, Any]:
    """Shows a page of items, with the cursor of the next one, if any."""
    return {"items": items, "next_cursor": cursor}


def run_with_attempts(run: StoredRun) -> RunView:
    """One run, with every attempt that ended or is under way, first to last."""
    return msgspec.structs.replace(run_view(run), attempts=[_attempt_view(a) for a in run.attempts])


def skip_view(skip: StoredSkip) -> SkipView:
    """Shows a range of occurrences that made no run, and why."""
    return SkipView(
        first_at=format_utc(skip.first_at),
        last_at=format_utc(skip.last_at),
        total=skip.total,
        reason=skip.reason,
        at=format_utc(skip.at),
    )


def _attempt_view(attempt: StoredAttempt) -> AttemptView:
    return AttemptView(
        attempt=attempt.attempt,
        fence=attempt.fence,
        worker=attempt.worker,
        status=attempt.state.value,
        started_at=_instant(attempt.started_at),
        finished_at=_instant(attempt.ended_at),
        duration_s=_duration_s(attempt.started_at, attempt.ended_at),
        lateness_ms=attempt.lateness_ms,
        error=attempt.error or None,
    )
