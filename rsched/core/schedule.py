"""Schedules: a spec that people write, checked and resolved, and the occurrences that it yields."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Literal, NamedTuple, Protocol, TypeVar
from zoneinfo import ZoneInfo

import msgspec

from rsched.core import cron, zones
from rsched.core.cron_timetable import Missed, Timetable, timetable
from rsched.core.durations import parse_duration
from rsched.core.errors import FieldError, Invalid
from rsched.core.ids import short_hash
from rsched.core.instants import MAX_INSTANT_MS, format_utc, parse_instant
from rsched.core.model import ScheduleSpec

__all__ = [
    "Calendars",
    "Cron",
    "Draft",
    "Interval",
    "Missed",
    "OneOff",
    "Resolved",
    "Schedule",
    "Scheduled",
    "calendar_names",
    "load",
    "resolve",
]

T = TypeVar("T")

MAX_AGE_MS = 60_000  # an `at` up to this old still runs at once
MIN_EVERY_MS = 1000

Calendars = Mapping[str, Sequence[str]]  # of one team: name -> dates and date ranges, as ScheduleSpec.exclude has them


class Scheduled(Protocol):
    """What has a schedule: a JobSpec, a Definition. One of schedule and schedules is given."""

    @property
    def schedule(self) -> ScheduleSpec | None: ...
    @property
    def schedules(self) -> Sequence[ScheduleSpec]: ...
    @property
    def team(self) -> str: ...
    @property
    def name(self) -> str | None: ...


class Draft(NamedTuple):
    """A schedule before there is a job that has it."""

    schedule: ScheduleSpec | None
    schedules: Sequence[ScheduleSpec] = ()
    team: str = "default"
    name: str | None = None


class Resolved(NamedTuple):
    """The schedule of a job with nothing left that depends on now; valid input again."""

    schedule: ScheduleSpec | None
    schedules: list[ScheduleSpec]


class Schedule(Protocol):
    """kind and arg are what the shard keeps. Instants in ms; nothing here reads a clock.

    window_ms: how long after its occurrence a run may start (0: right then); end_ms: no run starts at or after it.
    """

    @property
    def kind(self) -> Literal["o", "e", "c"]: ...
    @property
    def arg(self) -> str: ...
    @property
    def zone(self) -> ZoneInfo: ...
    @property
    def window_ms(self) -> int: ...
    @property
    def end_ms(self) -> int | None: ...
    def next_after(self, t_ms: int) -> int | None:
        """The first occurrence strictly after t_ms, or None."""

    def upcoming(self, t_ms: int, n: int) -> list[int]:
        """Up to n occurrences strictly after t_ms."""

    def missed(self, lo_ms: int, hi_ms: int) -> Missed:
        """How many occurrences lie in lo_ms < t <= hi_ms (exactly), the first and the last of them."""


class OneOff:
    """One occurrence. arg: its instant."""

    kind: Literal["o"] = "o"
    window_ms = 0
    end_ms: int | None = None

    def __init__(self, at_ms: int) -> None:
        self.at_ms = at_ms
        self.arg = str(at_ms)
        self.zone = zones.zone_info("UTC")

    def next_after(self, t_ms: int) -> int | None:
        return self.at_ms if t_ms < self.at_ms else None

    def upcoming(self, t_ms: int, n: int) -> list[int]:
        return [self.at_ms] if t_ms < self.at_ms and n > 0 else []

    def missed(self, lo_ms: int, hi_ms: int) -> Missed:
        return Missed(1, self.at_ms, self.at_ms) if lo_ms < self.at_ms <= hi_ms else Missed(0, None, None)


class Interval:
    """anchor + k * every for every whole k, elapsed time; the anchor sets the phase, not the start."""

    kind: Literal["e"] = "e"
    window_ms = 0
    end_ms: int | None = None

    def __init__(self, *, anchor_ms: int, every_ms: int) -> None:
        self.anchor_ms, self.every_ms = anchor_ms, every_ms
        self.arg = f"{anchor_ms},{every_ms}"
        self.zone = zones.zone_info("UTC")

    def next_after(self, t_ms: int) -> int | None:
        at = self.anchor_ms + ((t_ms - self.anchor_ms) // self.every_ms + 1) * self.every_ms
        return at if at <= MAX_INSTANT_MS else None

    def upcoming(self, t_ms: int, n: int) -> list[int]:
        return _upcoming(self.next_after, t_ms, n)

    def missed(self, lo_ms: int, hi_ms: int) -> Missed:
        first = self.next_after(lo_ms)
        hi_ms = min(hi_ms, MAX_INSTANT_MS)
        if first is None or first > hi_ms:
            return Missed(0, None, None)
        more = (hi_ms - first) // self.every_ms
        return Missed(more + 1, first, first + more * self.every_ms)


class Cron:
    """A cron expression in a zone. arg: the schedule id, which all jobs of this meaning, zone and tzdata share."""

    kind: Literal["c"] = "c"
    window_ms = 0
    end_ms: int | None = None

    def __init__(self, expression: cron.Expression, *, zone_name: str) -> None:
        self.expression = expression
        self.zone = zones.zone_info(zone_name)
        self.arg = short_hash(f"{expression.canonical()}|{zone_name}|{zones.tzdata_version()}", 16)
        self._timetable: Timetable = timetable(expression, zone_name)

    def next_after(self, t_ms: int) -> int | None:
        return self._timetable.next_after(t_ms)

    def upcoming(self, t_ms: int, n: int) -> list[int]:
        return _upcoming(self._timetable.next_after, t_ms, n)

    def missed(self, lo_ms: int, hi_ms: int) -> Missed:
        return self._timetable.missed(lo_ms, hi_ms)


def _upcoming(next_after: Callable[[int], int | None], t_ms: int, n: int) -> list[int]:
    out: list[int] = []
    while len(out) < n:
        at = next_after(t_ms)
        if at is None:
            break
        out.append(at)
        t_ms = at
    return out


def calendar_names(job: Scheduled) -> frozenset[str]:
    """The calendars of the team that the job's exclusions name."""
    return frozenset()


