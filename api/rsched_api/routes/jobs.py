"""Handlers of jobs: create, read, replace, delete, and what they skipped."""

from __future__ import annotations

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from rsched.core.errors import NotFound, Unavailable, VersionConflict, invalid
from rsched.core.ids import JobId
from rsched.core.jobs.model import JobSpec
from rsched.core.jobs.packed import JobRecord
from rsched.core.jobs.validate import check_name, parse_job, parse_request
from rsched.core.schedule.words import warnings
from rsched.core.states import JobState
from rsched.store.jobs import PutItem
from rsched.store.replies import VerbReply
from rsched_api.http import lookup
from rsched_api.http.deadline import about
from rsched_api.http.deps import Deps, deps_of, write
from rsched_api.http.requests import body, idempotency_key, if_match, limit, query
from rsched_api.routes.calendars import calendars_of, calendars_of_all
from rsched_api.routes.control import version_conflict, wait_reply_recorded
from rsched_api.routes.create import Made, NameTaken, create, full
from rsched_api.routes.replace import replace
from rsched_api.views import job_response, job_view, page, respond, skip_view

_TRIES = 20


async def post_job(request: Request) -> Response:
    """POST /v1/jobs: creates a job, or answers with the one that an earlier try of the request created.

    Raises:
        Invalid: A field or parameter cannot stand (422).
        Conflict: Another job of the team has the name.
        TooLarge: The body or the definition is too large.
        Unavailable: Redis or Postgres does not answer, or the job is being restored (503).
        DurabilityUnknown: The change may have been made, but its record was not seen in time (503).
    """
    deps = deps_of(request)
    query(request)
    key = idempotency_key(request)
    job = parse_request(await body(request))
    made = await create(deps, job.spec, key, parsed=job.schedules)
    return await made_response(deps, made, status=201)


async def made_response(deps: Deps, made: Made, *, status: int) -> Response:
    """Shows the job, and what in its schedule may not be meant."""
    definition, now = made.record.definition, deps.store.clock.now_ms()
    calendars = await calendars_of(deps, definition)
    notes = warnings(definition, now_ms=now, calendars=calendars)
    return job_response(made.job_id, made.record, now=now, status=status, calendars=calendars, schedule_warnings=notes)


async def get_job(request: Request) -> Response:
    """GET /v1/jobs/{ref}: answers with a job as it is after its last change, recorded yet or not.

    Raises:
        Invalid: A field or parameter cannot stand (422).
        NotFound: There is no such job (404).
        Unavailable: Redis or Postgres does not answer, or the job is being restored (503).
    """
    deps = deps_of(request)
    found = await lookup.require_job(deps, lookup.reference_of(request))
    (calendars,) = await calendars_of_all(deps, [found.definition])
    view = job_view(found.job_id, JobRecord(found.head, found.definition), deps.store.clock.now_ms(), calendars)
    view = msgspec.structs.replace(view, skipped=await deps.ledger.skips.totals(found.job_id) or msgspec.UNSET)
    return respond(view, headers={"ETag": f'"{found.head.version}"'})


async def put_job(request: Request) -> Response:
    """PUT /v1/jobs/{ref}: replaces the definition of a job, or creates the job where the name is free.

    Raises:
        Invalid: A field or parameter cannot stand (422).
        NotFound: The path has an id, and there is no such job.
        VersionConflict: If-Match names another version (412).
        TooLarge: The body or the definition is too large.
        Unavailable: Redis or Postgres does not answer, or the job is being restored (503).
        DurabilityUnknown: The change may have been made, but its record was not seen in time (503).
    """
    deps = deps_of(request)
    ref, version = lookup.reference_of(request), if_match(request)
    raw = await body(request)
    spec, owner = parse_job(raw), lookup.owner_of(raw)
    if ref.name is not None:
        _same("team", owner.team, ref.team)
        _same("name", owner.name, ref.name)
        for error in check_name(ref.name):
            raise invalid(*error)
        ref = lookup.Reference(None, ref.team or spec.team, ref.name)
    about(job_id=ref.job_id)
    try:
        found = await lookup.require_job(deps, ref)
    except NotFound:
        if ref.name is None:
            raise
        if version is not None:
            raise VersionConflict(f"there is no version {version}: {lookup.not_found(ref).detail}") from None
        job_id: JobId | None = None
        name: str | None = ref.name
        team = ref.team or spec.team
    else:
        about(job_id=found.job_id)
        job_id, name, team = found.job_id, found.definition.name, found.definition.team
        _same("team", owner.team, team)
        _same("name", owner.name, name)
    spec = msgspec.structs.replace(spec, name=name, team=team)
    made = await _put(deps, job_id, spec, version=version)
    return await made_response(deps, made, status=201 if made.created else 200)


