"""POST /v1/jobs: one job a name, or an idempotency key, whatever is repeated and whatever races."""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable
from typing import NamedTuple, TypeVar

from rsched.core.errors import Conflict, FieldError, Invalid, Unavailable
from rsched.core.ids import JobId, derive_job_id
from rsched.core.jobs import records
from rsched.core.jobs.model import JobSpec
from rsched.core.jobs.packed import JobRecord
from rsched.core.schedule.parsed import ParsedSchedules
from rsched.core.schedule.schedule import Resolved, Schedule
from rsched.core.states import JobState
from rsched.store.jobs import PutItem
from rsched_api.http.deadline import about
from rsched_api.http.deps import Deps, wait_recorded, wait_version_recorded, write
from rsched_api.routes.calendars import calendars_of

_TRIES = 8
T = TypeVar("T")


class Made(NamedTuple):
    """A job as it is now; created: by this request or an earlier one with the same key, not by another."""

    job_id: JobId
    record: JobRecord
    created: bool


def key_handle(key: str) -> str:
    """What an idempotency key is kept as: with a control character, which no name has, it is never taken for a name."""
    return f"\x01{key}"


def handle_of(name: str | None, key: str | None) -> str:
    """What a job's id derives from in its team: its name, else its key, else nothing that anybody could repeat."""
    if name is not None:
        return name
    return key_handle(key if key is not None else secrets.token_hex(16))


class NameTaken(Conflict):
    """Another job of the team has the name; `job_id` says which."""

    def __init__(self, field_error: FieldError, job_id: JobId) -> None:
        super().__init__(errors=[field_error])
        self.job_id = job_id


class Plan(NamedTuple):
    """A job that is to be made, and what to put for it."""

    job_id: JobId
    record: JobRecord
    due: int

    @property
    def item(self) -> PutItem:
        """What the store is asked to put."""
        return PutItem(self.job_id, 0, self.due, self.record.pack())


def plan(
    spec: JobSpec,
    resolved: Resolved,
    schedule: Schedule,
    *,
    handle: str,
    incarnation: int,
    key: str | None,
    request_hash: str,
    now: int,
) -> Plan:
    """The job as of now. Invalid, TooLarge."""
    definition = records.definition_of(
        spec,
        resolved,
        incarnation=incarnation,
        created_at=now,
        updated_at=now,
        key=None if key is None else key_handle(key),
        request_hash=request_hash,
    )
    record = records.record_of(
        definition, schedule, state=JobState.ACTIVE, version=1, schedule_version=1, schedule_changed_at=now
    )
    return Plan(derive_job_id(spec.team, handle, incarnation), record, records.first_due(schedule, now))


def full() -> Unavailable:
    """Returns the error for a Redis that has no room for new jobs."""
    return Unavailable("Redis is too full for new jobs until the recorder catches up; try again, or raise maxmemory")


async def create(deps: Deps, spec: JobSpec, key: str | None, *, parsed: ParsedSchedules | None = None) -> Made:
    """Creates the job, or finds the one that an earlier try created, and waits for its record.

    Raises:
        Conflict: Another job has the name.
        Invalid: The key was used for another request, or the schedule cannot stand.
        Unavailable: A server does not answer; nothing was created.
        DurabilityUnknown: The job may have been created.
    """
    request_hash = records.body_hash(spec)
    handle = handle_of(spec.name, key)
    incarnation = 1
    if spec.name is not None or key is not None:
        owner = spec.team, handle
        last = await known(deps, lambda: deps.look_up.one(owner), named=spec.name is not None)
        if last is not None:
            about(job_id=last.job_id)
            incarnation = last.definition.incarnation + (1 if last.deleted else 0)
            if not last.deleted:
                in_redis = await deps.store.jobs.get(last.job_id)
                if in_redis is None:
                    # Completed and forgotten by Redis; a put would bring it to life again.
                    record = JobRecord(last.head, last.definition)
                    return repeat(spec, key, request_hash, Made(last.job_id, record, created=True))
    for _ in range(_TRIES):
        calendars = await calendars_of(deps, spec)
        now = deps.store.clock.now_ms()
        planned = plan(
            spec,
            *records.resolve(spec, now, calendars, parsed=parsed),
            handle=handle,
            incarnation=incarnation,
            key=key,
            request_hash=request_hash,
            now=now,
        )
        job_id = planned.job_id
        reply = await write(deps.store.jobs.put([planned.item], atomic=True), job_id=job_id)
        tag = reply.tags[0]
        if tag == "ok" and reply.journal_id is not None:
            await wait_recorded(deps, reply.journal_id, job_id=job_id)
            return Made(job_id, planned.record, created=True)
        if tag == "deleted":
            incarnation += 1
        elif tag == "full":
            raise full()
        elif tag == "exists":
            present = await deps.store.jobs.get(job_id)
            if isinstance(present, JobRecord):
                made = repeat(spec, key, request_hash, Made(job_id, present, created=True))
                await wait_version_recorded(deps, job_id, 1)
                return made
            forgotten = await deps.ledger.jobs.get(job_id)
            if forgotten is not None and not forgotten.deleted:
                record = JobRecord(forgotten.head, forgotten.definition)
                return repeat(spec, key, request_hash, Made(job_id, record, created=True))
    raise Unavailable("the name is being created and deleted at once; try again")


async def known(deps: Deps, look: Callable[[], Awaitable[T]], *, named: bool) -> T | None:
    """Returns what a look-up of jobs that may be there already finds; None where it has no answer and needs none.

    With ack=redis a key says who is meant, and Redis knows all of those but the ones that it has forgotten, which completed
    minutes ago.

    Raises:
        Unavailable: Postgres does not answer, and its answer is needed.
    """
    if deps.ack != "redis":
        return await look()
    try:
        return await deps.look_up.soon(look)
    except Unavailable as error:
        if named:
            raise undecided(error) from error
        if await deps.restoration.is_in_progress():
            raise Unavailable(
                f"Postgres does not answer ({error.detail}), and Redis has not all jobs back that it had lost; try again"
            ) from error
        return None


def undecided(error: Unavailable) -> Unavailable:
    """Where a job with a name is to be made while Postgres is away."""
    fix = "create the job without a name, with an Idempotency-Key to repeat it by, or wait until Postgres is back"
    return Unavailable(f"Postgres alone knows whether a name is free, and does not answer ({error.detail}); {fix}")


def repeat(spec: JobSpec, key: str | None, request_hash: str, made: Made) -> Made:
    """Returns the job that is there, if this request is a repeat of the one that made it.

    Raises:
        Conflict: Another job has the id.
        NameTaken: Another job has the name.
        Invalid: The key was used for another request.
    """
    there = made.record.definition
    if (there.team, there.name) != (spec.team, spec.name):
        raise Conflict("another job has this id already; choose another name or key")
    if key is None or there.key != key_handle(key):
        fix = "choose another, or replace the job with PUT"
        message = f"{spec.name!r} is taken in team {spec.team} by {made.job_id}; {fix}"
        raise NameTaken(FieldError("name", message), made.job_id)
    if not records.is_created_by(there, request_hash):
        message = f"was used for another request, which made {made.job_id}; use a new key for a new job"
        raise Invalid(errors=[FieldError("Idempotency-Key", message)])
    return made
