"""POST /v1/schedules:preview: when a schedule would run, before anything is created."""

from __future__ import annotations

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from rsched.core.errors import FieldError, Invalid, invalid
from rsched.core.instants import parse_instant
from rsched.core.jobs.model import ScheduleSpec
from rsched.core.jobs.validate import check_name, check_slug, check_value, decode
from rsched.core.schedule import schedule as schedules
from rsched.core.schedule.preview import preview_of
from rsched.core.schedule.schedule import Draft
from rsched_api.http.deps import deps_of
from rsched_api.http.requests import body, query
from rsched_api.views import respond

MAX_COUNT = 1000
LAST_FROM_MS = 253_370_764_800_000  # 9999-01-01: past it the last occurrences could not be written


class PreviewRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What to preview: one of schedule and schedules.

    from: instant after which occurrences count, by default now. team, name: the job's, for H and for the team's calendars.
    """

    schedule: ScheduleSpec | None = None
    schedules: list[ScheduleSpec] = []
    from_: str | None = msgspec.field(default=None, name="from")
    count: int = 10
    team: str = "default"
    name: str | None = None


async def preview(request: Request) -> Response:
    """POST /v1/schedules:preview: answers when a schedule would run; nothing is created.

    Raises:
        Invalid: A field or parameter cannot stand (422).
        Unavailable: Redis or Postgres does not answer, or the job is being restored (503).
    """
    query(request)
    wanted = decode(await body(request), PreviewRequest)
    draft = Draft(wanted.schedule, wanted.schedules, wanted.team, wanted.name)
    errors = [
        e for field in ("schedule", "schedules") for e in check_value(msgspec.to_builtins(getattr(draft, field)), field)
    ]
    errors += check_slug(wanted.team, "team")
    errors += check_name(wanted.name) if wanted.name is not None else ()
    if not 1 <= wanted.count <= MAX_COUNT:
        errors.append(FieldError("count", f"must be 1 to {MAX_COUNT}"))
    if errors:
        raise Invalid(errors=errors)
    store = deps_of(request).store
    start = store.clock.now_ms() if wanted.from_ is None else _from(wanted.from_)
    found = await store.calendars.get_many(wanted.team, schedules.calendar_names(draft))
    calendars = {name: c.entries for name, c in found.items()}
    return respond(preview_of(draft, start=start, count=wanted.count, calendars=calendars))


def _from(text: str) -> int:
    try:
        at = parse_instant(text)
    except ValueError as error:
        raise invalid("from", str(error)) from None
    if not 0 <= at <= LAST_FROM_MS:
        raise invalid("from", "must be between 1970 and 9999")
    return at
