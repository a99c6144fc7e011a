"""From stored records to the JSON that people see."""

from __future__ import annotations

from typing import Any

import msgspec
from starlette.responses import Response

from rsched.core import schedule as schedules
from rsched.core.errors import RschedError
from rsched.core.ids import JobId, split_run_id
from rsched.core.instants import format_local, format_utc
from rsched.core.model import AttemptView, JobView, MisfireView, RetryView, RunView
from rsched.core.packed import JobRecord, RunRecord
from rsched.core.states import JobState
from rsched.ledger import StoredAttempt, StoredRun

_encode = msgspec.json.Encoder().encode


def respond(value: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    return Response(_encode(value), status, headers, "application/json")


def next_run_at(record: JobRecord, now: int) -> str | None:
    """The next occurrence in the job's own zone; None where none follows or the schedule does not run."""
    if record.head.state is not JobState.ACTIVE:
        return None
    definition = record.definition
    try:
        schedule = schedules.load(definition)
        at = schedule.next_after(now)
        return None if at is None else format_local(at, schedule.zone)
    except (RschedError, ValueError):
        # A schedule that a newer tz database no longer reads: the scheduler parks the job as invalid.
        return None


def job_view(job_id: JobId, record: JobRecord, now: int) -> JobView:
    d = record.definition
    return JobView(
        job_id=job_id,
        name=d.name,
        team=d.team,
        schedule=d.schedule,
        schedules=d.schedules,
        target=d.target,
        payload=d.payload,
        timeout_s=d.timeout_s,
        retry=RetryView(**msgspec.structs.asdict(d.retry)),
        misfire_policy=d.misfire_policy,
        misfire=MisfireView(**msgspec.structs.asdict(d.misfire)),
        overlap=d.overlap,
        priority=d.priority,
        tags=d.tags,
        state=record.head.state.value,
        next_run_at=next_run_at(record, now),
        version=record.head.version,
        created_at=format_utc(d.created_at),
        updated_at=format_utc(d.updated_at),
    )


def job_response(job_id: JobId, record: JobRecord, *, now: int, status: int = 200) -> Response:
    headers = {"ETag": f'"{record.head.version}"'}
    if status == 201:
        headers["Location"] = f"/v1/jobs/{job_id}"
    return respond(job_view(job_id, record, now), status, headers)


def _instant(ms: int | None) -> str | None:
    return format_utc(ms) if ms else None


def _duration_s(started: int | None, ended: int | None) -> float | None:
    return max(0, ended - started) / 1000 if started and ended else None


def queued_run(run_id: str) -> RunView:
    """A manual run that was owed just now."""
    return _run_view(run_id, record=None, ended_at=None, error=None)


def run_view(run: StoredRun) -> RunView:
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
        lateness_ms=started - record.due_at if record and started else None,
        error=error or None,
    )


def page(items: list[Any], cursor: str | None) -> dict[str, Any]:
    return {"items": items, "next_cursor": cursor}


def run_with_attempts(run: StoredRun) -> RunView:
    """One run, with every attempt that ended or is under way, first to last."""
    return msgspec.structs.replace(run_view(run), attempts=[_attempt_view(a) for a in run.attempts])


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
