"""The body of POST /v1/jobs:batch: cut up and checked job by job, a slice of time at a time."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated, NamedTuple

import anyio.lowlevel
import msgspec

from rsched.core.answers import JobView
from rsched.core.errors import FieldError, Invalid, RschedError, TooLarge, invalid
from rsched.core.jobs import records
from rsched.core.jobs.model import JobSpec
from rsched.core.jobs.records import definition_too_large
from rsched.core.jobs.validate import ParsedJob, decode, parse_request
from rsched.core.schedule.schedule import Calendars, Resolved, Schedule, calendar_names
from rsched.runtime.clock import Clock
from rsched_api.http.requests import MAX_BODY_BYTES

MAX_JOBS = 10_000
MAX_BATCH_BYTES = 32 * 1024 * 1024
MAX_ERRORS = 100
# No request of others waits longer than this for a batch that is being worked on.
_SLICE_S = 0.01

# Of the commas between them: bounds what a list of entries may take, whatever the entries are.
_MAX_VALUES = 2_000_000
_NONE: Calendars = {}


class BatchRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All of these jobs are created, or none."""

    jobs: Annotated[list[JobSpec], msgspec.Meta(min_length=1, max_length=MAX_JOBS)]


class BatchAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The jobs, in the order of the request."""

    items: list[JobView]


class Parsed(NamedTuple):
    """A checked job, and its schedule as of now."""

    spec: JobSpec
    resolved: Resolved
    schedule: Schedule


class Pace:
    """Lets others have the event loop once a slice of time is used up."""

    def __init__(self, clock: Clock) -> None:
        self._clock, self._began = clock, clock.perf_s()

    async def breathe(self) -> None:
        """Yields to other requests if the slice of time is used up, and begins a new slice."""
        if self._clock.perf_s() - self._began >= _SLICE_S:
            await anyio.lowlevel.checkpoint()
            self._began = self._clock.perf_s()


class Errors:
    """What is wrong with the jobs of a batch, each field under its job; the first MAX_ERRORS of it."""

    def __init__(self) -> None:
        self.found: list[FieldError] = []

    @property
    def enough(self) -> bool:
        """Whether so many errors were found that the rest need not be looked for."""
        return len(self.found) >= MAX_ERRORS

    def add(self, index: int, error: RschedError) -> None:
        """Adds what is wrong with the job at this index (from 0)."""
        for field, message in error.errors or (FieldError("", error.detail),):
            self.found.append(FieldError(f"jobs[{index}].{field}" if field else f"jobs[{index}]", message))
        del self.found[MAX_ERRORS:]


def batch_too_large() -> TooLarge:
    """Returns the error for a body of more than MAX_BATCH_BYTES."""
    return TooLarge(errors=[FieldError("", f"a batch has at most {MAX_BATCH_BYTES >> 20} MB; send several")])


def at_index(index: int, error: TooLarge) -> TooLarge:
    """Returns the error with the index (from 0) of the job that it is about as its field."""
    return TooLarge(errors=[FieldError(f"jobs[{index}]", e.message) for e in error.errors])


async def parsed(
    raw: bytes, *, now: int, pace: Pace, calendars_of: Callable[[JobSpec], Awaitable[Calendars]]
) -> list[Parsed]:
    """Reads and checks the jobs of a batch, in the order of the request.

    Args:
        raw: The body, JSON.
        now: The instant that schedules are resolved at (ms, UTC).
        pace: Lets other requests have the event loop.
        calendars_of: Gives the holiday calendars of a job that names some; asked once for jobs of a team that name the same ones.

    Raises:
        Invalid: Fields cannot stand; it names those of all jobs, up to MAX_ERRORS.
        TooLarge: A job, or the batch, is too large.
    """
    found: list[Parsed] = []
    errors = Errors()
    names: dict[tuple[str, str], int] = {}
    known: dict[tuple[str, frozenset[str]], Calendars] = {}
    parts = _split(raw)
    if len(parts) > MAX_JOBS:
        raise invalid("jobs", f"has {len(parts)} entries; send at most {MAX_JOBS} in a batch")
    for index, part in enumerate(parts):
        await pace.breathe()
        text = bytes(part)
        if len(text) > MAX_BODY_BYTES:
            raise at_index(index, definition_too_large())
        try:
            job = parse_request(text)
            spec = job.spec
            calendars = _NONE
            if names_of := calendar_names(spec):
                which = spec.team, names_of
                if which not in known:
                    known[which] = await calendars_of(spec)
                calendars = known[which]
            one = _resolved(job, now, calendars)
        except Invalid as error:
            errors.add(index, error)
        else:
            found.append(one)
            if one.spec.name is not None:
                first = names.setdefault((one.spec.team, one.spec.name), index)
                if first != index:
                    errors.add(index, invalid("name", f"is that of jobs[{first}] too; names are unique in a team"))
        if errors.enough:
            break
    if errors.found:
        raise Invalid(errors=errors.found)
    if not found:
        raise invalid("jobs", "is empty; send at least one job")
    return found


def _resolved(job: ParsedJob, now: int, calendars: Calendars) -> Parsed:
    resolved, schedule = records.resolve(job.spec, now, calendars, parsed=job.schedules)
    records.first_due(schedule, now)
    return Parsed(job.spec, resolved, schedule)


def _split(raw: bytes) -> list[msgspec.Raw]:
    """The entries of {"jobs": [...]}, each still JSON. Invalid, TooLarge."""
    if raw.count(b",") > _MAX_VALUES:
        raise TooLarge(errors=[FieldError("", "the batch holds too many values; send several")])
    fields = decode(raw, dict[str, msgspec.Raw])
    for name in fields.keys() - {"jobs"}:
        raise invalid(name[:60], "unknown field; leave it out; known here: jobs")
    if "jobs" not in fields:
        raise invalid("jobs", "is required; add it")
    try:
        return msgspec.json.decode(fields["jobs"], type=list[msgspec.Raw])
    except msgspec.ValidationError:
        raise invalid("jobs", "wrong type: expected array") from None
