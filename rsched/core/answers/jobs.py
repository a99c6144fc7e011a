"""A job as the API shows it."""

from __future__ import annotations

from typing import ClassVar

import msgspec

from rsched.core.jobs.model.fields import JobFields
from rsched.core.jobs.policies import Misfire, MisfirePolicy, RetryPolicy


class RetryView(RetryPolicy, frozen=True, kw_only=True, omit_defaults=False):
    """A retry policy with every default said."""


class MisfireView(Misfire, frozen=True, kw_only=True, omit_defaults=False):
    """What counts as missed, with every default said."""


class PauseView(msgspec.Struct, frozen=True, kw_only=True):
    """Why and for how long a job is paused.

    Attributes:
        note: Why, in the words of who paused it.
        until: When it resumes by itself (RFC 3339).
        missed: What it does then about the occurrences missed.
    """

    note: str | None
    until: str | None
    missed: MisfirePolicy


class JobView(JobFields, frozen=True, kw_only=True):
    """A job as the API shows it: its fields with every default said, and what became of it. Instants are RFC 3339.

    schedule, schedules, pause, warnings and skipped are not in the JSON where they are empty.

    Attributes:
        job_id: Derived from its team and name, or its idempotency key.
        state: active, paused, completed, invalid.
        next_run_at: The next occurrence, with the offset of the job's own zone.
        version: Grows with each change; the ETag.
        created_at: When it was created.
        updated_at: When it was last created or replaced.
        pause: Of a paused job.
        warnings: What in the schedule is legal and perhaps not meant, in the answer to a create or replace.
        skipped: Occurrences that made no run, by reason, only where one job is asked for.
    """

    leaves_out: ClassVar[tuple[str, ...]] = ("schedule", "schedules", "pause", "warnings", "skipped")

    retry: RetryView
    misfire: MisfireView
    job_id: str
    state: str
    next_run_at: str | None
    version: int
    created_at: str
    updated_at: str
    pause: PauseView | None = None
    warnings: list[str] = []
    skipped: dict[str, int] | msgspec.UnsetType = msgspec.UNSET
