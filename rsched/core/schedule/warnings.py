"""What a schedule may do that its author did not mean: accepted, but said."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import pairwise

from rsched.core.cron.days import Expression
from rsched.core.cron.words import MONTHS, clock, day_groups, days, joined, minute_words
from rsched.core.durations import format_duration
from rsched.core.errors import Invalid
from rsched.core.instants import format_utc, parse_instant
from rsched.core.schedule.parse import parse_cron
from rsched.core.schedule.schedule import Calendars, Draft, Schedule, Scheduled, load
from rsched.core.schedule.spec import ScheduleSpec

_LACKING = {29: (2,), 30: (2,), 31: (2, 4, 6, 9, 11)}
_SAMPLE = 100  # occurrences that are looked at for how close they come


def warnings(job: Scheduled, *, now_ms: int, calendars: Calendars | None = None) -> list[str]:
    """Returns texts with the fix.

    Args:
        job: With a schedule that resolve() has resolved.
        now_ms: After which instant (ms) runs count.
        calendars: The team's holiday calendars, by name.
    """
    out: list[str] = []
    specs = list(job.schedules) if job.schedule is None else [job.schedule]
    seen: dict[str, int] = {}
    for i, spec in enumerate(specs):
        label = f"schedules[{i}]: " if job.schedule is None else ""
        if spec.cron is not None:
            expression = parse_cron(spec, team=job.team, name=job.name)
            out += (label + text for text in _of_cron(expression, spec.cron))
            if len(expression.seconds) == 60 and len(expression.minutes) < 60:
                out.append(f'{label}runs 60 times in each of its minutes, every second; write "second": 0 for once')
        try:
            schedule = load(Draft(spec, (), job.team, job.name), calendars=calendars)
        except Invalid:
            continue  # a calendar that is not at hand here, or a delay that is not resolved yet
        out += (label + text for text in _of_bounds(schedule, spec, now_ms))
        if (first := seen.setdefault(schedule.meaning, i)) != i:
            out.append(f"{label}means the same as schedules[{first}], so it is left out; remove it")
    with suppress(Invalid):
        out += _of_window(load(job, calendars=calendars), now_ms)
    return out


def _of_cron(e: Expression, text: str) -> Iterator[str]:
    fields = text.split()
    if len(fields) == 5:
        yield from _every_minute(e, fields)
        yield from _uneven_steps(e, fields)
        if fields[2] != "*" and fields[4] != "*" and any(day_groups(e)):
            yield f"both day fields are set, and either one is enough: it runs {days(e)}; write '*' in the one not meant"
        if "*" not in fields[2]:
            yield from _missing_days(e)
        if any(n == 5 for _, n in e.nth):
            yield "few months have a fifth one of a weekday, the others have no run; write `L` before the day for the last one"


def _every_minute(e: Expression, fields: Sequence[str]) -> Iterator[str]:
    if len(e.minutes) < 60 or len(e.hours) == 24:
        return
    each = " a day" if len(e.hours) > 1 else ""
    at = "midnight" if e.hours == (0,) else clock(e.hours[0], 0)
    fix = f"once at {at}" if len(e.hours) == 1 else "once in each of these hours"
    fixed = " ".join(["0", *fields[1:]])
    yield f"runs {60 * len(e.hours)} times{each}, {minute_words(e.hours, e.minutes)}; write `{fixed}` for {fix}"


def _uneven_steps(e: Expression, fields: Sequence[str]) -> Iterator[str]:
    """`*/40 * * * *` runs at minutes 0 and 40."""
    for field, values, size, unit in ((fields[0], e.minutes, 60, "minute"), (fields[1], e.hours, 24, "hour")):
        body, _, step = field.partition("/")
        if body != "*" or not step.isdigit() or size % int(step) == 0:
            continue
        short = size - values[-1]
        yield (
            f"`{field}` starts anew every {'hour' if unit == 'minute' else 'day'}: after {unit} {values[-1]} the next comes "
            f'in {short} {unit}{"s" if short > 1 else ""}, not {step}; write "every": "{step}{unit[0]}" for an even interval'
        )


def _missing_days(e: Expression) -> Iterator[str]:
    named = {*e.days, *e.workdays} & _LACKING.keys() if len(e.days) < 31 else set()
    lacking = [(day, [MONTHS[m - 1] for m in _LACKING[day] if m in e.months]) for day in sorted(named)]
    texts = [
        f"day {day} in {joined(months)}{' of most years' if day == 29 else ''}" for day, months in lacking if months
    ]
    if texts:
        # With a weekday set as well, L is refused.
        fix = "add a schedule with `L`" if e.weekdays else "write `L`"
        yield f"some months lack a day that is named: {joined(texts)}; {fix} for the last day of every month"
    for n in e.days_from_end:
        if n >= 28:
            yield f"`L-{n}` counts back past the first day of shorter months, which have no run then"


def _of_bounds(schedule: Schedule, spec: ScheduleSpec, now_ms: int) -> Iterator[str]:
    if spec.at is not None or schedule.next_after(now_ms - 1) is not None:
        return
    if spec.end is not None and parse_instant(spec.end) <= now_ms:
        why = f"it ended at {spec.end}"
    else:
        limits = {"end": spec.end, "max_runs": spec.max_runs, "exclude": spec.exclude, "year": spec.year}
        why = (
            f"all of them are ruled out by {joined([name for name, value in limits.items() if value] or ['the cron'])}"
        )
    yield f"has no occurrence from {format_utc(now_ms, short=True)} on: {why}; write bounds that leave one"


def _of_window(schedule: Schedule, now_ms: int) -> Iterator[str]:
    if not schedule.window_ms:
        return
    gap = min((b - a for a, b in pairwise(schedule.upcoming(now_ms, _SAMPLE))), default=None)
    if gap is not None and gap < schedule.window_ms:
        yield (
            f"the window of {format_duration(schedule.window_ms)} is longer than the {format_duration(gap)} between two "
            f"occurrences; a run always starts before the next occurrence, so write at most '{format_duration(gap)}'"
        )
