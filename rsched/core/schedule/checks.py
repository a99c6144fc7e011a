"""Whether a schedule as people write it can stand; needs no clock. Each error names its field and the fix."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import TypeVar

import msgspec

from rsched.core.cron import parser as cron
from rsched.core.durations import parse_duration
from rsched.core.errors import FieldError
from rsched.core.instants import parse_instant
from rsched.core.schedule import zones
from rsched.core.schedule.exclusions import check_exclude
from rsched.core.schedule.spec import KINDS, ScheduleSpec

MAX_SCHEDULES = 32
MAX_RUNS = 10_000
MIN_MS = 1000  # of an interval and of a window
MAX_WINDOW_MS = 86_400_000

_replace = msgspec.structs.replace
T = TypeVar("T")
Found = Iterator[FieldError]


def kinds_of(spec: ScheduleSpec) -> list[str]:
    return [kind for kind in KINDS if getattr(spec, kind) is not None]


def check_schedules(
    schedule: ScheduleSpec | None, schedules: Sequence[ScheduleSpec], *, team: str, name: str | None
) -> Found:
    """Every wrong field of a job's schedule or schedules. team and name: of the job, for H."""
    if schedule is None and not schedules:
        yield FieldError("schedule", "is required; add it, or 'schedules' for several")
    elif schedule is not None and schedules:
        yield FieldError("schedules", "stands beside schedule; write one of them (schedules takes 1 or more)")
    elif len(schedules) > MAX_SCHEDULES:
        yield FieldError("schedules", f"has {len(schedules)} entries; keep to {MAX_SCHEDULES}, or make several jobs")
        return
    if schedule is not None:
        yield from _found(schedule, "schedule", team=team, name=name)
    for i, spec in enumerate(schedules):
        yield from _found(spec, f"schedules[{i}]", team=team, name=name)
    yield from _one_window(schedules)
    yield from _one_end(schedules)


def parse_cron(spec: ScheduleSpec, *, team: str, name: str | None) -> cron.Expression:
    """The expression of a cron schedule with its second and year. CronError."""
    spread = reads_owner(spec)
    return cron.parse(
        spec.cron or "",
        second=spec.second,
        year=spec.year,
        team=team if spread else "",
        name=name if spread else None,
    )


def reads_owner(spec: ScheduleSpec) -> bool:
    """Whether H may be in it; without it, jobs of one spelling share one object."""
    return "H" in f"{spec.cron or ''} {spec.second or ''}".upper()


def _found(spec: ScheduleSpec, field: str, *, team: str, name: str | None) -> Iterable[FieldError]:
    if spec.exclude:
        return _check(spec, field, team=team, name=name)
    owner = (team, name) if reads_owner(spec) else ("", None)
    return _known(_replace(spec, exclude=""), field, owner)  # a list has no hash


@lru_cache(maxsize=4096)
def _known(spec: ScheduleSpec, field: str, owner: tuple[str, str | None]) -> tuple[FieldError, ...]:
    """A schedule is checked twice on its way in, and the jobs of a batch have few of them between them."""
    return tuple(_check(_replace(spec, exclude=[]), field, team=owner[0], name=owner[1]))


def _check(spec: ScheduleSpec, field: str, *, team: str, name: str | None) -> Found:
    kinds = kinds_of(spec)
    if len(kinds) != 1:
        found = f"found {' and '.join(kinds)}" if kinds else "found none of them"
        yield FieldError(field, f"{found}; write exactly one of cron, every, at, delay")
    yield from _company(spec, field)
    if spec.cron is not None:
        yield from _check_cron(spec, field, team=team, name=name)
    if spec.timezone is not None:
        yield from refusal(f"{field}.timezone", zones.check_zone_name, spec.timezone)
    yield from _check_duration(spec.every, f"{field}.every", least_ms=MIN_MS)
    yield from _check_duration(spec.delay, f"{field}.delay")
    yield from _check_duration(spec.window, f"{field}.window", least_ms=MIN_MS, most_ms=MAX_WINDOW_MS)
    wrong = [e for part in ("anchor", "at", "start", "end") for e in _check_instant(spec, part, field)]
    yield from wrong
    if spec.start and spec.end and not wrong and parse_instant(spec.end) <= parse_instant(spec.start):
        yield FieldError(f"{field}.end", f"{spec.end!r} is not after start {spec.start!r}; write a later instant")
    if spec.max_runs is not None and not 1 <= spec.max_runs <= MAX_RUNS:
        yield FieldError(f"{field}.max_runs", f"must be 1 to {MAX_RUNS}; leave it out for no limit, or write an 'end'")
    yield from check_exclude(spec.exclude, f"{field}.exclude")


def _company(spec: ScheduleSpec, field: str) -> Found:
    """Fields beside a kind that they do not go with."""
    recurring = spec.cron is not None or spec.every is not None
    if spec.timezone is not None and spec.cron is None and not (spec.every is not None and spec.exclude):
        yield FieldError(
            f"{field}.timezone",
            "goes with cron only, and with every that has an exclude; remove it, or write the offset in the instant",
        )
    if spec.anchor is not None and spec.every is None:
        yield FieldError(f"{field}.anchor", "goes with every only; remove it, or add 'every'")
    for name in ("second", "year", "dst"):
        if getattr(spec, name) is not None and spec.cron is None:
            yield FieldError(f"{field}.{name}", "goes with cron only; remove it, or add 'cron'")
    for name in ("start", "end", "max_runs", "exclude"):
        if getattr(spec, name) not in (None, []) and not recurring and kinds_of(spec):
            yield FieldError(
                f"{field}.{name}",
                f"goes with cron and every only ('{kinds_of(spec)[0]}' has one occurrence); remove it",
            )


def _check_cron(spec: ScheduleSpec, field: str, *, team: str, name: str | None) -> Found:
    try:
        parse_cron(spec, team=team, name=name)
    except cron.CronError as error:
        for message in error.messages:
            part, colon, rest = message.partition(": ")
            own = bool(colon) and part in ("second", "year")
            yield FieldError(f"{field}.{part}" if own else f"{field}.cron", rest if own else message)


def _check_instant(spec: ScheduleSpec, part: str, field: str) -> Found:
    value: str | None = getattr(spec, part)
    if value is not None:
        yield from refusal(f"{field}.{part}", parse_instant, value)


def _check_duration(value: str | float | None, field: str, *, least_ms: int = 0, most_ms: int | None = None) -> Found:
    if value is None:
        return
    try:
        ms = parse_duration(value)
    except ValueError as error:
        yield FieldError(field, str(error))
        return
    if ms < least_ms:
        yield FieldError(field, f"{value!r} is under a second; write '1s' or more")
    elif most_ms is not None and ms > most_ms:
        yield FieldError(field, f"{value!r} is over a day; write at most '24h'")


def _one_end(schedules: Sequence[ScheduleSpec]) -> Found:
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


def _one_window(schedules: Sequence[ScheduleSpec]) -> Found:
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


def refusal(field: str, check: Callable[[T], object], value: T) -> Found:
    """The error that check raises, under its field."""
    try:
        check(value)
    except ValueError as error:
        yield FieldError(field, str(error))
