"""POST /v1/jobs/{ref}/backfill: makes the occurrences of a past range that have no run pending, enqueued like a catch-up."""

from __future__ import annotations

from typing import NamedTuple

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from rsched.core.answers import BackfillView
from rsched.core.errors import Conflict, FieldError, Invalid, RschedError, Unavailable, invalid
from rsched.core.ids import JobId
from rsched.core.instants import format_utc, parse_instant
from rsched.core.jobs.packed import JobRecord
from rsched.core.jobs.validate import decode
from rsched.core.schedule import schedule as schedules
from rsched.core.schedule.exclusions import Spans
from rsched.core.schedule.schedule import Schedule
from rsched.core.states import JobState
from rsched.store.jobs import BACKFILL_PER_S
from rsched_api.http import lookup
from rsched_api.http.batch_body import Pace
from rsched_api.http.deps import Deps, deps_of, wait_definitions_recorded, wait_recorded, wait_stream_recorded, write
from rsched_api.http.requests import body
from rsched_api.routes.calendars import calendars_of
from rsched_api.views import respond

MAX_OCCURRENCES = 100_000
_RANGES_A_CALL = 500
_CHUNK = 1000
_TRIES = 20


class BackfillRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """from: the first instant that counts; to: the first that does not, by default now. RFC 3339 with offset, both past."""

    from_: str = msgspec.field(name="from")
    to: str | None = None
    dry_run: bool = False


class _Range(NamedTuple):
    """total occurrences; both ends are some."""

    first: int
    last: int
    total: int


class _Pending(NamedTuple):
    ranges: list[_Range]
    already: int


async def backfill_job(request: Request) -> Response:
    """POST /v1/jobs/{ref}/backfill: makes the past occurrences of a range that have no run pending, and answers 202.

    Raises:
        Invalid: A field or parameter cannot stand (422).
        NotFound: There is no such job (404).
        Conflict: The job is not active, or its schedule cannot be computed.
        Unavailable: Redis or Postgres does not answer, or the job is being restored (503).
        DurabilityUnknown: The change may have been made, but its record was not seen in time (503).
    """
    deps = deps_of(request)
    ref = lookup.reference_of(request)
    wanted = decode(await body(request), BackfillRequest)
    since, until = _span(wanted, deps.store.clock.now_ms())
    job_id = await lookup.require_job_id(deps, ref)
    for _ in range(_TRIES):
        record = await lookup.require_record(deps, job_id)
        if record.head.state is not JobState.ACTIVE:
            raise _inactive(job_id, record.head.state)
        schedule = await _schedule(deps, job_id, record)
        await _wait_all_recorded(deps)
        pending = await _pending(deps, job_id, record, schedule, since=since, until=until)
        tag = "ok" if wanted.dry_run else await _enqueue(deps, job_id, record, pending)
        if tag == "ok":
            return respond(_view(job_id, pending, dry_run=wanted.dry_run), 202)
        if tag == "missing":
            raise await lookup.why_absent(deps, job_id)
    raise Unavailable("the job is being changed by others; try again")


def _span(wanted: BackfillRequest, now: int) -> tuple[int, int]:
    errors, found = [], {"from": 0, "to": now}
    for field, text in (("from", wanted.from_), ("to", wanted.to)):
        if text is None:
            continue
        try:
            found[field] = parse_instant(text)
        except ValueError as error:
            errors.append(FieldError(field, str(error)))
    since, until = found["from"], found["to"]
    if not errors and since < 0:
        errors.append(FieldError("from", "is before 1970; write a later instant"))
    if not errors and until > now:
        fix = "write an instant up to now, or leave it out: the schedule runs what is to come by itself"
        errors.append(FieldError("to", f"is in the future; {fix}"))
    if not errors and since >= until:
        errors.append(FieldError("from", "is not before to; write the earlier instant here"))
    if errors:
        raise Invalid(errors=errors)
    return since, until


