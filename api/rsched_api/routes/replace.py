"""PUT /v1/jobs/{id or name}: replaces the whole definition of a job.

What was pending under the old schedule is kept or withdrawn by its schedule_version.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from rsched.core.errors import NotFound, Unavailable, VersionConflict
from rsched.core.ids import JobId
from rsched.core.jobs import records
from rsched.core.jobs.model import JobSpec
from rsched.core.jobs.packed import JobHead, JobRecord
from rsched.core.schedule import schedule as schedules
from rsched.core.schedule.regrid import keep_grid
from rsched.core.schedule.schedule import Calendars, Resolved, Schedule
from rsched.core.states import JobState
from rsched.store.jobs import KEEP, Keep, PutItem
from rsched_api.http.deps import Deps, wait_recorded, wait_version_recorded, write
from rsched_api.http.lookup import require_current
from rsched_api.routes.calendars import calendars_of
from rsched_api.routes.create import Made, full

# One of all who change a job at once gets through in each round.
_TRIES = 50


class _Present(NamedTuple):
    record: JobRecord
    in_redis: bool


async def replace(
    deps: Deps, job_id: JobId, spec: JobSpec, *, if_match: int | None, request_hash: str | None = None
) -> Made:
    """Gives the job this definition (its own team and name in it), recorded.

    Args:
        deps: What the API works with.
        job_id: Which job.
        spec: The whole definition.
        if_match: The version that the caller has seen; None where it does not matter.
        request_hash: What a repeat of the request is known by; by default the definition's own.

    Raises:
        NotFound: There is no such job.
        VersionConflict: It has another version than if_match.
    """
    request_hash = request_hash or records.body_hash(spec)
    for _ in range(_TRIES):
        before = await _present(deps, job_id)
        version = before.record.head.version
        same = records.is_last_put_by(before.record.definition, request_hash)
        # A repeat of the request that made this version still names the one before.
        if same and if_match in (None, version, version - 1):
            await wait_version_recorded(deps, job_id, version)
            return Made(job_id, before.record, created=False)
        if if_match is not None and if_match != version:
            raise VersionConflict(f"the job has version {version}, not {if_match}; read it again")
        calendars = await calendars_of(deps, spec)
        record, due = _after(deps, spec, before=before, request_hash=request_hash, calendars=calendars)
        item = PutItem(job_id, version if before.in_redis else 0, due, record.pack())
        reply = await write(deps.store.jobs.put([item], atomic=True), job_id=job_id)
        tag = reply.tags[0]
        if tag == "ok" and reply.journal_id is not None:
            await wait_recorded(deps, reply.journal_id, job_id=job_id)
            return Made(job_id, record, created=False)
        if tag == "full":
            raise full()
        if tag == "deleted":
            raise NotFound(f"there is no job {job_id}")
    raise Unavailable("the job is being changed by others; try again")


async def _present(deps: Deps, job_id: JobId) -> _Present:
    await require_current(deps, job_id)
    found = await deps.store.jobs.get(job_id)
    if isinstance(found, JobRecord):
        return _Present(found, in_redis=True)
    stored = None if found is not None else await deps.ledger.jobs.get(job_id)
    if stored is None or stored.deleted:
        raise NotFound(f"there is no job {job_id}")
    if stored.head.state is not JobState.COMPLETED:
        raise Unavailable(f"job {job_id} is being restored; try again")
    return _Present(JobRecord(stored.head, stored.definition), in_redis=False)


def _after(
    deps: Deps, spec: JobSpec, *, before: _Present, request_hash: str, calendars: Calendars
) -> tuple[JobRecord, int | Keep | None]:
    """The record to write, and its due instant."""
    old, head = before.record.definition, before.record.head
    now = deps.store.clock.now_ms()
    if (spec.schedule, spec.schedules) == (old.schedule, old.schedules):
        # A definition that was read and put back: its instant may be long behind, and is checked no more.
        resolved, schedule = Resolved(old.schedule, old.schedules), schedules.load(old, calendars=calendars)
    else:
        one, several = keep_grid(spec, old)
        spec = msgspec.structs.replace(spec, schedule=one, schedules=several)
        resolved, schedule = records.resolve(spec, now, calendars)
    definition = records.definition_of(
        spec,
        resolved,
        incarnation=old.incarnation,
        created_at=old.created_at,
        updated_at=now,
        key=old.key,
        request_hash=records.hash_after_put(old, request_hash),
    )
    regridded = (schedule.kind, schedule.arg) != (head.kind, head.arg)
    revived = head.state in (JobState.COMPLETED, JobState.INVALID) and (regridded or _ahead(schedule, now))
    state = JobState.ACTIVE if revived else head.state
    record = records.record_of(
        definition,
        schedule,
        state=state,
        version=head.version + 1,
        schedule_version=head.schedule_version,
        schedule_changed_at=head.schedule_changed_at,
        pause=head if state is JobState.PAUSED else None,
    )
    record = record._replace(head=record.head._replace(keeps=head.keeps))
    staged_anew = (
        state is JobState.ACTIVE and _way(record.head) != _way(head) and _ahead(schedule, now)
    )  # with nothing ahead all is claimed, or late: then it stays pending as it is
    if not (regridded or revived or staged_anew):
        # Kept as it is: recomputed from now it could leave out an occurrence that is late and not yet claimed.
        return record, KEEP if state is JobState.ACTIVE else None
    paused_from = (schedule.next_after(now) or 0) if state is JobState.PAUSED else 0
    # Another window or overlap policy is no other schedule: what is being caught up goes on.
    keeps = 0 if regridded or revived else head.keeps or head.schedule_version
    anew = record.head._replace(
        schedule_version=head.schedule_version + 1, schedule_changed_at=now, paused_from=paused_from, keeps=keeps
    )
    due = records.first_due(schedule, now) if state is JobState.ACTIVE else None
    return record._replace(head=anew), due


def _way(head: JobHead) -> tuple[object, ...]:
    """What says when and beside what a run that is claimed ahead starts."""
    return head.window_ms, head.end_ms, head.overlap


def _ahead(schedule: Schedule, now: int) -> bool:
    # A completed one-off whose instant is behind has had its run; the same run key must not run again.
    return schedule.next_after(now) is not None