async def _put(deps: Deps, job_id: JobId | None, spec: JobSpec, *, version: int | None) -> Made:
    """Creates or replaces, whichever it takes while others create and delete the same name."""
    for _ in range(_TRIES):
        try:
            if job_id is None:
                return await create(deps, spec, None)
            return await replace(deps, job_id, spec, if_match=version)
        except NameTaken as taken:
            job_id = taken.job_id
        except NotFound:
            if spec.name is None or version is not None:
                raise
            job_id = None
    raise Unavailable("the name is being created and deleted at once; try again")


def _same(field: str, given: str | msgspec.UnsetType | None, there: str | None) -> None:
    if isinstance(given, str) and given != there and there is not None:
        raise invalid(field, f"is {there!r} for this job and cannot change; leave it out or write it so")
    if isinstance(given, str) and there is None and field == "name":
        raise invalid(field, "this job was made without a name and cannot get one; leave it out")


async def delete_job(request: Request) -> Response:
    """DELETE /v1/jobs/{ref}: deletes a job, and answers 204 once that is recorded.

    Raises:
        Invalid: A field or parameter cannot stand (422).
        NotFound: There is no such job (404).
        VersionConflict: If-Match names another version (412).
        Unavailable: Redis or Postgres does not answer, or the job is being restored (503).
        DurabilityUnknown: The change may have been made, but its record was not seen in time (503).
    """
    deps = deps_of(request)
    job_id = await lookup.require_job_id(deps, lookup.reference_of(request))
    version = if_match(request)
    await wait_reply_recorded(deps, job_id, await remove_one(deps, job_id, version))
    return Response(status_code=204)


async def remove_one(deps: Deps, job_id: JobId, version: int | None = None) -> VerbReply:
    """Deletes one job, and returns the reply, which is always `ok`.

    Raises:
        NotFound: There is no such job.
        VersionConflict: It has another version than `version`.
    """
    await lookup.require_current(deps, job_id)
    reply = await write(deps.store.jobs.remove(job_id, expect=version or 0), job_id=job_id)
    if reply.tag == "missing":
        return await _remove_forgotten(deps, job_id, version)
    if reply.tag == "conflict":
        raise await version_conflict(deps, job_id)
    return reply


async def _remove_forgotten(deps: Deps, job_id: JobId, version: int | None) -> VerbReply:
    """Deletes a completed job that Redis has forgotten: put back as it was, it can leave its tombstone."""
    stored = await deps.ledger.jobs.get(job_id)
    if stored is None or stored.deleted or stored.head.state is not JobState.COMPLETED:
        raise await lookup.why_absent(deps, job_id)
    if version is not None and version != stored.head.version:
        raise VersionConflict(f"the job has version {stored.head.version} now; read it again and send its ETag")
    back = JobRecord(stored.head._replace(version=stored.head.version + 1), stored.definition)
    put = await write(deps.store.jobs.put([PutItem(job_id, 0, None, back.pack())], atomic=True), job_id=job_id)
    if put.tags == ["full"]:
        raise full()
    reply = await write(deps.store.jobs.remove(job_id), job_id=job_id)
    if reply.tag == "missing":
        raise NotFound(f"there is no job {job_id}")
    return reply


async def list_skips(request: Request) -> Response:
    """GET /v1/jobs/{ref}/skips: lists the occurrences that made no run, the latest first; by its id also those of a deleted job.

    Raises:
        Invalid: A field or parameter cannot stand (422).
        NotFound: There is no such job (404).
        Unavailable: Redis or Postgres does not answer, or the job is being restored (503).
    """
    deps = deps_of(request)
    params = query(request, "team", "limit", "cursor")
    size = limit(params)
    ref = lookup.reference_of(request, params=params)
    job_id = ref.job_id
    if job_id is None or await deps.ledger.jobs.get(job_id) is None:
        job_id = (await lookup.require_job(deps, ref)).job_id
    items, cursor = await deps.ledger.skips.list(job_id, cursor=params.get("cursor"), limit=size)
    return respond(page([skip_view(s) for s in items], cursor))
