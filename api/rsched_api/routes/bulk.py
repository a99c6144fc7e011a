"""POST /v1/jobs:pause, :resume and :delete: one verb on all jobs that match a filter, a page of them at a time.

Safe to repeat: a job that is as asked already counts as unchanged, and one wait makes all of it durable.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated

import anyio
import msgspec
from starlette.requests import Request
from starlette.responses import Response

from rsched.core.answers import BulkAnswer, BulkFailure, BulkItem
from rsched.core.errors import FieldError, Invalid, Rejected, RschedError, Unavailable, invalid
from rsched.core.ids import JobId
from rsched.core.jobs.model import Duration, MisfirePolicy
from rsched.core.jobs.validate import check_slug, check_value, decode
from rsched.core.states import JobState
from rsched.ledger import StoredJob
from rsched.ledger.positions import parse_position
from rsched.store.replies import VerbReply
from rsched_api.http import lookup
from rsched_api.http.deps import Deps, deps_of, wait_definitions_recorded, wait_recorded
from rsched_api.http.requests import body, query
from rsched_api.routes.control import MAX_NOTE, PauseRequest, ResumeRequest, pause_one, resume_one, until_of
from rsched_api.routes.jobs import remove_one
from rsched_api.routes.lists import state_of
from rsched_api.views import respond

MAX_MATCHED = 1000
_AT_ONCE = 16
_Text = Annotated[str, msgspec.Meta(max_length=200)]


class JobFilter(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All of what is given must hold. q: a part of the name, whatever its case; name: the whole of it, with * for any text."""

    team: str | None = None
    tag: str | None = None
    state: str | None = None
    q: _Text | None = None
    name: _Text | None = None


class BulkRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """all: is needed for a filter without anything in it. dry_run: says what would be changed, and changes nothing."""

    filter: JobFilter = JobFilter()
    all: bool = False
    dry_run: bool = False
    cursor: str | None = None


class BulkPause(BulkRequest, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """note, until, missed: as of the pause of one job."""

    note: Annotated[str, msgspec.Meta(max_length=MAX_NOTE)] = ""
    until: Duration | None = None
    missed: MisfirePolicy | None = None


class BulkResume(BulkRequest, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """missed: as of the resume of one job."""

    missed: MisfirePolicy | None = None


# What became of one job; None: it was as asked. Raises Rejected where it cannot be done.
_Verb = Callable[[JobId], Awaitable[VerbReply | None]]


async def pause_jobs(request: Request) -> Response:
    """POST /v1/jobs:pause: pauses the jobs that match the filter, a page of them at a time.

    Raises:
        Invalid: A field or parameter cannot stand (422).
        Unavailable: Redis or Postgres does not answer, or the job is being restored (503).
        DurabilityUnknown: The change may have been made, but its record was not seen in time (503).
    """
    deps = deps_of(request)
    query(request)
    wanted = decode(await body(request), BulkPause)
    one = PauseRequest(note=wanted.note, until=wanted.until, missed=wanted.missed)
    until = until_of(one, deps.store.clock.now_ms())
    return await _all(deps, wanted, lambda job: pause_one(deps, job, one, until=until), done=JobState.COMPLETED)


async def resume_jobs(request: Request) -> Response:
    """POST /v1/jobs:resume: resumes the jobs that match the filter, a page of them at a time.

    Raises:
        Invalid: A field or parameter cannot stand (422).
        Unavailable: Redis or Postgres does not answer, or the job is being restored (503).
        DurabilityUnknown: The change may have been made, but its record was not seen in time (503).
    """
    deps = deps_of(request)
    query(request)
    wanted = decode(await body(request), BulkResume)
    one = ResumeRequest(missed=wanted.missed)
    return await _all(deps, wanted, lambda job: resume_one(deps, job, one), done=JobState.COMPLETED)


async def delete_jobs(request: Request) -> Response:
    """POST /v1/jobs:delete: deletes the jobs that match the filter, a page of them at a time.

    Raises:
        Invalid: A field or parameter cannot stand (422).
        Unavailable: Redis or Postgres does not answer, or the job is being restored (503).
        DurabilityUnknown: The change may have been made, but its record was not seen in time (503).
    """
    deps = deps_of(request)
    query(request)
    wanted = decode(await body(request), BulkRequest)
    return await _all(deps, wanted, lambda job: remove_one(deps, job))


async def _all(deps: Deps, wanted: BulkRequest, verb: _Verb, *, done: JobState | None = None) -> Response:
    """done: jobs in this state have nothing that could be changed."""
    state = _checked(wanted)
    # What was made a moment ago matches, too.
    await wait_definitions_recorded(deps)
    f = wanted.filter
    found, cursor = await deps.ledger.jobs.list(
        team=f.team, tag=f.tag, state=state, q=f.q, pattern=f.name, cursor=wanted.cursor, limit=MAX_MATCHED
    )
    tally = _Tally()
    if not wanted.dry_run:
        await _each(deps, [j for j in found if j.head.state is not done], verb, tally)
        if tally.journal_ids:
            await wait_recorded(deps, max(tally.journal_ids, key=parse_position))
    changed = len(tally.journal_ids)
    answer = BulkAnswer(
        matched=len(found),
        changed=changed,
        unchanged=0 if wanted.dry_run else len(found) - changed - len(tally.failed),
        failed=tally.failed,
        dry_run=wanted.dry_run,
        items=[BulkItem(job_id=j.job_id, name=j.definition.name, team=j.definition.team) for j in found],
        next_cursor=cursor,
    )
    return respond(answer)


def _checked(wanted: BulkRequest) -> JobState | None:
    f = wanted.filter
    given = {n: v for n in f.__struct_fields__ if (v := getattr(f, n)) is not None}
    errors = [e for n in ("team", "tag") if n in given for e in check_slug(given[n], f"filter.{n}")]
    for n in ("q", "name"):
        if n in given:
            errors += check_value(given[n], f"filter.{n}")
            if not given[n]:
                errors.append(FieldError(f"filter.{n}", "is empty; leave it out, or write a part of the name"))
    if not given and not wanted.all:
        fix = 'write team, tag, state, q or name, or "all": true if every job of every team is meant'
        errors.append(FieldError("filter", f"is empty; {fix}"))
    if errors:
        raise Invalid(errors=errors)
    try:
        return state_of(f.state)
    except Invalid as error:
        raise invalid("filter.state", error.errors[0].message) from None


class _Tally:
    def __init__(self) -> None:
        self.journal_ids: list[str] = []
        self.failed: list[BulkFailure] = []
        self.broken: RschedError | None = None


async def _each(deps: Deps, jobs: list[StoredJob], verb: _Verb, tally: _Tally) -> None:
    """A few at once; stops at the first sign that nothing can be changed now."""
    waiting = iter(jobs)

    async def work() -> None:
        for job in waiting:
            if tally.broken is not None:
                return
            try:
                reply = await verb(job.job_id)
                if reply is not None and reply.tag == "missing":
                    raise await lookup.why_absent(deps, job.job_id)
            except Rejected as error:
                tally.failed.append(BulkFailure(job_id=job.job_id, code=error.code, detail=error.detail))
            except Unavailable as error:
                tally.broken = error
            else:
                if reply is not None and reply.journal_id is not None:
                    tally.journal_ids.append(reply.journal_id)

    async with anyio.create_task_group() as group:
        for _ in range(_AT_ONCE):
            group.start_soon(work)
    if tally.broken is not None:
        raise tally.broken
