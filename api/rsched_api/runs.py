"""Handlers of runs: owe one by hand, list, read, cancel; dead letters."""

from __future__ import annotations

import secrets

from starlette.requests import Request
from starlette.responses import Response

from rsched.core.errors import Conflict, NotFound, invalid
from rsched.core.ids import RunId, short_hash, split_run_id
from rsched.core.states import RunState
from rsched.core.validate import check_slug
from rsched.ledger import StoredRun
from rsched_api import find
from rsched_api.deps import Deps, deps_of, recorded, settled, write
from rsched_api.requests import idempotency_key, limit, part, query
from rsched_api.views import page, queued_run, respond, run_view, run_with_attempts


async def trigger_job(request: Request) -> Response:
    deps = deps_of(request)
    key = idempotency_key(request)
    job_id = await find.job_id(deps, find.reference(request))
    # From the key alone, so that a repeat asks for the same run id.
    suffix = short_hash(secrets.token_hex(8) if key is None else key)
    repeat_key = "" if key is None else short_hash(key, 16)
    reply = await write(deps.store.trigger(job_id, suffix=suffix, repeat_key=repeat_key), job_id=job_id)
    if reply.tag == "missing":
        raise await find.absent(deps, job_id)
    if reply.tag == "completed" or reply.run is None:
        raise find.completed(job_id)
    if reply.tag == "ok" and reply.journal_id is not None:
        await recorded(deps, reply.journal_id, job_id=job_id, run_id=reply.run)
        return respond(queued_run(reply.run), 202)
    run = await _recorded_run(deps, reply.run)
    return respond(run_view(run), 202)


async def _recorded_run(deps: Deps, run: RunId) -> StoredRun:
    return await settled(deps, lambda: deps.ledger.run(run), run_id=run)


async def list_runs(request: Request) -> Response:
    deps = deps_of(request)
    params = query(request, "team", "status", "limit", "cursor")
    status = _status(params.get("status"))
    size = limit(params)
    job = await find.stored(deps, find.reference(request, params=params))
    items, cursor = await deps.ledger.runs(job.job_id, cursor=params.get("cursor"), limit=size, status=status)
    return respond(page([run_view(r) for r in items], cursor))


def _status(text: str | None) -> RunState | None:
    if text is None:
        return None
    try:
        return RunState(text)
    except ValueError:
        raise invalid("status", f"is no run state; write one of {', '.join(RunState)}") from None


async def get_run(request: Request) -> Response:
    query(request)
    return respond(run_with_attempts(await _stored(deps_of(request), _run_id(request))))


def _run_id(request: Request) -> RunId:
    text = part(request, "run")
    if split_run_id(text) is None:
        raise NotFound(f"{text[:80]!r} is no run_id; they look like j_...:1793000000000")
    return RunId(text)


async def _stored(deps: Deps, run: RunId) -> StoredRun:
    found = await deps.ledger.run(run)
    if found is None:
        raise NotFound(f"there is no run {run}")
    return found


async def cancel_run(request: Request) -> Response:
    """200 with the run as it is then: CANCELLED, or RUNNING while its worker is being asked to stop it."""
    deps, run = deps_of(request), _run_id(request)
    query(request)
    reply = await write(deps.store.cancel(run), run_id=run)
    if reply.journal_id is not None:
        await recorded(deps, reply.journal_id, run_id=run)
        return respond(run_with_attempts(await _recorded_run(deps, run)))
    await _stored(deps, run)
    ended = await settled(deps, lambda: _ended(deps, run), run_id=run)
    if ended.record.state is not RunState.CANCELLED:
        raise Conflict(f"run {run} has ended as {ended.record.state.value}; there is nothing to cancel")
    return respond(run_with_attempts(ended))


async def _ended(deps: Deps, run: RunId) -> StoredRun | None:
    # Redis has no such run any more: its end is on the way to the ledger, if not there.
    found = await deps.ledger.run(run)
    return found if found is not None and found.record.state.final else None


async def list_dead_letters(request: Request) -> Response:
    deps = deps_of(request)
    params = query(request, "team", "limit", "cursor")
    team = params.get("team")
    for error in check_slug(team, "team") if team is not None else ():
        raise invalid(*error)
    items, cursor = await deps.ledger.dead_letters(team=team, cursor=params.get("cursor"), limit=limit(params))
    return respond(page([run_view(r) for r in items], cursor))
