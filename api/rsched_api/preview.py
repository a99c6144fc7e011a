"""POST /v1/schedules:preview: when a schedule would run, before anything is created."""

from __future__ import annotations

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from rsched.core import schedule as schedules
from rsched.core.durations import format_duration, parse_duration
from rsched.core.errors import FieldError, Invalid, invalid
from rsched.core.instants import format_local, format_utc, parse_instant
from rsched.core.model import ScheduleSpec
from rsched.core.schedule import Draft
from rsched.core.validate import check_value, decode
from rsched_api.deps import deps_of
from rsched_api.requests import body, query
from rsched_api.views import respond

MAX_COUNT = 1000
LAST_FROM_MS = 253_370_764_800_000  # 9999-01-01: past it the last occurrences could not be written


class PreviewRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """from: instant after which occurrences count, by default now."""

    schedule: ScheduleSpec
    from_: str | None = msgspec.field(default=None, name="from")
    count: int = 10


class Occurrence(msgspec.Struct, frozen=True, kw_only=True):
    """One instant in UTC and in the schedule's own zone."""

    utc: str
    local: str
    note: str | None


class Preview(msgspec.Struct, frozen=True, kw_only=True):
    occurrences: list[Occurrence]
    description: str
    warnings: list[str]


async def preview(request: Request) -> Response:
    query(request)
    wanted = decode(await body(request), PreviewRequest)
    errors = [
        e for name, v in msgspec.structs.asdict(wanted.schedule).items() for e in check_value(v, f"schedule.{name}")
    ]
    if not 1 <= wanted.count <= MAX_COUNT:
        errors.append(FieldError("count", f"must be 1 to {MAX_COUNT}"))
    if errors:
        raise Invalid(errors=errors)
    start = deps_of(request).store.now_ms() if wanted.from_ is None else _from(wanted.from_)
    resolved, schedule = schedules.resolve(Draft(wanted.schedule), now_ms=start)
    # A one-off of this very moment, or one a moment ago, still runs.
    found = [int(schedule.arg)] if schedule.kind == "o" else schedule.upcoming(start, wanted.count)
    warnings = [] if found else ["there is no occurrence after `from`"]
    return respond(
        Preview(
            occurrences=[
                Occurrence(utc=format_utc(t, short=t % 1000 == 0), local=format_local(t, schedule.zone), note=None)
                for t in found
            ],
            description=describe(resolved.schedule or wanted.schedule),
            warnings=warnings,
        )
    )


def _from(text: str) -> int:
    try:
        at = parse_instant(text)
    except ValueError as error:
        raise invalid("from", str(error)) from None
    if not 0 <= at <= LAST_FROM_MS:
        raise invalid("from", "must be between 1970 and 9999")
    return at


def describe(spec: ScheduleSpec) -> str:
    """The resolved schedule in a few words."""
    if spec.cron is not None:
        return f"cron {spec.cron} in {spec.timezone or 'UTC'}"
    if spec.every is not None:
        return f"every {format_duration(parse_duration(spec.every))} from {spec.anchor}"
    return f"once at {spec.at}"
