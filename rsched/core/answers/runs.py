"""A run and its attempts as the API shows them. Instants are RFC 3339."""

from __future__ import annotations

from typing import Any

import msgspec


class AttemptView(msgspec.Struct, frozen=True, kw_only=True):
    """One numbered try at a run.

    Attributes:
        attempt: Its number, from 1.
        fence: The number that orders all attempts of a run.
        worker: Who made it.
        status: The run state that the try ended in, RUNNING while it lasts.
        started_at: When the target was called.
        finished_at: When it ended.
        duration_s: From its start to its end, in seconds.
        lateness_ms: From the instant it was due to its start.
        error: Why it failed.
    """

    attempt: int
    fence: int
    worker: str
    status: str
    started_at: str | None
    finished_at: str | None
    duration_s: float | None
    lateness_ms: int | None
    error: str | None


class RunView(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A run as the API shows it.

    Attributes:
        run_id: Its id.
        job_id: Whose run it is.
        scheduled_at: The occurrence that it is for.
        status: One of the run states.
        attempt: The number of its last attempt, from 1.
        created_at: When it was claimed.
        started_at: When its last attempt started.
        finished_at: When it ended for good.
        duration_s: From the last start to the end, in seconds.
        lateness_ms: From the instant it was due to its start.
        error: Why it failed, or was skipped.
        attempts: Every attempt, only where one run is asked for.
        payload: Where one run is asked for that has a payload of its own.
    """

    run_id: str
    job_id: str
    scheduled_at: str
    status: str
    attempt: int
    created_at: str
    started_at: str | None
    finished_at: str | None
    duration_s: float | None
    lateness_ms: int | None
    error: str | None
    attempts: list[AttemptView] | msgspec.UnsetType = msgspec.UNSET
    payload: Any = msgspec.UNSET
