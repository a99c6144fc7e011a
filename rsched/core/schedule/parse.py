"""From the text of a schedule to a ParsedSchedule: the one place that reads it. Each error names its field and the fix.

It needs no clock and no calendars. Whether a calendar exists, and whether an instant is still to come, is known only when the
schedule is resolved (rsched.core.schedule.schedule).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Protocol, TypeVar

import msgspec

from rsched.core.cron import parser as cron
from rsched.core.durations import parse_duration
from rsched.core.errors import FieldError, Invalid
from rsched.core.instants import parse_instant
from rsched.core.schedule import zones
from rsched.core.schedule.exclusions import check_exclude
from rsched.core.schedule.parsed import After, ByCron, Every, Once, ParsedSchedule, ParsedSchedules, Rule
from rsched.core.schedule.spec import KINDS, DstPolicy, ScheduleSpec

MAX_SCHEDULES = 32
MAX_RUNS = 10_000
MIN_MS = 1000  # of an interval and of a window
MAX_WINDOW_MS = 86_400_000

_USUAL = DstPolicy()
_NOTHING = (None,) * 8
_replace = msgspec.structs.replace
T = TypeVar("T")


class Scheduled(Protocol):
    """What has a schedule: a JobSpec, a Definition. One of schedule and schedules is given."""

    @property
    def schedule(self) -> ScheduleSpec | None:
        """The one schedule."""

    @property
    def schedules(self) -> Sequence[ScheduleSpec]:
        """Several schedules."""

    @property
    def team(self) -> str:
        """The team that owns the job."""

    @property
    def name(self) -> str | None:
        """The job's name."""


def parse_schedules(job: Scheduled) -> ParsedSchedules:
    """Reads a job's schedule or schedules.

    Args:
        job: Its team and name are what H is spread by.

    Raises:
        Invalid: It names every wrong field.
    """
    errors: list[FieldError] = []
    if job.schedule is None and not job.schedules:
        errors.append(FieldError("schedule", "is required; add it, or 'schedules' for several"))
    elif job.schedule is not None and job.schedules:
        text = "stands beside schedule; write one of them (schedules takes 1 or more)"
        errors.append(FieldError("schedules", text))
    elif len(job.schedules) > MAX_SCHEDULES:
        text = f"has {len(job.schedules)} entries; keep to {MAX_SCHEDULES}, or make several jobs"
        raise Invalid(errors=[FieldError("schedules", text)])
    single: ParsedSchedule | None = None
    entries: list[ParsedSchedule] = []
    try:
        if job.schedule is not None:
            single = parse_schedule(job.schedule, "schedule", team=job.team, name=job.name)
    except Invalid as error:
        errors += error.errors
    for i, spec in enumerate(job.schedules):
        try:
            entries.append(parse_schedule(spec, f"schedules[{i}]", team=job.team, name=job.name))
        except Invalid as error:
            errors += error.errors
    if job.schedules:
        errors += _one_window(job.schedules)
        errors += _one_end(job.schedules)
    if errors:
        raise Invalid(errors=errors)
    return ParsedSchedules(single, tuple(entries))


def parse_schedule(
    spec: ScheduleSpec, field: str = "schedule", *, team: str = "default", name: str | None = None
) -> ParsedSchedule:
    """Reads one schedule.

    Args:
        spec: Its text.
        field: Where it stands in a job, for errors.
        team: The team that H is spread by.
        name: The job's name, that H is spread by.

    Raises:
        Invalid: It names every wrong field.
    """
    try:
        # What is of a job alone is read each time; what jobs share has one object, and with it one memo of occurrences.
        if spec.cron is None and not spec.exclude and spec.max_runs is None:
            return _read(spec, ("", None))
        owner = (team, name) if _reads_owner(spec) else ("", None)
        key = _replace(spec, exclude="")  # a list has no hash
        return _shared(key, _entries(spec), owner, spec.every, spec.window)
    except Invalid as error:
        errors = [e._replace(field=f"{field}.{e.field}" if e.field else field) for e in error.errors]
        raise Invalid(errors=errors) from None


