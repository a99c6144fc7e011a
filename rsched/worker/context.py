"""What an attempt knows about itself: handed to functions as JobContext, to HTTP targets as headers."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from rsched.core.ids import JobId, RunId

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class JobContext(msgspec.Struct, frozen=True, kw_only=True):
    """scheduled_at and deadline are aware, UTC; deadline is when the attempt's timeout ends.

    idempotency_key is the run's id: the same for all attempts at one run. fence grows with each attempt; hand it to
    systems that can refuse a lower one than they have seen.
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
    """The instant as an aware datetime in UTC."""
    return _EPOCH + timedelta(milliseconds=ms)


def header_instant(moment: datetime) -> str:
    """RFC 3339, UTC, with ms."""
    return moment.strftime("%Y-%m-%dT%H:%M:%S.") + f"{moment.microsecond // 1000:03d}Z"


def traceparent(run: RunId, fence: int) -> str:
    """W3C trace context: one trace a run, one span an attempt, so that all tries at a run are found together."""
    trace = hashlib.blake2b(run.encode(), digest_size=16).hexdigest()
    span = hashlib.blake2b(f"{run}|{fence}".encode(), digest_size=8).hexdigest()
    return f"00-{trace}-{span}-01"
