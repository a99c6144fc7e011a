"""Definitions and jobs as the API would put them, for whoever puts them straight through the store."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from rsched.core.ids import JobId, derive_job_id
from rsched.core.jobs.model import Definition, FunctionTarget, Misfire, MisfirePolicy, RetryPolicy, ScheduleSpec
from rsched.core.jobs.packed import JobHead, JobRecord, misfire_code
from rsched.core.schedule.schedule import Calendars, Draft, resolve
from rsched.core.states import JobState
from rsched.store.jobs import PutItem
from rsched.store.store import Store

_BATCH = 500


class Expected(NamedTuple):
    """A job that was put. due: its first occurrence, ms by Redis' clock."""

    job: JobId
    due: int


def make_definition(
    name: str | None,
    *,
    schedule: ScheduleSpec | None,
    function: str = "f",
    **changes: Any,
) -> Definition:
    """Returns a definition that calls `function`.

    Args:
        name: the job's name, or None.
        schedule: its schedule, as resolved.
        function: the name of the function that its target calls, unless `target` is given.
        **changes: any other field of Definition; what is not given is as the API's defaults have it, at the instant 0.
    """
    fields: dict[str, Any] = {
        "team": "default", "name": name, "incarnation": 1, "schedule": schedule,
        "target": FunctionTarget(function=function), "payload": None, "timeout_s": 60, "retry": RetryPolicy(),
        "misfire_policy": "run_once", "misfire": Misfire(), "overlap": "allow", "priority": "normal", "tags": [],
        "created_at": 0, "updated_at": 0, "key": None, "body_hash": "",
    }  # fmt: skip
    return Definition(**(fields | changes))


def new_job(
    name: str,
    schedule: ScheduleSpec,
    *,
    function: str,
    now: int,
    team: str = "default",
    retry: RetryPolicy | None = None,
    misfire_policy: MisfirePolicy = "run_once",
    calendars: Calendars | None = None,
) -> tuple[PutItem, Expected]:
    """Returns what puts a new job of that name, and what it owes first.

    Args:
        name: the job's name.
        schedule: when it runs, as people would write it.
        function: the name of the function that it calls.
        now: the instant of creation, ms.
        team: who owns it.
        retry: None for the API's default.
        misfire_policy: what becomes of occurrences that were missed.
        calendars: the team's holiday calendars, where the schedule excludes any.

    Raises:
        Invalid: the schedule is not one.
        ValueError: the schedule has no occurrence after `now`.
    """
    resolved, found = resolve(Draft(schedule, team=team, name=name), now_ms=now, calendars=calendars)
    definition = make_definition(
        name, schedule=resolved.schedule, function=function, team=team, retry=retry or RetryPolicy(),
        misfire_policy=misfire_policy, created_at=now, updated_at=now,
    )  # fmt: skip
    code = misfire_code(misfire_policy)
    head = JobHead(JobState.ACTIVE, 1, 1, now, found.kind, found.arg, code, 60_000, definition.queue_key)
    job = derive_job_id(team, name, 1)
    # An `at` is due even where it has just passed.
    due = int(found.arg) if found.kind == "o" else found.next_after(now)
    if due is None:
        raise ValueError(f"{schedule} has no occurrence after {now}")
    return PutItem(job, 0, due, JobRecord(head, definition).pack()), Expected(job, due)


async def put_all(store: Store, items: Sequence[PutItem]) -> None:
    """Puts new jobs in batches.

    Raises:
        RuntimeError: one of them was refused, say because it is there already.
    """
    for i in range(0, len(items), _BATCH):
        reply = await store.jobs.put(items[i : i + _BATCH], atomic=False)
        if set(reply.tags) != {"ok"}:
            raise RuntimeError(f"a put was refused: {set(reply.tags)}")