def parse_cron(spec: ScheduleSpec, *, team: str, name: str | None) -> cron.Expression:
    """Reads the expression of a cron schedule with its second and year. Raises cron.CronError."""
    owner = (team, name) if _reads_owner(spec) else ("", None)
    return _expression(spec, owner)


def _expression(spec: ScheduleSpec, owner: tuple[str, str | None]) -> cron.Expression:
    return cron.parse(spec.cron or "", second=spec.second, year=spec.year, team=owner[0], name=owner[1])


def _reads_owner(spec: ScheduleSpec) -> bool:
    """Whether H may be in it; without it, jobs of one spelling share one object."""
    if spec.cron is None:
        return False
    return "H" in spec.cron or "h" in spec.cron or (isinstance(spec.second, str) and "H" in spec.second.upper())


def _entries(spec: ScheduleSpec) -> tuple[str, ...] | str:
    return spec.exclude if isinstance(spec.exclude, str) else tuple(spec.exclude)


# typed: 60 and 60.0 are one key otherwise, and a job would show what another one wrote.
@lru_cache(maxsize=16_384, typed=True)
def _shared(
    spec: ScheduleSpec,
    exclude: tuple[str, ...] | str,
    owner: tuple[str, str | None],
    _every: str | float | None,
    _window: str | float | None,
) -> ParsedSchedule:
    """One object for all jobs of this spelling. spec: without exclude."""
    return _read(_replace(spec, exclude=exclude if isinstance(exclude, str) else list(exclude)), owner)


class _Reader:
    """Reads fields, and collects what is wrong with them."""

    def __init__(self) -> None:
        self.errors: list[FieldError] = []

    def refuse(self, field: str, message: str) -> None:
        self.errors.append(FieldError(field, message))

    def read(self, field: str, parse: Callable[[T], object], value: T) -> int | None:
        """What parse makes of the text; None where it was refused."""
        try:
            parsed = parse(value)
        except ValueError as error:
            self.refuse(field, str(error))
            return None
        return parsed if isinstance(parsed, int) else None

    def duration(self, field: str, value: str | float, *, least_ms: int = 0, most_ms: int | None = None) -> int:
        ms = self.read(field, parse_duration, value)
        if ms is None:
            return 0
        if ms < least_ms:
            self.refuse(field, f"{value!r} is under a second; write '1s' or more")
        elif most_ms is not None and ms > most_ms:
            self.refuse(field, f"{value!r} is over a day; write at most '24h'")
        return ms


def _read(spec: ScheduleSpec, owner: tuple[str, str | None]) -> ParsedSchedule:
    """One schedule; errors name their fields within it."""
    reader = _Reader()
    _check_company(spec, reader)
    expression = _read_cron(spec, owner, reader) if spec.cron is not None else None
    if spec.timezone is not None:
        reader.read("timezone", zones.check_zone_name, spec.timezone)
    every_ms = 0 if spec.every is None else reader.duration("every", spec.every, least_ms=MIN_MS)
    delay_ms = 0 if spec.delay is None else reader.duration("delay", spec.delay)
    window_ms = 0
    if spec.window is not None:
        window_ms = reader.duration("window", spec.window, least_ms=MIN_MS, most_ms=MAX_WINDOW_MS)
    instants = len(reader.errors)
    anchor_ms = None if spec.anchor is None else reader.read("anchor", parse_instant, spec.anchor)
    at_ms = None if spec.at is None else reader.read("at", parse_instant, spec.at)
    start_ms = None if spec.start is None else reader.read("start", parse_instant, spec.start)
    end_ms = None if spec.end is None else reader.read("end", parse_instant, spec.end)
    if len(reader.errors) == instants and start_ms is not None and end_ms is not None and end_ms <= start_ms:
        reader.refuse("end", f"{spec.end!r} is not after start {spec.start!r}; write a later instant")
    if spec.max_runs is not None and not 1 <= spec.max_runs <= MAX_RUNS:
        reader.refuse("max_runs", f"must be 1 to {MAX_RUNS}; leave it out for no limit, or write an 'end'")
    if spec.exclude:
        reader.errors += check_exclude(spec.exclude, "exclude")
    if reader.errors:
        raise Invalid(errors=reader.errors)
    rule: Rule
    if expression is not None:
        rule = ByCron(expression, spec.dst or _USUAL)
    elif spec.every is not None:
        rule = Every(every_ms, anchor_ms)
    else:
        rule = Once(at_ms) if at_ms is not None else After(delay_ms)
    return ParsedSchedule(
        spec=spec,
        rule=rule,
        zone_name=spec.timezone or "UTC",
        start_ms=start_ms,
        end_ms=end_ms,
        max_runs=spec.max_runs,
        window_ms=window_ms,
    )


