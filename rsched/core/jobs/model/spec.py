"""What people send: the body of a request that creates or replaces a job."""

from __future__ import annotations

from rsched.core.jobs.model.fields import JobFields


class JobSpec(JobFields, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The body of POST /v1/jobs. One of schedule and schedules (their union, one occurrence an instant)."""
