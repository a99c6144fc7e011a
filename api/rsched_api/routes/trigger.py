"""POST /v1/jobs/{ref}/trigger: one run now, beside the schedule, with a payload and an overlap policy of its own."""

from __future__ import annotations

import secrets
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from rsched.core.errors import Conflict, FieldError, Invalid
from rsched.core.ids import JobId, RunId, manual_run_id_of, short_hash
from rsched.core.jobs.model import MAX_DEFINITION_BYTES, Overlap
from rsched.core.jobs.packed import FLAG_PAYLOAD, KEYED_FOR_MS, OVERLAP_ANYWAY, overlap_code
from rsched.core.jobs.records import definition_too_large
from rsched.core.jobs.validate import check_value
from rsched.ledger import StoredRun
from rsched_api.http import lookup
from rsched_api.http.deps import Deps, deps_of, wait_recorded, wait_until_readable, write
from rsched_api.http.requests import idempotency_key
from rsched_api.routes.control import optional
from rsched_api.views import queued_run, respond, run_view


class TriggerRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """payload: instead of the job's, any JSON. overlap: instead of the job's policy; `allow` runs it beside others."""

    payload: Any = msgspec.UNSET
    overlap: Overlap | None = None


async def trigger_job(request: Request) -> Response:
    """POST /v1/jobs/{ref}/trigger: starts one run now, beside the schedule, and answers 202 with it.

    Raises:
        Invalid: A field or parameter cannot stand (422).
        NotFound: There is no such job (404).
        Conflict: The job has completed, or does not track its runs for another overlap policy.
        TooLarge: The payload is too large.
        Unavailable: Redis or Postgres does not answer, or the job is being restored (503).
        DurabilityUnknown: The change may have been made, but its record was not seen in time (503).
    """
    deps = deps_of(request)
    key = idempotency_key(request)
    ref = lookup.reference_of(request)
    wanted = await optional(request, TriggerRequest) or TriggerRequest()
    payload = _packed(wanted.payload)
    job_id = await lookup.require_job_id(deps, ref)
    # From the key alone, so that a repeat asks for the same run id.
    suffix = short_hash(secrets.token_hex(8) if key is None else key)
    repeat_key = "" if key is None else short_hash(key, 16)
    if repeat_key and (made := await _made_before_a_loss(deps, job_id, suffix=suffix, repeat_key=repeat_key)):
        return await _repeated(deps, made, wanted, payload)
    await lookup.require_current(deps, job_id)
    call = deps.store.jobs.trigger(
        job_id, suffix=suffix, repeat_key=repeat_key, overlap=wanted.overlap, payload=payload
    )
    reply = await write(call, job_id=job_id)
    if reply.tag == "missing":
        raise await lookup.why_absent(deps, job_id)
    if reply.tag == "untracked":
        fix = "leave it out or write allow, or PUT the job with an overlap policy first"
        message = f"the runs of {job_id} are not held back by each other, since its own policy is allow; {fix}"
        raise Conflict(errors=[FieldError("overlap", message)])
    if reply.tag == "completed" or reply.run is None:
        raise lookup.completed(job_id)
    if reply.tag == "ok" and reply.journal_id is not None:
        await wait_recorded(deps, reply.journal_id, job_id=job_id, run_id=reply.run)
        return respond(queued_run(reply.run), 202)
    return await _repeated(deps, reply.run, wanted, payload)


def _packed(payload: Any) -> bytes | None:
    """msgpack; None where none was given. Invalid, TooLarge."""
    if payload is msgspec.UNSET:
        return None
    if errors := list(check_value(payload, "payload")):
        raise Invalid(errors=errors)
    packed = msgspec.msgpack.encode(payload)
    if len(packed) > MAX_DEFINITION_BYTES:
        raise definition_too_large()
    return packed


async def _made_before_a_loss(deps: Deps, job_id: JobId, *, suffix: str, repeat_key: str) -> RunId | None:
    """The run that the key made, where Redis may have lost that it did. Unavailable, as only the ledger can tell then."""
    if not await deps.restoration.is_in_progress():
        return None
    since = deps.store.clock.now_ms() - KEYED_FOR_MS
    at = await deps.ledger.recovery.triggers.triggered_at(job_id, repeat_key, since=since)
    return None if at is None else manual_run_id_of(job_id, at, suffix)


async def _repeated(deps: Deps, run: RunId, wanted: TriggerRequest, payload: bytes | None) -> Response:
    """The run that the key made before. Invalid where it was made for another payload or overlap."""
    there = await deps.store.runs.get(run) if deps.ack == "redis" else None
    found = None if there is None else StoredRun(run, there, None, None)
    if found is None and deps.ack == "redis":
        found = await deps.ledger.runs.get(run)
        if found is None:
            return respond(queued_run(run), 202)
    if found is None or FLAG_PAYLOAD in found.record.flags:
        # A payload is in the record alone.
        found = await wait_until_readable(deps, lambda: deps.ledger.runs.get(run), run_id=run)
    flags = found.record.flags
    own = await deps.ledger.runs.payload(run) if FLAG_PAYLOAD in flags else None
    different = own != payload or (wanted.overlap is not None and not _judged_by(flags, wanted.overlap))
    if different:
        message = f"was used for another payload or overlap, which made {run}; use a new key for a new run"
        raise Invalid(errors=[FieldError("Idempotency-Key", message)])
    return respond(run_view(found), 202)


def _judged_by(flags: str, overlap: Overlap) -> bool:
    letter = next((f for f in flags if f.islower()), "")
    return letter in ("", OVERLAP_ANYWAY) if overlap == "allow" else letter == overlap_code(overlap)
