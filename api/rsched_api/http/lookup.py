"""Which job a request means, and why Redis may not have it."""

from __future__ import annotations

import msgspec
from starlette.requests import Request

from rsched.core.errors import Conflict, NotFound, RschedError, Unavailable, invalid
from rsched.core.ids import JobId, derive_job_id, is_job_id
from rsched.core.jobs.packed import JobHead, JobRecord
from rsched.core.jobs.validate import check_name, check_slug, decode
from rsched.core.states import JobState
from rsched.ledger import StoredJob
from rsched_api.http.deadline import about
from rsched_api.http.deps import Deps, wait_version_recorded
from rsched_api.http.requests import part, query
from rsched_api.routes.create import handle_of

DEFAULT_TEAM = "default"
# So often a name may have been deleted and made again since the ledger saw it.
_AHEAD = 8


class Owner(msgspec.Struct, frozen=True):
    """The parts of a body that say which job it is about."""

    team: str | msgspec.UnsetType = msgspec.UNSET
    name: str | msgspec.UnsetType | None = msgspec.UNSET


def owner_of(raw: bytes) -> Owner:
    """Reads the team and the name from a body that is otherwise a job; UNSET where it has none."""
    return decode(raw, Owner)


class Reference(msgspec.Struct, frozen=True):
    """A job named in a path: by its id, or (id None) by name and team."""

    job_id: JobId | None
    team: str | None
    name: str | None


def reference_of(request: Request, *, params: dict[str, str] | None = None) -> Reference:
    """Reads which job the path names; `?team=` says whose name it is.

    Raises:
        Invalid: The team, or another parameter, cannot stand.
    """
    text = part(request, "ref")
    team = (query(request, "team") if params is None else params).get("team")
    if team is not None:
        for found in check_slug(team, "team"):
            raise invalid(*found)
    return Reference(JobId(text), team, None) if is_job_id(text) else Reference(None, team, text)


def not_found(ref: Reference) -> NotFound:
    """Returns the error that says that there is no job of this reference."""
    if ref.job_id is not None:
        return NotFound(f"there is no job {ref.job_id}")
    return NotFound(f"team {ref.team or DEFAULT_TEAM} has no job of this name; ?team= names another team")


async def require_job(deps: Deps, ref: Reference) -> StoredJob:
    """Returns the job after its last change, recorded yet or not: whoever made the change sees it.

    Raises:
        NotFound: There is no such job.
        Unavailable: Postgres does not answer.
    """
    found: StoredJob | None = None
    if ref.job_id is not None:
        found = _newer(ref.job_id, await deps.ledger.jobs.get(ref.job_id), await _in_redis(deps, ref.job_id))
    elif ref.name is not None and not any(True for _ in check_name(ref.name)):
        found = await _named(deps, ref.team or DEFAULT_TEAM, ref.name)
    if found is None or found.deleted:
        raise not_found(ref)
    return found


async def _named(deps: Deps, team: str, name: str) -> StoredJob | None:
    """The last job of the name: the one that the ledger knows, or a later one that is not recorded yet."""
    handle = handle_of(name, None)
    last = await deps.ledger.jobs.last_incarnation(team, handle)
    incarnation = 1 if last is None else last.definition.incarnation
    for _ in range(_AHEAD):
        job = derive_job_id(team, handle, incarnation)
        about(job_id=job)
        recorded = last if last is not None and last.job_id == job else None
        there = await _in_redis(deps, job)
        if recorded is None and there is None:
            return None
        newest = _newer(job, recorded, there)
        if newest is not None and not newest.deleted:
            return newest if newest.definition.name == name else None
        incarnation += 1
    return None


async def _in_redis(deps: Deps, job: JobId) -> JobRecord | JobHead | None:
    """None, too, where Redis is away or has something that cannot be read: then what is recorded is shown."""
    try:
        return await deps.store.jobs.get(job)
    except (Unavailable, ValueError, KeyError):
        return None


def _newer(job: JobId, recorded: StoredJob | None, there: JobRecord | JobHead | None) -> StoredJob | None:
    """The later of what the ledger and Redis have of one job; None for a deleted one of which there is no definition."""
    if there is None:
        return recorded
    head = there.head if isinstance(there, JobRecord) else there
    if recorded is not None and (head.version, head.state.rank) <= (recorded.head.version, recorded.head.state.rank):
        return recorded
    if isinstance(there, JobRecord):
        return StoredJob(job, there.head, there.definition, deleted=False)
    return None if recorded is None else recorded._replace(deleted=True)


async def require_job_id(deps: Deps, ref: Reference) -> JobId:
    """Returns the id of the job, and notes that the request is about it; an id in the path is taken as it is.

    Raises:
        NotFound: No job has the name.
        Unavailable: Postgres does not answer.
    """
    job = ref.job_id if ref.job_id is not None else (await require_job(deps, ref)).job_id
    about(job_id=job)
    return job


async def why_absent(deps: Deps, job: JobId) -> RschedError:
    """Returns the error that says why Redis does not have a job.

    It was never there, is deleted, has completed and is forgotten, or is not restored yet.
    """
    tombstone = await deps.store.jobs.get(job)
    if isinstance(tombstone, JobHead):
        # Deleted a moment ago: a repeated DELETE gets its 404 only once the deletion is recorded.
        await wait_version_recorded(deps, job, tombstone.version)
        return NotFound(f"there is no job {job}")
    found = await deps.ledger.jobs.get(job)
    if found is None or found.deleted:
        return NotFound(f"there is no job {job}")
    if found.head.state is JobState.COMPLETED:
        return completed(job)
    return _being_restored(job)


def _being_restored(job: JobId) -> Unavailable:
    return Unavailable(f"job {job} is being restored; try again")


async def require_current(deps: Deps, job: JobId) -> None:
    """Checks that Redis does not have an earlier version of the job than the ledger: a change of that one would be lost.

    Raises:
        Unavailable: It has one, since the job is being restored.
    """
    if not await deps.restoration.is_in_progress():
        return
    recorded, there = await deps.ledger.jobs.get(job), await deps.store.jobs.get(job)
    if recorded is None or there is None:
        return  # why_absent() tells what that means
    head = there.head if isinstance(there, JobRecord) else there
    if (head.version, head.state.rank) < (recorded.head.version, recorded.head.state.rank):
        raise _being_restored(job)


def completed(job: JobId) -> Conflict:
    """Returns the error that says that a job has completed and takes no such change."""
    return Conflict(f"job {job} has completed; PUT a new schedule, or create another job")


async def require_record(deps: Deps, job: JobId) -> JobRecord:
    """Returns the job as Redis has it.

    Raises:
        NotFound: There is no such job.
        Conflict: The job has completed, and Redis has forgotten it.
        Unavailable: The job is being restored, or a server does not answer.
    """
    await require_current(deps, job)
    found = await deps.store.jobs.get(job)
    if isinstance(found, JobRecord):
        return found
    if found is not None:
        raise NotFound(f"there is no job {job}")
    raise await why_absent(deps, job)