def resolve(job: Scheduled, *, now_ms: int, calendars: Calendars | None = None) -> tuple[Resolved, Schedule]:
    """Checks a schedule as people write it, and fixes what depends on now: a delay becomes `at`, an interval gets its anchor,
    cron its zone. What comes back is valid input again. Raises Invalid, which names every wrong field.
    """
    spec = job.schedule
    if spec is None:
        raise _invalid(FieldError("schedule", "is required; add it"))
    if spec.delay is not None and _kinds(spec) == ["delay"]:
        delay_ms = _checked("schedule.delay", parse_duration, spec.delay)
        spec = msgspec.structs.replace(spec, delay=None, at=format_utc(now_ms + delay_ms))
    elif spec.every is not None and spec.anchor is None:
        spec = msgspec.structs.replace(spec, anchor=format_utc(now_ms))
    elif spec.cron is not None and spec.timezone is None:
        spec = msgspec.structs.replace(spec, timezone="UTC")
    schedule = _load(spec, team=job.team, name=job.name)
    if isinstance(schedule, OneOff) and schedule.at_ms < now_ms - MAX_AGE_MS:
        raise _invalid(
            FieldError(
                "schedule.at",
                f"{spec.at!r} is more than 60 s ago (now is {format_utc(now_ms, short=True)}); write an instant to come",
            )
        )
    return Resolved(spec, []), schedule


def load(job: Scheduled, *, calendars: Calendars | None = None) -> Schedule:
    """The schedule of a resolved job, however old it is. Raises Invalid where it makes none (any more)."""
    if job.schedule is None:
        raise _invalid(FieldError("schedule", "is required; add it"))
    return _load(job.schedule, team=job.team, name=job.name)


def _load(spec: ScheduleSpec, *, team: str, name: str | None) -> Schedule:
    kinds = _kinds(spec)
    errors: list[FieldError] = []
    if spec.timezone is not None and spec.cron is None:
        errors.append(
            FieldError("schedule.timezone", "goes with cron only; remove it, or write the offset in the instant")
        )
    if spec.anchor is not None and spec.every is None:
        errors.append(FieldError("schedule.anchor", "goes with every only; remove it, or add 'every'"))
    if len(kinds) != 1:
        found = f"found {' and '.join(kinds)}" if kinds else "found none of them"
        errors.append(FieldError("schedule", f"{found}; write exactly one of cron, every, at, delay"))
    if errors:
        raise _invalid(*errors)
    if spec.cron is not None:
        # Only H reads the owner: without it, jobs of one spelling share one object.
        owner = (team, name) if "H" in spec.cron.upper() else ("", None)
        return _cron(spec.cron, spec.timezone or "UTC", owner)
    if spec.every is not None:
        return _interval(spec)
    if spec.at is None:
        raise _invalid(FieldError("schedule.delay", "is not resolved to an instant yet"))
    return OneOff(_checked("schedule.at", parse_instant, spec.at))


def _kinds(spec: ScheduleSpec) -> list[str]:
    return [kind for kind in ("cron", "every", "at", "delay") if getattr(spec, kind) is not None]


def _interval(spec: ScheduleSpec) -> Interval:
    every_ms = _checked("schedule.every", parse_duration, spec.every or 0)
    if every_ms < MIN_EVERY_MS:
        raise _invalid(FieldError("schedule.every", f"{spec.every!r} is under a second; write '1s' or more"))
    if spec.anchor is None:
        raise _invalid(FieldError("schedule.anchor", "is missing; write the instant that the interval counts from"))
    return Interval(anchor_ms=_checked("schedule.anchor", parse_instant, spec.anchor), every_ms=every_ms)


@lru_cache(maxsize=16_384)
def _cron(text: str, zone_name: str, owner: tuple[str, str | None]) -> Cron:
    errors: list[FieldError] = []
    expression: cron.Expression | None = None
    try:
        expression = cron.parse(text, team=owner[0], name=owner[1])
    except cron.CronError as e:
        errors += [FieldError("schedule.cron", message) for message in e.messages]
    try:
        zones.check_zone_name(zone_name)
    except zones.UnknownZone as e:
        errors.append(FieldError("schedule.timezone", str(e)))
    if errors or expression is None:
        raise _invalid(*errors)
    return Cron(expression, zone_name=zone_name)


def _checked(field: str, parse: Callable[[T], int], value: T) -> int:
    try:
        return parse(value)
    except ValueError as e:
        raise _invalid(FieldError(field, str(e))) from None


def _invalid(*errors: FieldError) -> Invalid:
    return Invalid(errors=errors)
