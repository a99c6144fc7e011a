"""Handlers of jobs: create, read, replace, delete, pause, resume."""

from __future__ import annotations

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from rsched.core import schedule as schedules
from rsched.core.errors import (
    Conflict,
    FieldError,
    NotFound,
    RschedError,
    Unavailable,
    VersionConflict,
    invalid,
)
from rsched.core.ids import JobId
from rsched.core.misfire import Settled, settle_resumed
from rsched.core.model import JobSpec, MisfirePolicy
from rsched.core.packed import JobRecord
from rsched.core.states import JobState
from rsched.core.validate import check_name, parse_job
from rsched.store.jobs import PutItem, VerbReply
from rsched_api import find
from rsched_api.create import Made, NameTaken, create
from rsched_api.deps import Deps, deps_of, recorded, version_recorded, write
from rsched_api.replace import replace
from rsched_api.requests import body, idempotency_key, if_match, query
from rsched_api.views import job_response

_TRIES = 20


async def post_job(request: Request) -> Response:
    deps = deps_of(request)
    query(request)
    key = idempotency_key(request)
    made = await create(deps, parse_job(await body(request)), key)
    return job_response(made.job_id, made.record, now=deps.store.now_ms(), status=201)


async def get_job(request: Request) -> Response:
    deps = deps_of(request)
    found = await find.stored(deps, find.reference(request))
    return job_response(found.job_id, JobRecord(found.head, found.definition), now=deps.store.now_ms())


async def put_job(request: Request) -> Response:
    deps = deps_of(request)
    ref, version = find.reference(request), if_match(request)
    raw = await body(request)
    spec, owner = parse_job(raw), find.owner_of(raw)
    if ref.name is not None:
        _same("team", owner.team, ref.team)
        _same("name", owner.name, ref.name)
        for error in check_name(ref.name):
            raise invalid(*error)
        ref = find.Reference(None, ref.team or spec.team, ref.name)
    try:
        found = await find.stored(deps, ref)
    except NotFound:
        if ref.name is None:
            raise
        if version is not None:
            raise VersionConflict(f"there is no version {version}: {find.not_found(ref).detail}") from None
        job_id: JobId | None = None
        name: str | None = ref.name
        team = ref.team or spec.team
    else:
        job_id, name, team = found.job_id, found.definition.name, found.definition.team
        _same("team", owner.team, team)
        _same("name", owner.name, name)
    spec = msgspec.structs.replace(spec, name=name, team=team)
    made = await _put(deps, job_id, spec, version=version)
    return job_response(made.job_id, made.record, now=deps.store.now_ms(), status=201 if made.created else 200)


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
    deps = deps_of(request)
    job_id = await find.job_id(deps, find.reference(request))
    version = if_match(request)
    reply = await write(deps.store.remove(job_id, expect=version or 0), job_id=job_id)
    if reply.tag == "missing":
        return await _delete_forgotten(deps, job_id, version)
    if reply.tag == "conflict":
        raise await _version_conflict(deps, job_id)
    await _recorded(deps, job_id, reply)
    return Response(status_code=204)


async def _delete_forgotten(deps: Deps, job_id: JobId, version: int | None) -> Response:
    """Deletes a completed job that Redis has forgotten: put back as it was, it can leave its tombstone."""
    stored = await deps.ledger.job(job_id)
    if stored is None or stored.deleted or stored.head.state is not JobState.COMPLETED:
        raise await find.absent(deps, job_id)
    if version is not None and version != stored.head.version:
        raise VersionConflict(f"the job has version {stored.head.version} now; read it again and send its ETag")
    back = JobRecord(stored.head._replace(version=stored.head.version + 1), stored.definition)
    await write(deps.store.put([PutItem(job_id, 0, None, back.pack())], atomic=True), job_id=job_id)
    reply = await write(deps.store.remove(job_id), job_id=job_id)
    if reply.tag == "missing":
        raise NotFound(f"there is no job {job_id}")
    await _recorded(deps, job_id, reply)
    return Response(status_code=204)


async def pause_job(request: Request) -> Response:
    deps = deps_of(request)
    job_id = await find.job_id(deps, find.reference(request))
    reply = await write(deps.store.pause(job_id, expect=if_match(request) or 0), job_id=job_id)
    return await _answer(deps, job_id, reply)


async def resume_job(request: Request) -> Response:
    deps = deps_of(request)
    job_id = await find.job_id(deps, find.reference(request))
    wanted = if_match(request)
    for _ in range(_TRIES):
        record = await find.present(deps, job_id)
        version = record.head.version
        if wanted is not None and wanted != version:
            raise await _version_conflict(deps, job_id)
        due, missed = _due_again(deps, job_id, record, None)
        reply = await write(deps.store.resume(job_id, expect=version, due=due, missed=missed), job_id=job_id)
        if reply.tag != "conflict":
            return await _answer(deps, job_id, reply)
    raise Unavailable("the job is being changed by others; try again")


def _due_again(
    deps: Deps, job_id: JobId, record: JobRecord, policy: MisfirePolicy | None
) -> tuple[int | None, Settled]:
    """When a resumed job is next due, and how what it missed meanwhile is settled."""
    try:
        schedule = schedules.load(record.definition)
    except RschedError as error:
        raise Conflict(
            f"the schedule of {job_id} cannot be computed ({error.detail}); PUT one that can",
            errors=[FieldError("schedule", "cannot be computed")],
        ) from None
    return settle_resumed(record.head, schedule, policy, now=deps.store.now_ms())


async def _answer(deps: Deps, job_id: JobId, reply: VerbReply) -> Response:
    """The job as it is after pause or resume."""
    if reply.tag == "missing":
        raise await find.absent(deps, job_id)
    if reply.tag == "completed":
        raise find.completed(job_id)
    if reply.tag == "conflict":
        raise await _version_conflict(deps, job_id)
    await _recorded(deps, job_id, reply)
    record = await find.present(deps, job_id)
    return job_response(job_id, record, now=deps.store.now_ms())


async def _recorded(deps: Deps, job_id: JobId, reply: VerbReply) -> None:
    if reply.journal_id is not None:
        await recorded(deps, reply.journal_id, job_id=job_id)
    else:
        await version_recorded(deps, job_id, reply.version)


async def _version_conflict(deps: Deps, job_id: JobId) -> VersionConflict:
    found = await deps.store.get_job(job_id)
    version = f"version {found.head.version}" if isinstance(found, JobRecord) else "another version"
    return VersionConflict(f"the job has {version} now; read it again and send its ETag")