def _inactive(job_id: JobId, state: JobState) -> Conflict:
    fix = {JobState.PAUSED: "resume it first", JobState.COMPLETED: "PUT a new schedule, or create another job"}
    return Conflict(
        f"job {job_id} is {state.value}, so nothing can be caught up; {fix.get(state, 'PUT it anew first')}"
    )


async def _schedule(deps: Deps, job_id: JobId, record: JobRecord) -> Schedule:
    try:
        return schedules.load(record.definition, calendars=await calendars_of(deps, record.definition))
    except Unavailable:
        raise
    except (RschedError, ValueError) as error:
        raise Conflict(f"the schedule of {job_id} cannot be computed ({error}); PUT one that can") from None


async def _wait_all_recorded(deps: Deps) -> None:
    """Returns once the ledger knows all that the shard did before: then what has no run there, has none. Unavailable."""
    await wait_definitions_recorded(deps)
    await wait_stream_recorded(deps, "journal")


async def _pending(
    deps: Deps, job_id: JobId, record: JobRecord, schedule: Schedule, *, since: int, until: int
) -> _Pending:
    """The occurrences without a run, in ranges that hold no other one."""
    due = (await deps.store.jobs.get_due_times([job_id])).get(job_id)
    if due is not None:
        until = min(until, due)  # the misfire policy decides about what is late
    if since >= until:
        return _Pending([], 0)
    found = schedule.missed(since - 1, until - 1)
    if found.count > MAX_OCCURRENCES:
        message = (
            f"there are {found.count} occurrences from here; at most {MAX_OCCURRENCES} go in one request, so split it"
        )
        raise invalid("from", message)
    schedule_version = record.head.schedule_version
    there = await deps.ledger.runs.occurrences(job_id, since=since, until=until, schedule_version=schedule_version)
    promised = Spans(
        (low, high + 1)
        for low, high in await deps.ledger.jobs.pending_catch_ups(job_id, schedule_version=schedule_version)
    )
    pace = Pace(deps.clock)
    ranges: list[_Range] = []
    already, first, last, count, at = 0, 0, 0, 0, since - 1
    while chunk := [t for t in schedule.upcoming(at, _CHUNK) if t < until]:
        at = chunk[-1]
        await pace.breathe()
        for t in chunk:
            if t in there or promised.end_of(t) is not None:
                already += 1
                if count:
                    ranges.append(_Range(first, last, count))
                count = 0
            else:
                first = t if not count else first
                last, count = t, count + 1
    if count:
        ranges.append(_Range(first, last, count))
    return _Pending(ranges, already)


async def _enqueue(deps: Deps, job_id: JobId, record: JobRecord, pending: _Pending) -> str:
    """ok, missing, or conflict: the job was changed meanwhile. What was pending by then is found by the next try."""
    journal_id = None
    for some in _parts(pending.ranges):
        call = deps.store.jobs.backfill(
            job_id,
            schedule_version=record.head.schedule_version,
            ranges=[(span.first, span.last) for span in some],
            counts=[span.total for span in some],
        )
        reply = await write(call, job_id=job_id)
        if reply.tag == "inactive":
            raise _inactive(job_id, JobState.PAUSED)
        if reply.tag != "ok":
            return reply.tag
        journal_id = reply.journal_id
    if journal_id is not None:
        await wait_recorded(deps, journal_id, job_id=job_id)
    return "ok"


def _parts(ranges: list[_Range]) -> list[list[_Range]]:
    return [ranges[i : i + _RANGES_A_CALL] for i in range(0, len(ranges), _RANGES_A_CALL)]


def _view(job_id: JobId, pending: _Pending, *, dry_run: bool) -> BackfillView:
    ranges = pending.ranges
    return BackfillView(
        job_id=job_id,
        occurrences=sum(span.total for span in ranges),
        already=pending.already,
        ranges=len(ranges),
        first=format_utc(ranges[0].first) if ranges else None,
        last=format_utc(ranges[-1].last) if ranges else None,
        pace_per_s=BACKFILL_PER_S,
        dry_run=dry_run,
    )
