"""Handlers of runs: list, read, cancel; dead letters."""

from __future__ import annotations

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from rsched.core.errors import Conflict, DurabilityUnknown, NotFound, Unavailable, invalid
from rsched.core.ids import RunId, split_run_id
from rsched.core.jobs.packed import FLAG_PAYLOAD
from rsched.core.jobs.validate import check_slug
from rsched.core.states import RunState
from rsched.ledger import StoredRun
from rsched.ledger.read.stored import with_attempts
from rsched_api.http import lookup
from rsched_api.http.deadline import about
from rsched_api.http.deps import Deps, deps_of, wait_definitions_recorded, wait_recorded, wait_until_readable, write
from rsched_api.http.requests import limit, part, query
from rsched_api.views import page, respond, run_view, run_with_attempts

# How long a reader waits for the record of a run that has just ended.
_SETTLE_S = 1.0


async def _recorded_run(deps: Deps, run: RunId) -> StoredRun:
    return await wait_until_readable(deps, lambda: deps.ledger.runs.get(run), run_id=run)


async def list_runs(request: Request) -> Response:
    """GET /v1/jobs/{ref}/runs: lists the runs of a job, the latest first; by its id also those of a deleted job.

    Raises:
        Invalid: A field or parameter cannot stand (422).
        NotFound: There is no such job (404).
        Unavailable: Redis or Postgres does not answer, or the job is being restored (503).
    """
    deps = deps_of(request)
    params = query(request, "team", "status", "limit", "cursor")
    status = _status(params.get("status"))
    size = limit(params)
    ref = lookup.reference_of(request, params=params)
    # The history of a deleted job stays readable, by its id: its name may be another's by now.
    if ref.job_id is not None and await deps.ledger.jobs.get(ref.job_id) is not None:
        job_id = ref.job_id
    else:
        job_id = (await lookup.require_job(deps, ref)).job_id
    items, cursor = await deps.ledger.runs.list(job_id, cursor=params.get("cursor"), limit=size, status=status)
    return respond(page([run_view(r) for r in items], cursor))


def _status(text: str | None) -> RunState | None:
    if text is None:
        return None
    try:
        return RunState(text)
    except ValueError:
        raise invalid("status", f"is not a run state; write one of {', '.join(RunState)}") from None


async def get_run(request: Request) -> Response:
    """GET /v1/runs/{run}: answers with a run and its attempts, as Redis and the ledger together know it.

    Raises:
        Invalid: A field or parameter cannot stand (422).
        NotFound: There is no such run (404).
        Unavailable: Redis or Postgres does not answer, or the job is being restored (503).
    """
    query(request)
    deps, run = deps_of(request), _run_id(request)
    found = await _stored(deps, run)
    view = run_with_attempts(found)
    if FLAG_PAYLOAD in found.record.flags and (payload := await deps.ledger.runs.payload(run)) is not None:
        view = msgspec.structs.replace(view, payload=msgspec.msgpack.decode(payload))
    return respond(view)


def _run_id(request: Request) -> RunId:
    text = part(request, "run")
    if split_run_id(text) is None:
        raise NotFound(f"{text[:80]!r} is not a run_id; they look like j_...:1793000000000")
    return RunId(text)


async def _stored(deps: Deps, run: RunId) -> StoredRun:
    found = await deps.ledger.runs.get(run)
    if found is None or not found.record.state.final:
        found = await _not_recorded_yet(deps, run, found)
    if found is None:
        raise _run_not_found(run)
    return found


def _run_not_found(run: RunId) -> NotFound:
    return NotFound(f"there is no run {run}")


async def _not_recorded_yet(deps: Deps, run: RunId, found: StoredRun | None) -> StoredRun | None:
    """The run with what Redis knows beyond the ledger, so that whoever made a change sees it."""
    try:
        there = await deps.store.runs.get(run)
    except (Unavailable, ValueError, KeyError):
        if found is None:
            raise
        return found
    if there is None:
        return await _after_redis(deps, run, found)
    if found is None:
        return StoredRun(run, there, None, None)
    if (there.fence, there.revision) <= (found.record.fence, found.record.revision):
        return found
    return with_attempts(StoredRun(run, there, None, found.error), list(found.attempts))


async def _after_redis(deps: Deps, run: RunId, found: StoredRun | None) -> StoredRun | None:
    """A run that Redis does not have: it has ended, and the ledger will know. Unavailable where that takes too long."""
    if not await deps.store.recovery.is_open():
        return found  # Redis knows of no run at all
    try:
        if found is not None:
            return await wait_until_readable(deps, lambda: _ended(deps, run), run_id=run, timeout_s=_SETTLE_S)
        await wait_definitions_recorded(deps, timeout_s=_SETTLE_S)
    except Unavailable:
        raise Unavailable(f"what became of run {run} is not recorded yet; try again") from None
    return await deps.ledger.runs.get(run)


async def cancel_run(request: Request) -> Response:
    """POST /v1/runs/{run}/cancel: cancels a run, or asks its worker to stop it.

    Answers 200 with the run as it is then: CANCELLED, or RUNNING while its worker is being asked.

    Raises:
        Invalid: A field or parameter cannot stand (422).
        NotFound: There is no such run (404).
        Conflict: The run has ended in another way.
        Unavailable: Redis or Postgres does not answer, or the job is being restored (503).
        DurabilityUnknown: The change may have been made, but its record was not seen in time (503).
    """
    deps, run = deps_of(request), _run_id(request)
    query(request)
    about(run_id=run)
    before = await deps.store.runs.get(run) if deps.ack == "redis" else None
    reply = await write(deps.store.runs.cancel(run), run_id=run)
    if reply.journal_id is not None:
        if before is not None:
            state = before.state if reply.tag == "cancelling" else RunState.CANCELLED
            return respond(run_view(StoredRun(run, before._replace(state=state), reply.now, None)))
        await wait_recorded(deps, reply.journal_id, run_id=run)
        return respond(run_with_attempts(await _recorded_run(deps, run)))
    if await deps.ledger.runs.get(run) is None:
        # It may have been pending and cancelled a moment ago, by an earlier try of this request.
        try:
            await wait_definitions_recorded(deps)
        except Unavailable as error:
            why = f"what became of run {run} is not recorded yet; repeat the request to learn its outcome"
            raise DurabilityUnknown(why, run_id=run) from error
        if await deps.ledger.runs.get(run) is None:
            raise _run_not_found(run)
    ended = await wait_until_readable(deps, lambda: _ended(deps, run), run_id=run)
    if ended.record.state is not RunState.CANCELLED:
        raise Conflict(f"run {run} has ended as {ended.record.state.value}; there is nothing to cancel")
    return respond(run_with_attempts(ended))


async def _ended(deps: Deps, run: RunId) -> StoredRun | None:
    # Redis has no such run any more: its end is on the way to the ledger, if not there.
    found = await deps.ledger.runs.get(run)
    return found if found is not None and found.record.state.final else None


async def list_dead_letters(request: Request) -> Response:
    """GET /v1/dead-letters: lists the runs that failed for good, a page at a time.

    Raises:
        Invalid: A field or parameter cannot stand (422).
        Unavailable: Redis or Postgres does not answer, or the job is being restored (503).
    """
    deps = deps_of(request)
    params = query(request, "team", "limit", "cursor")
    team = params.get("team")
    for error in check_slug(team, "team") if team is not None else ():
        raise invalid(*error)
    items, cursor = await deps.ledger.runs.dead_letters(team=team, cursor=params.get("cursor"), limit=limit(params))
    return respond(page([run_view(r) for r in items], cursor))
