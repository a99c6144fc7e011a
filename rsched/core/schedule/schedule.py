"""Schedules: a spec that people write, checked and resolved, and the occurrences that it yields."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple, Protocol

import msgspec

from rsched.core.cron.timetable import Missed
from rsched.core.durations import parse_duration
from rsched.core.errors import FieldError, Invalid
from rsched.core.instants import format_utc, parse_instant
from rsched.core.schedule import zones
from rsched.core.schedule.bounds import Bounded, Union
from rsched.core.schedule.checks import MIN_MS, check_schedules, parse_cron, reads_owner
from rsched.core.schedule.exclusions import Calendars, Spans, entries_of, names_in, opened, spans_of
from rsched.core.schedule.kinds import Cron, Interval, OneOff, Schedule
from rsched.core.schedule.spec import DstPolicy, ScheduleSpec

__all__ = [
    "Bounded",
    "Calendars",
    "Cron",
    "Draft",
    "Interval",
    "Missed",
    "OneOff",
    "Resolved",
    "Schedule",
    "Scheduled",
    "Union",
    "calendar_names",
    "load",
    "resolve",
]

MAX_AGE_MS = 60_000  # an `at` up to this old still runs at once

_replace = msgspec.structs.replace
_NO_SPANS = Spans(())


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


def calendar_names(job: Scheduled) -> frozenset[str]:
    """The calendars of the team that the job's exclusions name."""
    specs = [job.schedule] if job.schedule is not None else job.schedules
    return frozenset(name for spec in specs if spec.exclude for name in names_in(spec.exclude))


def resolve(job: Scheduled, *, now_ms: int, calendars: Calendars | None = None) -> tuple[Resolved, Schedule]:
    """Checks a schedule as people write it, and fixes what depends on now: a delay becomes `at`, an interval gets its anchor
    (the start, if it has one), cron its zone, max_runs its start; entries of one meaning become one. What comes back is valid
    input again. Raises Invalid, which names every wrong field.
    """
    if errors := list(check_schedules(job.schedule, job.schedules, team=job.team, name=job.name)):
        raise Invalid(errors=errors)
    if job.schedule is not None:
        spec, schedule = _resolve(job.schedule, "schedule", job, now_ms=now_ms, calendars=calendars)
        if isinstance(schedule, OneOff) and schedule.at_ms < now_ms - MAX_AGE_MS:
            raise _too_old("schedule.at", f"{spec.at!r} is more than 60 s ago", now_ms)
        return Resolved(spec, []), schedule
    kept: dict[str, ScheduleSpec] = {}
    for i, entry in enumerate(job.schedules):
        # One that is due right now would not come after now, which is where a calendar begins.
        soonest = 1 if entry.delay is not None and parse_duration(entry.delay) == 0 else 0
        spec, schedule = _resolve(entry, f"schedules[{i}]", job, now_ms=now_ms + soonest, calendars=calendars)
        if isinstance(schedule, OneOff) and schedule.at_ms <= now_ms:
            raise _too_old(f"schedules[{i}].at", f"{spec.at!r} is past", now_ms)
        before = kept.setdefault(schedule.meaning, spec)
        if before.window is None and spec.window is not None:
            kept[schedule.meaning] = _replace(before, window=spec.window)
    found = Resolved(None, list(kept.values()))
    return found, load(Draft(*found, job.team, job.name), calendars=calendars)


def load(job: Scheduled, *, calendars: Calendars | None = None) -> Schedule:
    """The schedule of a resolved job, however old it is. Raises Invalid where it makes none (any more)."""
    spec = job.schedule
    if spec is not None and not job.schedules and (quick := _quick(spec, job)) is not None:
        return quick
    if errors := list(check_schedules(spec, job.schedules, team=job.team, name=job.name)):
        raise Invalid(errors=errors)
    if spec is not None:
        return _build(spec, "schedule", job, calendars)
    window = next((entry.window for entry in job.schedules if entry.window is not None), None)
    parts: dict[str, Schedule] = {}
    for i, entry in enumerate(job.schedules):
        entry = entry if window is None else _replace(entry, window=window)  # the job's, whichever entry says it
        part = _build(entry, f"schedules[{i}]", job, calendars)
        parts.setdefault(part.meaning, part)
    return Union(list(parts.values())) if len(parts) > 1 else next(iter(parts.values()))


def _resolve(
    spec: ScheduleSpec, field: str, job: Scheduled, *, now_ms: int, calendars: Calendars | None
) -> tuple[ScheduleSpec, Schedule]:
    """One checked spec."""
    if spec.delay is not None:
        spec = _replace(spec, delay=None, at=format_utc(now_ms + parse_duration(spec.delay)))
    if spec.every is not None and spec.anchor is None:
        spec = _replace(spec, anchor=spec.start or format_utc(now_ms))
    if spec.timezone is None and (spec.cron is not None or spec.exclude):
        spec = _replace(spec, timezone="UTC")
    if spec.exclude:
        spec = _replace(spec, exclude=entries_of(spec.exclude))
    if spec.max_runs is not None and spec.start is None:
        # What falls on this very instant is not run any more, so it must not use up one either.
        rule = _build(_replace(spec, max_runs=None, end=None, window=None), field, job, calendars)
        start = rule.next_after(now_ms) if rule.next_after(now_ms - 1) == now_ms else now_ms
        spec = _replace(spec, start=format_utc(now_ms if start is None else start))
    return spec, _build(spec, field, job, calendars)


