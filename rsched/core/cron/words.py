"""A cron expression in plain words, from its meaning and not from its spelling."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from rsched.core.cron.days import Expression

MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December",
)  # fmt: skip
WEEKDAYS = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")

_LISTED = 6  # so many times of day are still read out one by one
_WORKDAY = "weekday (Monday to Friday)"


def in_words(expression: Expression) -> str:
    """Returns the expression as words, such as "at 02:00 on the last day of every month"."""
    return " ".join(filter(None, (_times(expression), days(expression), _years(expression))))


def joined(words: Sequence[str], last: str = "and") -> str:
    """Returns words as a list in a sentence, such as `a, b and c`."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} {last} {words[-1]}"


def ordinal(n: int) -> str:
    """Returns `1st`, `2nd` and so on."""
    ending = "th" if n % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(n % 10, "th")
    return f"{n}{ending}"


def clock(hour: int, minute: int) -> str:
    """Returns a time of day, such as `02:00`."""
    return f"{hour:02}:{minute:02}"


def runs_of(values: Sequence[int], least: int = 3) -> list[tuple[int, int]]:
    """Returns ascending values as (first, last): neighbours in one pair where there are `least` or more of them."""
    out: list[tuple[int, int]] = []
    for value in values:
        if out and value == out[-1][1] + 1:
            out[-1] = (out[-1][0], value)
        else:
            out.append((value, value))
    return [pair for a, b in out for pair in ([(a, b)] if b - a + 1 >= least else [(v, v) for v in range(a, b + 1)])]


def _step(values: Sequence[int]) -> int | None:
    """The distance where three or more values are evenly spaced."""
    steps = {b - a for a, b in pairwise(values)}
    return steps.pop() if len(values) > 2 and len(steps) == 1 else None


def _ranges(values: Sequence[int]) -> list[str]:
    return [str(a) if a == b else f"{a} to {b}" for a, b in runs_of(values)]


def _times(e: Expression) -> str:
    if e.seconds == (0,):
        return minute_words(e.hours, e.minutes)
    if len(e.hours) * len(e.minutes) * len(e.seconds) <= _LISTED:
        return f"at {joined([f'{clock(h, m)}:{s:02}' for h in e.hours for m in e.minutes for s in e.seconds])}"
    seconds = _unit(e.seconds, unit="second", outer="minute")
    if len(e.hours) == 24 and len(e.minutes) == 60:
        return seconds
    if len(e.hours) * len(e.minutes) == 1:
        return f"{seconds.removesuffix(' past every minute')} in the minute that begins at {clock(e.hours[0], e.minutes[0])}"
    return f"{seconds.removesuffix(' past every minute')} in each of these minutes: {minute_words(e.hours, e.minutes)}"


def _unit(values: Sequence[int], *, unit: str, outer: str) -> str:
    """The minutes of every hour, or the seconds of every minute."""
    step = _step(values)
    if len(values) == 60:
        return f"every {unit}"
    if step is not None and step * len(values) == 60:
        return f"every {step} {unit}s" + (f" from {unit} {values[0]} past every {outer}" if values[0] else "")
    if values == (0,) and outer == "hour":
        return "every hour, on the hour"
    if step == 1 or (step is not None and len(values) > _LISTED):
        every = unit if step == 1 else f"{step} {unit}s"
        return f"every {every} from {unit} {values[0]} to {unit} {values[-1]} past every {outer}"
    return f"at {unit}{'s' if len(values) > 1 else ''} {joined(_ranges(values))} past every {outer}"


