"""POST /v1/jobs: one job a name, or an idempotency key, whatever is repeated and whatever races."""

from __future__ import annotations

import secrets
from typing import NamedTuple

from rsched.core.errors import Conflict, FieldError, Invalid, Unavailable
from rsched.core.ids import JobId, derive_job_id
from rsched.core.model import JobSpec
from rsched.core.packed import JobRecord
from rsched.core.states import JobState
from rsched.store.jobs import PutItem
from rsched_api import records
from rsched_api.deps import Deps, recorded, version_recorded, write

_TRIES = 8


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


async def create(deps: Deps, spec: JobSpec, key: str | None) -> Made:
    """The job, recorded. Conflict where the name is taken, Invalid where the key was used for another request."""
    request_hash = records.body_hash(spec)
    handle = handle_of(spec.name, key)
    incarnation = 1
    if spec.name is not None or key is not None:
        last = await deps.ledger.last_incarnation(spec.team, handle)
        if last is not None:
            incarnation = last.definition.incarnation + (1 if last.deleted else 0)
            if not last.deleted:
                in_redis = await deps.store.get_job(last.job_id)
                if in_redis is None:
                    # Completed and forgotten by Redis; a put would bring it to life again.
                    record = JobRecord(last.head, last.definition)
                    return _repeat(spec, key, request_hash, Made(last.job_id, record, created=True))
    for _ in range(_TRIES):
        job_id = derive_job_id(spec.team, handle, incarnation)
        now = deps.store.now_ms()
        resolved, schedule = records.resolve(spec, now)
        definition = records.definition_of(
            spec,
            resolved,
            incarnation=incarnation,
            created_at=now,
            updated_at=now,
            key=None if key is None else key_handle(key),
            request_hash=request_hash,
        )
        record = records.record_of(definition, schedule, state=JobState.ACTIVE, version=1, sv=1, sv_at=now)
        item = PutItem(job_id, 0, records.first_due(schedule, now), record.pack())
        reply = await write(deps.store.put([item], atomic=True), job_id=job_id)
        tag = reply.tags[0]
        if tag == "ok" and reply.journal_id is not None:
            await recorded(deps, reply.journal_id, job_id=job_id)
            return Made(job_id, record, created=True)
        if tag == "deleted":
            incarnation += 1
        elif tag == "exists":
            present = await deps.store.get_job(job_id)
            if isinstance(present, JobRecord):
                made = _repeat(spec, key, request_hash, Made(job_id, present, created=True))
                await version_recorded(deps, job_id, 1)
                return made
            forgotten = await deps.ledger.job(job_id)
            if forgotten is not None and not forgotten.deleted:
                record = JobRecord(forgotten.head, forgotten.definition)
                return _repeat(spec, key, request_hash, Made(job_id, record, created=True))
    raise Unavailable("the name is being created and deleted at once; try again")


def _repeat(spec: JobSpec, key: str | None, request_hash: str, made: Made) -> Made:
    """The job that is there, if this request is a repeat of the one that made it."""
    there = made.record.definition
    if (there.team, there.name) != (spec.team, spec.name):
        raise Conflict("another job has this id already; choose another name or key")
    if key is None or there.key != key_handle(key):
        mend = "choose another, or replace the job with PUT"
        message = f"{spec.name!r} is taken in team {spec.team} by {made.job_id}; {mend}"
        raise NameTaken(FieldError("name", message), made.job_id)
    if not records.is_created_by(there, request_hash):
        message = f"was used for another request, which made {made.job_id}; use a new key for a new job"
        raise Invalid(errors=[FieldError("Idempotency-Key", message)])
    return made
