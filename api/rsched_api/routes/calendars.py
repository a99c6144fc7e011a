"""Handlers of a team's calendars of exclusions, and the calendars that a job's schedule names.

After a change the scheduler refreshes the jobs that name the calendar: the script leaves it a note.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from rsched.core.answers import CalendarView
from rsched.core.errors import Conflict, FieldError, Invalid, NotFound, Unavailable, VersionConflict, invalid
from rsched.core.jobs.validate import check_slug, check_value, decode
from rsched.core.schedule.exclusions import Calendars, check_calendar, is_name
from rsched.core.schedule.schedule import Scheduled, calendar_names
from rsched_api.http.deps import Deps, deps_of, wait_definitions_recorded, wait_recorded, wait_until_readable, write
from rsched_api.http.requests import body, if_match, limit, part, query
from rsched_api.views import page, respond

_TRIES = 20
_NAMED = 10
_NONE: Calendars = {}


class CalendarRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """dates: dates (`2026-12-25`) and ranges (`2026-12-24/2027-01-02`, both included), in the zone of whoever uses them."""

    dates: list[str]


class _Present(NamedTuple):
    version: int  # 0: there is none
    entries: list[str]


async def calendars_of(deps: Deps, job: Scheduled) -> Calendars:
    """The calendars that the job names, as schedulers see them."""
    found = await deps.store.calendars.get_many(job.team, calendar_names(job))
    return {name: calendar.entries for name, calendar in found.items()}


async def calendars_of_all(deps: Deps, jobs: Sequence[Scheduled]) -> list[Calendars]:
    """calendars_of each, as recorded, in at most one query."""
    named = [(job.team, calendar_names(job)) for job in jobs]
    wanted = {(team, name) for team, names in named for name in names}
    if not wanted:
        return [_NONE] * len(jobs)
    there = await deps.ledger.calendars.get(wanted)
    return [
        {name: c.entries for name in names if (c := there.get((team, name))) is not None and c.entries is not None}
        for team, names in named
    ]


def _path(request: Request) -> tuple[str, str]:
    team, name = part(request, "team"), part(request, "name")
    errors = list(check_slug(team, "team"))
    if not is_name(name):
        fix = "write 1 to 63 of a-z, 0-9, _ and -, a letter among them"
        errors.append(FieldError("name", f"{name[:70]!r} is not the name of a calendar; {fix}"))
    if errors:
        raise Invalid(errors=errors)
    return team, name


async def _present(deps: Deps, team: str, name: str) -> _Present:
    found = (await deps.store.calendars.get_many(team, [name])).get(name)
    return _Present(0, []) if found is None else _Present(found.version, found.entries)


async def put_calendar(request: Request) -> Response:
    """PUT /v1/teams/{team}/calendars/{name}: creates or replaces one of the team's holiday calendars.

    Raises:
        Invalid: A field or parameter cannot stand (422).
        VersionConflict: If-Match names another version (412).
        Unavailable: Redis or Postgres does not answer, or the job is being restored (503).
        DurabilityUnknown: The change may have been made, but its record was not seen in time (503).
    """
    deps, (team, name) = deps_of(request), _path(request)
    query(request)
    version = if_match(request)
    dates = decode(await body(request), CalendarRequest).dates
    if errors := [*check_value(dates, "dates")] or [*check_calendar(dates, "dates")]:
        raise Invalid(errors=errors)
    dates = list(dict.fromkeys(dates))
    for _ in range(_TRIES):
        before = await _present(deps, team, name)
        if before.version and before.entries == dates and version in (None, before.version, before.version - 1):
            await _wait_version_recorded(deps, team, name, before.version)
            return _respond(team, name, before)
        if version is not None and version != before.version:
            raise _version_conflict(team, name, before)
        reply = await write(deps.store.calendars.put(team, name, expect=before.version, entries=dates))
        if reply.tag == "ok" and reply.journal_id is not None:
            await wait_recorded(deps, reply.journal_id)
            return _respond(team, name, _Present(reply.version, dates), status=200 if before.version else 201)
    raise Unavailable("the calendar is being changed by others; try again")


async def get_calendar(request: Request) -> Response:
    """GET /v1/teams/{team}/calendars/{name}: answers with a holiday calendar and its dates.

    Raises:
        Invalid: A field or parameter cannot stand (422).
        NotFound: There is no such calendar (404).
        Unavailable: Redis or Postgres does not answer, or the job is being restored (503).
    """
    deps, (team, name) = deps_of(request), _path(request)
    query(request)
    try:
        found = await _present(deps, team, name)
        # All calendars are back before a shard is open again.
        known = found.version > 0 or await deps.store.recovery.is_open()
    except Unavailable:
        found, known = _Present(0, []), False
    if not known:
        stored = (await deps.ledger.calendars.get([(team, name)])).get((team, name))
        if stored is not None and stored.entries is not None:
            found = _Present(stored.version, stored.entries)
    if not found.version:
        raise _not_found(team, name)
    return _respond(team, name, found)


async def list_calendars(request: Request) -> Response:
    """GET /v1/teams/{team}/calendars: lists the team's holiday calendars without their dates, a page at a time.

    Raises:
        Invalid: A field or parameter cannot stand (422).
        Unavailable: Redis or Postgres does not answer, or the job is being restored (503).
    """
    deps, team = deps_of(request), part(request, "team")
    params = query(request, "limit", "cursor")
    for error in check_slug(team, "team"):
        raise invalid(*error)
    items, cursor = await deps.ledger.calendars.list(team, cursor=params.get("cursor"), limit=limit(params))
    views = [CalendarView(team=team, name=c.name, version=c.version, total=len(c.entries or ())) for c in items]
    return respond(page(views, cursor))


async def delete_calendar(request: Request) -> Response:
    """DELETE /v1/teams/{team}/calendars/{name}: deletes a holiday calendar that no job uses, and answers 204.

    A job that comes to name it in this very moment is marked as invalid by the scheduler.

    Raises:
        Invalid: A field or parameter cannot stand (422).
        NotFound: There is no such calendar (404).
        Conflict: Jobs use the calendar.
        VersionConflict: If-Match names another version (412).
        Unavailable: Redis or Postgres does not answer, or the job is being restored (503).
        DurabilityUnknown: The change may have been made, but its record was not seen in time (503).
    """
    deps, (team, name) = deps_of(request), _path(request)
    query(request)
    version = if_match(request)
    for _ in range(_TRIES):
        before = await _present(deps, team, name)
        if not before.version:
            await _wait_deletion_recorded(deps, team, name)
            raise _not_found(team, name)
        if version is not None and version != before.version:
            raise _version_conflict(team, name, before)
        await _require_unused(deps, team, name)
        reply = await write(deps.store.calendars.put(team, name, expect=before.version, entries=None))
        if reply.tag == "ok" and reply.journal_id is not None:
            await wait_recorded(deps, reply.journal_id)
            return Response(status_code=204)
    raise Unavailable("the calendar is being changed by others; try again")


async def _require_unused(deps: Deps, team: str, name: str) -> None:
    """Conflict names the jobs that use the calendar."""
    # Jobs that were made or changed a moment ago count, too.
    await wait_definitions_recorded(deps)
    jobs = await deps.ledger.jobs.that_may_name(team, name)
    users = [j.definition.name or j.job_id for j in jobs if name in calendar_names(j.definition)]
    if users:
        more = f" and {len(users) - _NAMED} more" if len(users) > _NAMED else ""
        who = f"{', '.join(users[:_NAMED])}{more}"
        raise Conflict(
            f"calendar {name} is used by {who}; take it out of their exclude first, or put one without dates"
        )


def _respond(team: str, name: str, found: _Present, *, status: int = 200) -> Response:
    view = CalendarView(team=team, name=name, version=found.version, total=len(found.entries), dates=found.entries)
    return respond(view, status, {"ETag": f'"{found.version}"'})


def _not_found(team: str, name: str) -> NotFound:
    return NotFound(f"team {team} has no calendar {name}; PUT makes one")


def _version_conflict(team: str, name: str, found: _Present) -> VersionConflict:
    there = f"has version {found.version} now" if found.version else "does not exist"
    return VersionConflict(f"calendar {name} of team {team} {there}; read it again and send its ETag")


async def _wait_version_recorded(deps: Deps, team: str, name: str, version: int) -> None:
    async def look() -> bool | None:
        found = (await deps.ledger.calendars.get([(team, name)])).get((team, name))
        return True if found is not None and found.version >= version else None

    if deps.ack == "postgres":
        await wait_until_readable(deps, look)


async def _wait_deletion_recorded(deps: Deps, team: str, name: str) -> None:
    async def look() -> bool | None:
        found = (await deps.ledger.calendars.get([(team, name)])).get((team, name))
        return True if found is None or found.entries is None else None

    if deps.ack == "postgres":
        await wait_until_readable(deps, look)
