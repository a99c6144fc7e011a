"""Handlers that stop a job's schedule and start it again, and the steps of it that bulk requests share."""

from __future__ import annotations

from typing import Annotated, TypeVar

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from rsched.core.durations import parse_duration
from rsched.core.errors import Conflict, FieldError, Invalid, RschedError, Unavailable, VersionConflict
from rsched.core.ids import JobId
from rsched.core.instants import MAX_INSTANT_MS, parse_instant
from rsched.core.jobs.model import Duration, MisfirePolicy
from rsched.core.jobs.packed import JobRecord, misfire_policy_of
from rsched.core.jobs.validate import check_value, decode
from rsched.core.schedule import schedule as schedules
from rsched.core.schedule.misfire import MisfireOutcome, resolve_resumed
from rsched.core.states import JobState
from rsched.store.replies import VerbReply
from rsched_api.http import lookup
from rsched_api.http.deps import Deps, deps_of, wait_recorded, wait_version_recorded, write
from rsched_api.http.requests import body, if_match
from rsched_api.routes.calendars import calendars_of
from rsched_api.views import job_response

MAX_NOTE = 500
TRIES = 20
T = TypeVar("T")


class PauseRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a job is paused.

    note: why. until: when the pause ends by itself, an instant to come or how long from now. missed: what is done then about
    the occurrences missed meanwhile; left out, those of a recurring job are skipped, and a one-off follows its misfire policy.
    """

    note: Annotated[str, msgspec.Meta(max_length=MAX_NOTE)] = ""
    until: Duration | None = None
    missed: MisfirePolicy | None = None


class ResumeRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """missed: what is done about the occurrences missed while the job was paused; by default what the pause said."""

    missed: MisfirePolicy | None = None


async def optional(request: Request, kind: type[T]) -> T | None:
    """Reads the body as `kind`; None where there is no body."""
    raw = await body(request)
    return decode(raw, kind) if raw.strip() else None


def until_of(wanted: PauseRequest, now: int) -> int | None:
    """Returns when the pause ends (ms, UTC); None for one without an end.

    Raises:
        Invalid: `until` cannot stand, or the note cannot be kept.
    """
    errors = list(check_value(wanted.note, "note"))
    until = None
    if wanted.until is not None:
        try:
            until = _instant(wanted.until, now)
        except ValueError as error:
            errors.append(FieldError("until", str(error)))
    if errors:
        raise Invalid(errors=errors)
    return until


def _instant(value: Duration, now: int) -> int:
    if isinstance(value, str) and value[:4].isdigit() and value[4:5] == "-":
        until = parse_instant(value)
    else:
        try:
            until = now + parse_duration(value)
        except ValueError as error:
            raise ValueError(f"{error}, or an instant such as 2026-10-25T20:30:00Z") from None
    if until <= now:
        raise ValueError(f"{value!r} is not in the future; write an instant to come, or leave it out to pause for good")
    if until > MAX_INSTANT_MS:
        raise ValueError("is past the year 9999; write an earlier instant, or leave it out to pause for good")
    return until


async def pause_job(request: Request) -> Response:
    """POST /v1/jobs/{ref}/pause: pauses a job, or changes the pause of a paused one to what the body says.

    A request without a body leaves an existing pause as it is.

    Raises:
        Invalid: A field or parameter cannot stand (422).
        NotFound: There is no such job (404).
        Conflict: The job has completed.
        VersionConflict: If-Match names another version (412).
        Unavailable: Redis or Postgres does not answer, or the job is being restored (503).
        DurabilityUnknown: The change may have been made, but its record was not seen in time (503).
    """
    deps = deps_of(request)
    ref, version = lookup.reference_of(request), if_match(request)
    wanted = await optional(request, PauseRequest)
    until = None if wanted is None else until_of(wanted, deps.store.clock.now_ms())
    job_id = await lookup.require_job_id(deps, ref)
    if wanted is None:
        record = await lookup.require_record(deps, job_id)
        head = record.head
        if head.state is JobState.PAUSED and version in (None, head.version):
            await wait_version_recorded(deps, job_id, head.version)
            return await job_as_it_is(deps, job_id)
    reply = await pause_one(deps, job_id, wanted or PauseRequest(), until=until, expect=version or 0)
    return await _answer(deps, job_id, reply)


async def pause_one(
    deps: Deps, job_id: JobId, wanted: PauseRequest, *, until: int | None, expect: int = 0
) -> VerbReply:
    """Pauses one job, and returns the reply of the script, whatever it says."""
    await lookup.require_current(deps, job_id)
    call = deps.store.jobs.pause(job_id, expect=expect, until=until, missed=wanted.missed, note=wanted.note)
    return await write(call, job_id=job_id)


async def resume_job(request: Request) -> Response:
    """POST /v1/jobs/{ref}/resume: resumes a job, and applies the misfire policy to what it missed.

    Raises:
        Invalid: A field or parameter cannot stand (422).
        NotFound: There is no such job (404).
        Conflict: The job has completed, or its schedule cannot be computed.
        VersionConflict: If-Match names another version (412).
        Unavailable: Redis or Postgres does not answer, or the job is being restored (503).
        DurabilityUnknown: The change may have been made, but its record was not seen in time (503).
    """
    deps = deps_of(request)
    ref, version = lookup.reference_of(request), if_match(request)
    wanted = await optional(request, ResumeRequest)
    job_id = await lookup.require_job_id(deps, ref)
    reply = await resume_one(deps, job_id, wanted or ResumeRequest(), expect=version)
    return await _answer(deps, job_id, reply)


async def resume_one(deps: Deps, job_id: JobId, wanted: ResumeRequest, *, expect: int | None = None) -> VerbReply:
    """Resumes one job, and returns the reply of the script, which is never `conflict`.

    Raises:
        NotFound: There is no such job.
        Conflict: Its schedule cannot be computed.
        VersionConflict: It has another version than `expect`.
        Unavailable: Others keep changing it, or a server does not answer.
    """
    for _ in range(TRIES):
        record = await lookup.require_record(deps, job_id)
        version = record.head.version
        if expect is not None and expect != version:
            raise await version_conflict(deps, job_id)
        due, missed = await _due_again(deps, job_id, record, wanted.missed)
        reply = await write(deps.store.jobs.resume(job_id, expect=version, due=due, missed=missed), job_id=job_id)
        if reply.tag != "conflict":
            return reply
    raise Unavailable("the job is being changed by others; try again")


async def _due_again(
    deps: Deps, job_id: JobId, record: JobRecord, policy: MisfirePolicy | None
) -> tuple[int | None, MisfireOutcome]:
    """When a resumed job is next due, and what its misfire policy makes of what it missed."""
    head = record.head
    if policy is None and head.missed:
        policy = misfire_policy_of(head.missed)
    try:
        schedule = schedules.load(record.definition, calendars=await calendars_of(deps, record.definition))
    except Unavailable:
        raise
    except (RschedError, ValueError) as error:
        raise Conflict(
            f"the schedule of {job_id} cannot be computed ({error}); PUT one that can",
            errors=[FieldError("schedule", "cannot be computed")],
        ) from None
    return resolve_resumed(head, schedule, policy, now=deps.store.clock.now_ms())


async def _answer(deps: Deps, job_id: JobId, reply: VerbReply) -> Response:
    """The job as it is after pause or resume."""
    if reply.tag == "missing":
        raise await lookup.why_absent(deps, job_id)
    if reply.tag == "completed":
        raise lookup.completed(job_id)
    if reply.tag == "conflict":
        raise await version_conflict(deps, job_id)
    await wait_reply_recorded(deps, job_id, reply)
    return await job_as_it_is(deps, job_id)


async def job_as_it_is(deps: Deps, job_id: JobId) -> Response:
    """Answers with the job as Redis has it now."""
    record = await lookup.require_record(deps, job_id)
    calendars = await calendars_of(deps, record.definition)
    return job_response(job_id, record, now=deps.store.clock.now_ms(), calendars=calendars)


async def wait_reply_recorded(deps: Deps, job_id: JobId, reply: VerbReply) -> None:
    """Waits until what the reply tells is recorded: its own entry, or the version that was there already."""
    if reply.journal_id is not None:
        await wait_recorded(deps, reply.journal_id, job_id=job_id)
    else:
        await wait_version_recorded(deps, job_id, reply.version)


async def version_conflict(deps: Deps, job_id: JobId) -> VersionConflict:
    """Returns the error that names the version that the job has now."""
    found = await deps.store.jobs.get(job_id)
    version = f"version {found.head.version}" if isinstance(found, JobRecord) else "another version"
    return VersionConflict(f"the job has {version} now; read it again and send its ETag")
