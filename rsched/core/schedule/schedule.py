"""Schedules: from what people write, resolved as of now, to the occurrences that it yields."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import msgspec

from rsched.core.cron.timetable import Missed
from rsched.core.errors import FieldError, Invalid
from rsched.core.instants import format_utc
from rsched.core.schedule import zones
from rsched.core.schedule.bounds import Bounded, Union
from rsched.core.schedule.exclusions import Calendars, Spans, entries_of, names_in, opened, spans_of
from rsched.core.schedule.kinds import Cron, Interval, OneOff, Schedule
from rsched.core.schedule.parse import Scheduled, parse_schedule, parse_schedules
from rsched.core.schedule.parsed import After, ByCron, Every, Once, ParsedSchedule, ParsedSchedules
from rsched.core.schedule.spec import ScheduleSpec

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
    """Returns the holiday calendars of the team that the job's exclusions name."""
    specs = [job.schedule] if job.schedule is not None else job.schedules
    return frozenset(name for spec in specs if spec.exclude for name in names_in(spec.exclude))


def resolve(
    job: Scheduled, *, now_ms: int, calendars: Calendars | None = None, parsed: ParsedSchedules | None = None
) -> tuple[Resolved, Schedule]:
    """Fixes what depends on now, and returns the text of that, valid input again, and what has the occurrences.

    A delay becomes `at`, an interval gets its anchor (the start, if it has one), cron its zone, max_runs its start; entries
    of one meaning become one.

    Args:
        job: Whose schedule it is.
        now_ms: As of when (ms).
        calendars: The team's holiday calendars, by name; those that the job names have to be there.
        parsed: The job's schedules, where they were read already.

    Raises:
        Invalid: It names every wrong field.
    """
    if parsed is None:
        parsed = parse_schedules(job)
    if parsed.single is not None:
        entry = _resolved(parsed.single, "schedule", job, now_ms=now_ms, calendars=calendars)
        if isinstance(entry.rule, Once) and entry.rule.at_ms < now_ms - MAX_AGE_MS:
            raise _too_old("schedule.at", f"{entry.spec.at!r} is more than 60 s ago", now_ms)
        return Resolved(entry.spec, []), _build(entry, "schedule", calendars)
    kept: dict[str, ScheduleSpec] = {}
    for i, entry in enumerate(parsed.entries):
        field = f"schedules[{i}]"
        # One that is due right now would not come after now, which is where its occurrences begin.
        soonest = 1 if isinstance(entry.rule, After) and entry.rule.delay_ms == 0 else 0
        entry = _resolved(entry, field, job, now_ms=now_ms + soonest, calendars=calendars)
        if isinstance(entry.rule, Once) and entry.rule.at_ms <= now_ms:
            raise _too_old(f"{field}.at", f"{entry.spec.at!r} is past", now_ms)
        meaning = _build(entry, field, calendars).meaning
        before = kept.setdefault(meaning, entry.spec)
        if before.window is None and entry.spec.window is not None:
            kept[meaning] = _replace(before, window=entry.spec.window)
    resolved = Resolved(None, list(kept.values()))
    return resolved, load(Draft(*resolved, job.team, job.name), calendars=calendars)


def load(job: Scheduled, *, calendars: Calendars | None = None) -> Schedule:
    """Returns the schedule of a resolved job, however old it is.

    Args:
        job: Whose schedule it is.
        calendars: The team's holiday calendars, by name; those that the job names have to be there.

    Raises:
        Invalid: It makes none (any more).
    """
    parsed = parse_schedules(job)
    if parsed.single is not None:
        return _build(parsed.single, "schedule", calendars)
    window_ms = next((entry.window_ms for entry in parsed.entries if entry.window_ms), 0)
    parts: dict[str, Schedule] = {}
    for i, entry in enumerate(parsed.entries):
        part = _build(entry, f"schedules[{i}]", calendars, window_ms=window_ms)  # the job's, whichever entry says it
        parts.setdefault(part.meaning, part)
    return Union(list(parts.values())) if len(parts) > 1 else next(iter(parts.values()))


