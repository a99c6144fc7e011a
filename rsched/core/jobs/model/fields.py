"""The fields of a job, declared once: JobSpec takes them, Definition keeps them, JobView shows them.

A new field is a line at the end of JobFields, with its option for the command line; what may not be in it is checked in
rsched/core/jobs/validate.py, and the SDK's keyword is in rsched/client/bodies.py. Everything else follows from here.
"""

from __future__ import annotations

from operator import attrgetter
from typing import Annotated, Any

import msgspec

from rsched.core.jobs.policies import (
    MISFIRE_POLICIES,
    OVERLAP_POLICIES,
    PRIORITIES,
    Misfire,
    MisfirePolicy,
    Overlap,
    Priority,
    RetryPolicy,
    names_of,
)
from rsched.core.jobs.targets import Target
from rsched.core.options import option
from rsched.core.schedule.spec import ScheduleSpec


class JobFields(msgspec.Struct, frozen=True, kw_only=True):
    """What people say about a job.

    Attributes:
        target: What a run calls.
        schedule: When it runs; one of schedule and schedules is given.
        schedules: Several schedules, whose union counts: one occurrence an instant.
        name: Unique in its team; None for a job without a name.
        team: The team that owns it.
        payload: Any JSON, handed to the target.
        timeout_s: Of one attempt, in seconds.
        retry: When a failed run is attempted again.
        misfire_policy: What becomes of late occurrences.
        misfire: When an occurrence counts as late.
        overlap: What becomes of a run that comes while another is active.
        priority: Which runs of a queue go first.
        tags: By which jobs are found.
    """

    target: Target
    schedule: ScheduleSpec | None = None
    schedules: list[ScheduleSpec] = []
    name: Annotated[str | None, option("--name", text="Unique in its team; free text.")] = None
    team: Annotated[str, option("--team", text="The team that owns it, by default `default`.")] = "default"
    payload: Annotated[Any, option("--payload", text="Any JSON, or @file.", reads="json")] = None
    timeout_s: Annotated[float, option("--timeout", text="Of one attempt, by default 60s.", reads="seconds")] = 60
    retry: RetryPolicy = RetryPolicy()
    misfire_policy: Annotated[
        MisfirePolicy, option("--misfire", text=f"Late occurrences: {names_of(MISFIRE_POLICIES, 'run_once')}.")
    ] = "run_once"
    misfire: Misfire = Misfire()
    overlap: Annotated[
        Overlap, option("--overlap", text=f"While a run is active: {names_of(OVERLAP_POLICIES, 'allow')}.")
    ] = "allow"
    priority: Annotated[Priority, option("--priority", text=f"{names_of(PRIORITIES, 'normal')}.")] = "normal"
    tags: Annotated[list[str], option("--tag", text="Any number of times.", reads="texts")] = []


_NAMES = JobFields.__struct_fields__
_values_of = attrgetter(*_NAMES)


def shared_fields(job: JobFields) -> dict[str, Any]:
    """Returns the fields that every form of a job has, by name, to make another form of it."""
    if job.__struct_fields__ == _NAMES:
        return msgspec.structs.asdict(job)
    return dict(zip(_NAMES, _values_of(job), strict=True))