def _check_company(spec: ScheduleSpec, reader: _Reader) -> None:
    """Refuses more than one kind, and fields beside a kind that they do not go with."""
    kinds = [kind for kind in KINDS if getattr(spec, kind) is not None]
    if len(kinds) != 1:
        there = f"found {' and '.join(kinds)}" if kinds else "found none of them"
        reader.refuse("", f"{there}; write exactly one of cron, every, at, delay")
    # As most are: nothing beside the kind.
    beside = (spec.timezone, spec.anchor, spec.second, spec.year, spec.dst, spec.start, spec.end, spec.max_runs)
    if not spec.exclude and beside == _NOTHING:
        return
    recurring = spec.cron is not None or spec.every is not None
    if spec.timezone is not None and spec.cron is None and not (spec.every is not None and spec.exclude):
        fix = "remove it, or write the offset in the instant"
        reader.refuse("timezone", f"goes with cron only, and with every that has an exclude; {fix}")
    if spec.anchor is not None and spec.every is None:
        reader.refuse("anchor", "goes with every only; remove it, or add 'every'")
    if spec.cron is None:
        for name in ("second", "year", "dst"):
            if getattr(spec, name) is not None:
                reader.refuse(name, "goes with cron only; remove it, or add 'cron'")
    if not recurring and kinds:
        for name in ("start", "end", "max_runs", "exclude"):
            if getattr(spec, name) not in (None, []):
                why = f"goes with cron and every only ('{kinds[0]}' has one occurrence)"
                reader.refuse(name, f"{why}; remove it")


def _read_cron(spec: ScheduleSpec, owner: tuple[str, str | None], reader: _Reader) -> cron.Expression | None:
    try:
        return _expression(spec, owner)
    except cron.CronError as error:
        for message in error.messages:
            part, colon, rest = message.partition(": ")
            own = bool(colon) and part in ("second", "year")
            reader.refuse(part if own else "cron", rest if own else message)
        return None


def _one_end(schedules: Sequence[ScheduleSpec]) -> Iterator[FieldError]:
    """With a window, no run starts at or past the end: which end, where entries end at different times, nobody could tell."""
    if all(spec.window is None for spec in schedules):
        return
    ends = {spec.end for spec in schedules if spec.at is None and spec.delay is None}
    for i, spec in enumerate(schedules):
        if len(ends) > 1 and spec.end is not None:
            yield FieldError(
                f"schedules[{i}].end",
                f"{spec.end!r}: with a window all entries need the same end, or none; write it so, or make two jobs",
            )


def _one_window(schedules: Sequence[ScheduleSpec]) -> Iterator[FieldError]:
    """All entries that say a window have to say the same: it is the job's."""
    said: str | float | None = None
    for i, spec in enumerate(schedules):
        if spec.window is None:
            continue
        said = spec.window if said is None else said
        try:
            same = parse_duration(spec.window) == parse_duration(said)
        except ValueError:
            continue  # refused already
        if not same:
            yield FieldError(
                f"schedules[{i}].window",
                f"{spec.window!r}: another entry says {said!r}; a job has one window, write the same",
            )