def _resolved(
    entry: ParsedSchedule, field: str, job: Scheduled, *, now_ms: int, calendars: Calendars | None
) -> ParsedSchedule:
    """The same with nothing left that depends on now; its text says the same."""
    spec, rule = entry.spec, entry.rule
    if isinstance(rule, After):
        at_ms = now_ms + rule.delay_ms
        spec = _replace(spec, delay=None, at=format_utc(at_ms))
        return ParsedSchedule(spec=spec, rule=Once(at_ms), window_ms=entry.window_ms)
    if isinstance(rule, Once):
        return entry
    if isinstance(rule, Every) and rule.anchor_ms is None:
        anchor_ms = now_ms if entry.start_ms is None else entry.start_ms
        spec = _replace(spec, anchor=spec.start or format_utc(now_ms))
        if not entry.bounded:
            rule = Every(rule.every_ms, anchor_ms)
            return ParsedSchedule(spec=spec, rule=rule, window_ms=entry.window_ms)
    if spec.timezone is None and (spec.cron is not None or spec.exclude):
        spec = _replace(spec, timezone="UTC")
    if spec.exclude:
        spec = _replace(spec, exclude=entries_of(spec.exclude))
    if spec.max_runs is not None and spec.start is None:
        # What falls on this very instant is not run any more, so it must not use up one either.
        free = _replace(spec, max_runs=None, end=None, window=None)
        unbounded = _build(parse_schedule(free, field, team=job.team, name=job.name), field, calendars)
        start = unbounded.next_after(now_ms) if unbounded.next_after(now_ms - 1) == now_ms else now_ms
        spec = _replace(spec, start=format_utc(now_ms if start is None else start))
    return entry if spec is entry.spec else parse_schedule(spec, field, team=job.team, name=job.name)


def _build(entry: ParsedSchedule, field: str, calendars: Calendars | None, *, window_ms: int | None = None) -> Schedule:
    """What has the occurrences. Raises Invalid where something depends on now still, or a calendar is missing."""
    rule = entry.rule
    window_ms = entry.window_ms if window_ms is None else window_ms
    if isinstance(rule, Once):
        return OneOff(rule.at_ms, window_ms=window_ms)
    if isinstance(rule, After):
        raise Invalid(errors=[FieldError(f"{field}.delay", "is not resolved to an instant yet")])
    if isinstance(rule, Every):
        if rule.anchor_ms is None:
            text = "is missing; write the instant that the interval counts from"
            raise Invalid(errors=[FieldError(f"{field}.anchor", text)])
        if not entry.bounded:
            return Interval(anchor_ms=rule.anchor_ms, every_ms=rule.every_ms, window_ms=window_ms)
    if not entry.spec.exclude:
        return _recurring(entry, None, window_ms)
    try:
        return _recurring(entry, opened(entry.spec.exclude, calendars), window_ms)
    except ValueError as error:  # of a calendar: all else has been checked
        raise Invalid(errors=[FieldError(f"{field}.exclude", str(error))]) from None


@lru_cache(maxsize=16_384)
def _recurring(entry: ParsedSchedule, excluded: tuple[str, ...] | None, window_ms: int) -> Schedule:
    """excluded: dates and ranges, calendars opened up; None where it has none."""
    unbounded = entry.start_ms is entry.end_ms is entry.max_runs is None
    rule: Cron | Interval
    if isinstance(entry.rule, ByCron):
        unbounded = unbounded and not excluded
        rule = Cron(entry.rule.expression, zone_name=entry.zone_name, dst=entry.rule.dst, window_ms=window_ms)
    else:
        assert isinstance(entry.rule, Every)
        assert entry.rule.anchor_ms is not None
        rule = Interval(anchor_ms=entry.rule.anchor_ms, every_ms=entry.rule.every_ms, window_ms=window_ms)
        # An interval that names a calendar stays of one kind, whether the calendar is empty or not.
        unbounded = unbounded and excluded is None
    if unbounded:
        return rule
    return Bounded(
        rule,
        zone=zones.zone_info(entry.zone_name),
        start_ms=entry.start_ms,
        end_ms=entry.end_ms,
        max_runs=entry.max_runs,
        excluded=spans_of(excluded, zones.load_zone(entry.zone_name)) if excluded else _NO_SPANS,
        window_ms=window_ms,
    )


def _too_old(field: str, found: str, now_ms: int) -> Invalid:
    now = format_utc(now_ms, short=True)
    return Invalid(errors=[FieldError(field, f"{found} (now is {now}); write an instant to come")])
