"""What an attempt knows about itself: handed to functions as JobContext, to HTTP targets as headers."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from rsched.core.ids import JobId, RunId

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class JobContext(msgspec.Struct, frozen=True, kw_only=True):
    """What a function may know about the attempt that it is called for.

    Attributes:
        job_id: The job's id.
        run_id: The run's id, the same for all attempts at one run.
        scheduled_at: The occurrence (aware, UTC).
        attempt: 1 for the first attempt at the run.
        fence: It grows with each attempt; hand it to systems that can refuse a lower one than they have seen.
        deadline: When the attempt's timeout ends (aware, UTC).
        idempotency_key: The run's id; a target that remembers it has its effect once.
        team: The team that owns the job.
        name: The job's name, if it has one.
        payload: The job's, or the one that this run was triggered with.
        traceparent: W3C trace context: one trace a run, one span an attempt.
    """

    job_id: JobId
    run_id: RunId
    scheduled_at: datetime
    attempt: int
    fence: int
    deadline: datetime
    idempotency_key: str
    team: str
    name: str | None
    payload: Any
    traceparent: str


def at(ms: int) -> datetime:
    """Gives an instant (ms) as an aware datetime in UTC."""
    return _EPOCH + timedelta(milliseconds=ms)


def header_instant(moment: datetime) -> str:
    """Writes an instant in RFC 3339, in UTC, with milliseconds."""
    return moment.strftime("%Y-%m-%dT%H:%M:%S.") + f"{moment.microsecond // 1000:03d}Z"


def traceparent(run: RunId, fence: int) -> str:
    """Makes the W3C trace context of an attempt: one trace a run, one span an attempt, so that all tries are found together."""
    trace = hashlib.blake2b(run.encode(), digest_size=16).hexdigest()
    span = hashlib.blake2b(f"{run}|{fence}".encode(), digest_size=8).hexdigest()
    return f"00-{trace}-{span}-01"