def _build(spec: ScheduleSpec, field: str, job: Scheduled, calendars: Calendars | None) -> Schedule:
    try:
        if spec.cron is not None and _plain_cron(spec):
            return _cron(spec.cron, spec.timezone or "UTC", _owner(spec, job))
        if spec.at is not None:
            return OneOff(parse_instant(spec.at), window_ms=_window_ms(spec))
        if spec.delay is not None:
            raise Invalid(errors=[FieldError("delay", "is not resolved to an instant yet")])
        if spec.every is not None and spec.anchor is None:
            raise Invalid(errors=[FieldError("anchor", "is missing; write the instant that the interval counts from")])
        return _recurring(spec, job, calendars)
    except Invalid as error:
        raise Invalid(errors=[FieldError(f"{field}.{e.field}", e.message) for e in error.errors]) from None


def _quick(spec: ScheduleSpec, job: Scheduled) -> Schedule | None:
    """What nearly all stored jobs have, without the checks that it went through before; None where they have to judge."""
    if spec.cron is not None:
        return _build(spec, "schedule", job, None) if _plain_cron(spec) else None
    try:
        if spec.at is not None and spec == ScheduleSpec(at=spec.at):
            return OneOff(parse_instant(spec.at))
        if (
            spec.every is not None
            and spec.anchor is not None
            and spec == ScheduleSpec(every=spec.every, anchor=spec.anchor)
        ):
            every_ms = parse_duration(spec.every)
            return Interval(anchor_ms=parse_instant(spec.anchor), every_ms=every_ms) if every_ms >= MIN_MS else None
    except ValueError:
        pass
    return None


def _plain_cron(spec: ScheduleSpec) -> bool:
    """Of cron and timezone alone, as nearly all are."""
    return spec == ScheduleSpec(cron=spec.cron, timezone=spec.timezone)


class _Recurring(NamedTuple):
    """All that a cron or an interval depends on. exclude: dates and ranges, calendars opened up; None where it has none."""

    spec: ScheduleSpec  # without exclude, which is a list
    exclude: tuple[str, ...] | None
    owner: tuple[str, str | None]


def _recurring(spec: ScheduleSpec, job: Scheduled, calendars: Calendars | None) -> Schedule:
    try:
        exclude = opened(spec.exclude, calendars) if spec.exclude else None
        return _cached(_Recurring(_replace(spec, exclude=""), exclude, _owner(spec, job)))
    except ValueError as error:  # of a calendar: all else has been checked
        raise Invalid(errors=[FieldError("exclude", str(error))]) from None


def _owner(spec: ScheduleSpec, job: Scheduled) -> tuple[str, str | None]:
    return (job.team, job.name) if reads_owner(spec) else ("", None)


@lru_cache(maxsize=4096)
def _cached(key: _Recurring) -> Schedule:
    spec, zone_name, window_ms = key.spec, key.spec.timezone or "UTC", _window_ms(key.spec)
    unbounded = spec.start is spec.end is None and spec.max_runs is None
    rule: Cron | Interval
    if spec.cron is not None:
        expression = parse_cron(spec, team=key.owner[0], name=key.owner[1])
        unbounded = unbounded and not key.exclude
        rule = Cron(expression, zone_name=zone_name, dst=spec.dst or DstPolicy(), window_ms=window_ms)
    else:
        every_ms, anchor_ms = parse_duration(spec.every or 0), parse_instant(spec.anchor or "")
        rule = Interval(anchor_ms=anchor_ms, every_ms=every_ms, window_ms=window_ms)
        # An interval that names a calendar stays of one kind, whether the calendar is empty or not.
        unbounded = unbounded and key.exclude is None
    if unbounded:
        return rule
    return Bounded(
        rule,
        zone=zones.zone_info(zone_name),
        start_ms=_instant(spec.start),
        end_ms=_instant(spec.end),
        max_runs=spec.max_runs,
        excluded=spans_of(key.exclude, zones.load_zone(zone_name)) if key.exclude else _NO_SPANS,
        window_ms=window_ms,
    )


@lru_cache(maxsize=16_384)
def _cron(text: str, zone_name: str, owner: tuple[str, str | None]) -> Cron:
    """The nearly only kind there is, by a short key. Raises Invalid."""
    spec = ScheduleSpec(cron=text, timezone=zone_name)
    if errors := list(check_schedules(spec, (), team=owner[0], name=owner[1])):
        raise Invalid(errors=[e._replace(field=e.field.removeprefix("schedule.")) for e in errors])
    return Cron(parse_cron(spec, team=owner[0], name=owner[1]), zone_name=zone_name)


def _window_ms(spec: ScheduleSpec) -> int:
    return 0 if spec.window is None else parse_duration(spec.window)


def _instant(text: str | None) -> int | None:
    return None if text is None else parse_instant(text)


def _too_old(field: str, found: str, now_ms: int) -> Invalid:
    now = format_utc(now_ms, short=True)
    return Invalid(errors=[FieldError(field, f"{found} (now is {now}); write an instant to come")])
