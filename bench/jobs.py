"""The jobs of benchmarks and fault runs, put straight through the store: what the API would put, without its cost."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from rsched.core.ids import JobId, derive_job_id
from rsched.core.jobs.model import Definition, FunctionTarget, Misfire, MisfirePolicy, RetryPolicy, ScheduleSpec
from rsched.core.jobs.packed import JobHead, JobRecord, misfire_code
from rsched.core.schedule.schedule import Calendars, Draft, resolve
from rsched.core.states import JobState
from rsched.store.jobs import PutItem
from rsched.store.store import Store

_BATCH = 500


class Expected(NamedTuple):
    """A job that was put. due: its first occurrence, ms."""

    job: JobId
    due: int


def item(
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
    """A new job named so that calls `function`. Invalid where the schedule is none."""
    resolved, found = resolve(Draft(schedule, team=team, name=name), now_ms=now, calendars=calendars)
    definition = Definition(
        team=team,
        name=name,
        incarnation=1,
        schedule=resolved.schedule,
        target=FunctionTarget(function=function),
        payload=None,
        timeout_s=60,
        retry=retry or RetryPolicy(),
        misfire_policy=misfire_policy,
        misfire=Misfire(),
        overlap="allow",
        priority="normal",
        tags=[],
        created_at=now,
        updated_at=now,
        key=None,
        body_hash="",
    )
    code = misfire_code(misfire_policy)
    head = JobHead(JobState.ACTIVE, 1, 1, now, found.kind, found.arg, code, 60_000, definition.queue_key)
    job = derive_job_id(team, name, 1)
    # An `at` is due even where it has just passed.
    due = int(found.arg) if found.kind == "o" else found.next_after(now)
    if due is None:
        raise ValueError(f"{schedule} has no occurrence after {now}")
    return PutItem(job, 0, due, JobRecord(head, definition).pack()), Expected(job, due)


async def put_all(store: Store, items: Sequence[PutItem]) -> None:
    """In batches; RuntimeError where one of them is there already."""
    for i in range(0, len(items), _BATCH):
        reply = await store.jobs.put(items[i : i + _BATCH], atomic=False)
        if set(reply.tags) != {"ok"}:
            raise RuntimeError(f"a put was refused: {set(reply.tags)}")
