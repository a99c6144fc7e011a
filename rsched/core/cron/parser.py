"""The cron parser: five fields or a macro, and seconds and years by name, strictly, to the lists of an Expression.

What other crons read differently from one another is refused with the text to write instead.
"""

from __future__ import annotations

import difflib
from functools import lru_cache
from typing import NoReturn

from rsched.core.cron.days import Expression, NaiveCron
from rsched.core.cron.fields import (
    DAY,
    HOUR,
    MINUTE,
    MONTH,
    SECOND,
    WEEKDAY,
    YEAR,
    FieldRefused,
    Kind,
    Parsed,
    parse_field,
)

__all__ = ["MAX_LENGTH", "CronError", "Expression", "parse"]

MAX_LENGTH = 200

_FIELDS = (MINUTE, HOUR, DAY, MONTH, WEEKDAY, SECOND, YEAR)
_NAMES = "minute hour day-of-month month day-of-week"
_MACROS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}


class CronError(ValueError):
    """`messages` holds one text a refused field, each with what was found and the fix."""

    def __init__(self, *messages: str) -> None:
        """Takes one text for each field that was refused."""
        super().__init__("; ".join(messages))
        self.messages = messages


def parse(
    text: str,
    *,
    second: str | int | None = None,
    year: str | int | None = None,
    team: str = "",
    name: str | None = None,
) -> Expression:
    """Reads a cron expression.

    Args:
        text: Five fields, or a macro such as @daily.
        second: The field of seconds, by default 0.
        year: The field of years, by default every year.
        team: `H` is spread by team and name, the same on every node.
        name: Of the job.

    Raises:
        CronError: It has a text for each field that cannot stand.
    """
    fields = (*_split(text), _named(SECOND, second, default="0"), _named(YEAR, year, default="*"))
    # Only H reads the owner: without it, one cached meaning serves all jobs.
    seed = f"{team}\0{name or ''}" if "H" in f"{text} {fields[5]}".upper() else ""
    return _parse(fields, seed)


@lru_cache(maxsize=16_384)
def _parse(fields: tuple[str, ...], seed: str) -> Expression:
    parsed: list[Parsed] = []
    refused: list[str] = []
    for kind, text in zip(_FIELDS, fields, strict=True):
        try:
            parsed.append(parse_field(kind, text, seed=seed))
        except FieldRefused as e:
            refused.append(str(e))
    if refused:
        raise CronError(*refused)
    day, weekday = parsed[2], parsed[4]
    if not day.star and not weekday.star:
        _check_both_days(day, weekday, fields)
    expression = _canonical(parsed)
    if not NaiveCron(expression).ever():
        _refuse_days(expression, fields)
    return expression


def _canonical(parsed: list[Parsed]) -> Expression:
    minute, hour, day, month, weekday, second, year = parsed
    # The day parts combine by OR, so a field that is `*` has to drop out where the other one is set.
    days = set() if day.star and not weekday.star else day.values
    weekdays = set() if weekday.star else weekday.values
    plain = not (day.special or weekday.special)
    if plain and (len(weekdays) == 7 or len(days) == 31):
        days, weekdays = set(range(1, 32)), set()  # every day, however it was spelt
    every_year = len(year.values) == YEAR.high - YEAR.low + 1
    return Expression(
        minutes=tuple(sorted(minute.values)),
        hours=tuple(sorted(hour.values)),
        days=tuple(sorted(days)),
        months=tuple(sorted(month.values)),
        weekdays=tuple(sorted(weekdays)),
        days_from_end=tuple(sorted(day.from_end)),
        workdays=tuple(sorted(day.workdays)),
        last_workday=day.last_workday,
        nth=tuple(sorted(weekday.nth)),
        last_weekdays=tuple(sorted(weekday.last_weekdays)),
        seconds=tuple(sorted(second.values)),
        years=() if every_year else tuple(sorted(year.values)),
    )


def _refuse_days(expression: Expression, fields: tuple[str, ...]) -> NoReturn:
    """The days never come: in any year, or in none of the years that were named."""
    if NaiveCron(expression._replace(years=())).ever():
        raise CronError(
            f"year: {fields[6]!r}: day-of-month {fields[2]!r}, month {fields[3]!r}, day-of-week {fields[4]!r} never "
            "come in it; write a year that has such a day (February 29 needs a leap year), or '*'"
        )
    raise CronError(
        f"day-of-month: {fields[2]!r} never comes in month {fields[3]!r}; "
        "write a day that one of the months has, or 'L' for its last day"
    )


def _check_both_days(day: Parsed, weekday: Parsed, fields: tuple[str, ...]) -> None:
    """Two plain day fields combine by OR; with a step over `*`, L, W or # in one of them crons disagree."""
    for kind, parsed, text in ((DAY, day, fields[2]), (WEEKDAY, weekday, fields[4])):
        if parsed.starred or parsed.special:
            what = "'*/n'" if parsed.starred else "'L', 'W' or '#'"
            other = WEEKDAY if kind is DAY else DAY
            raise CronError(
                f"{kind.name}: {text!r}: crons disagree on {what} while {other.name} is set too; write '*' in "
                f"{other.name}, or plain values in both (either one then fires), or make two jobs"
            )


def _named(kind: Kind, value: str | int | None, *, default: str) -> str:
    """The text of a field that is given by name."""
    text = default if value is None else str(value)
    if len(text) > MAX_LENGTH:
        raise CronError(f"{kind.name}: is {len(text)} characters long; write at most {MAX_LENGTH}, or a range")
    return text


def _split(text: str) -> tuple[str, ...]:
    if len(text) > MAX_LENGTH:
        raise CronError(f"is {len(text)} characters long; write at most {MAX_LENGTH}, or make several jobs")
    if not text.strip():
        raise CronError(f"is empty; write five fields ({_NAMES}), such as '0 2 * * *'")
    for c in text:
        if c != "\t" and (c.isspace() or not c.isprintable()) and c != " ":
            raise CronError(
                f"{text!r} holds {c!r}; write single ASCII spaces between the fields and nothing after them"
            )
    if text.startswith("@"):
        return _macro(text)
    fields = tuple(text.split())
    if "=" in fields[0]:
        raise CronError(f"{fields[0]!r}: a zone is not a part of the expression; write it in schedule.timezone")
    if len(fields) in (6, 7):
        raise CronError(
            f"found {len(fields)} fields, which crons read in different ways; write five ({_NAMES}), and seconds and "
            'years by name, as "second" and "year" beside "cron"'
        )
    if len(fields) != 5:
        count = "1 field" if len(fields) == 1 else f"{len(fields)} fields"
        raise CronError(f"found {count}; write five ({_NAMES}), such as '0 2 * * *'")
    return fields


def _macro(text: str) -> tuple[str, ...]:
    word = text.strip().lower()
    if word == "@reboot":
        raise CronError("'@reboot' has no time; write a one-off with 'delay': 0, or start it where the machine boots")
    if word not in _MACROS or not text.isascii():
        close = difflib.get_close_matches(word, _MACROS, n=1)
        fix = f"did you mean {close[0]!r}?" if close else f"write one of {', '.join(_MACROS)}"
        raise CronError(f"unknown macro {text.strip()[:40]!r}; {fix}")
    return tuple(_MACROS[word].split())