def minute_words(hours: Sequence[int], minutes: Sequence[int]) -> str:
    """When in a day; nothing is said of the days."""
    if len(hours) == 24:
        return _unit(minutes, unit="minute", outer="hour")
    if len(hours) * len(minutes) == 1:
        return f"at {clock(hours[0], minutes[0])}"
    step, hourly = _step(minutes), _step(hours)
    if step is not None and step * len(minutes) == 60:
        # Evenly through its hours: neighbouring hours make one stretch.
        what = "every minute" if step == 1 else f"every {step} minutes"
        if hourly is not None and hourly > 1 and len(hours) > 3:
            past = f" from minute {minutes[0]} on" if minutes[0] else ""
            return f"{what}{past} in every {ordinal(hourly)} hour from {hours[0]:02} to {hours[-1]:02} o'clock"
        spans = [f"from {clock(a, minutes[0])} to {clock(b, minutes[-1])}" for a, b in runs_of(hours, 2)]
        return f"{what} {joined(spans)}"
    if len(minutes) == 1 and hourly is not None:
        what = "every hour" if hourly == 1 else f"every {hourly} hours"
        return f"{what} from {clock(hours[0], minutes[0])} to {clock(hours[-1], minutes[0])}"
    if len(hours) == 1 and step is not None:
        what = "every minute" if step == 1 else f"every {step} minutes"
        return f"{what} from {clock(hours[0], minutes[0])} to {clock(hours[0], minutes[-1])}"
    if len(hours) * len(minutes) <= _LISTED:
        return f"at {joined([clock(h, m) for h in hours for m in minutes])}"
    some = _unit(minutes, unit="minute", outer="hour").removesuffix(" past every hour").replace(
        "every hour, on the hour", "at minute 0"
    )  # fmt: skip
    if hourly is not None:
        each = "every hour" if hourly == 1 else f"every {ordinal(hourly)} hour"
        return f"{some} past {each} from {hours[0]:02} to {hours[-1]:02} o'clock"
    listed = [f"{a:02}" if a == b else f"{a:02} to {b:02}" for a, b in runs_of(hours)]
    return f"{some} past {joined(listed)} o'clock"


def days(e: Expression) -> str:
    """Such as "on day 13 of the month or on Friday"; nothing where every day is understood."""
    monthly, weekly, either = day_groups(e)
    months = e.months if len(e.months) < 12 else ()
    if not (monthly or weekly or either):
        return _months(months) if len(e.hours) == 24 else f"every day {_months(months)}".rstrip()
    if weekly and not monthly and not either:
        return f"on {joined(weekly)} {_months(months)}".rstrip()
    groups = [group for group in (monthly, either, weekly) if group]
    if len(groups) == 1:
        within = "every month" if not months else joined([MONTHS[m - 1] for m in months])
        within = f"every month {_months(months)}" if _is_stretch(months) else within
        return f"on {joined(groups[0])} of {within}"
    parts = [f"on {joined(group)}{'' if group is weekly else ' of the month'}" for group in groups]
    return joined(parts, "or") + (f", {_months(months)}" if months else "")


def _is_stretch(months: Sequence[int]) -> bool:
    return len(runs_of(months)) == 1 < len(months)


def _months(months: Sequence[int]) -> str:
    """Nothing where there are none, which is to say all."""
    names = [MONTHS[a - 1] if a == b else f"{MONTHS[a - 1]} to {MONTHS[b - 1]}" for a, b in runs_of(months)]
    return f"{'from' if _is_stretch(months) else 'in'} {joined(names)}" if names else ""


def day_groups(e: Expression) -> tuple[list[str], list[str], list[str]]:
    """What the day parts name: days counted in the month, weekdays, and weekdays counted in the month. Empty: every day."""
    if len(e.days) == 31 or len(e.weekdays) == 7:
        return [], [], []  # whatever else is named as well
    monthly: list[str] = []
    step = _step(e.days) or 1
    if step > 1 and len(e.days) > _LISTED:
        monthly.append(f"every {ordinal(step)} day from day {e.days[0]} to day {e.days[-1]}")
    elif e.days:
        monthly.append(f"day{'s' if len(e.days) > 1 else ''} {joined(_ranges(e.days))}")
    monthly += ["the last day" if n == 0 else f"the {ordinal(n)} day before the last" for n in e.days_from_end]
    monthly += [f"the {_WORKDAY} nearest to day {n}" for n in e.workdays]
    if e.last_workday:
        monthly.append(f"the last {_WORKDAY}")
    # The week is read from Monday on.
    order = sorted(d or 7 for d in e.weekdays)
    weekly = [f"{_weekday(a)} to {_weekday(b)}" if a != b else _weekday(a) for a, b in runs_of(order)]
    counted = [f"the {ordinal(n)} {_weekday(d)}" for d, n in e.nth]
    counted += [f"the last {_weekday(d)}" for d in e.last_weekdays]
    return monthly, weekly, counted


def _weekday(d: int) -> str:
    return WEEKDAYS[d % 7]


def _years(e: Expression) -> str:
    if not e.years:
        return ""
    spans = runs_of(e.years)
    if len(spans) == 1 and len(e.years) > 1:
        return f"from {spans[0][0]} to {spans[0][1]}"
    return f"in {joined([str(a) if a == b else f'{a} to {b}' for a, b in spans])}"
