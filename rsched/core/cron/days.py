"""Cron on naive time: which seconds of an endless, zoneless calendar an expression names. Bit-sets throughout.

A second is a count since 1970-01-01T00:00:00 on some wall. There are only 14 kinds of years (leap or not, by the weekday
of January 1), so the days of an expression are at most 14 masks of 366 bits. The search is for minutes: the seconds of
an expression are the same in each of its minutes, so they are put in at the end.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from datetime import date
from typing import NamedTuple

_EPOCH = 719_163
_LAST_YEAR = 9999
_PLAIN_PARTS = 10
_LENGTHS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


class Expression(NamedTuple):
    """A cron expression as ascending lists. A day matches where any of the day parts names it (they combine by OR).

    days_from_end: 0 is the last day of the month (`L`), n the nth before it. workdays: `nW`, the weekday nearest to n;
    last_workday: `LW`. nth: (weekday, n) for `d#n`. last_weekdays: `Ld`. Weekdays are 0 (Sunday) to 6. years: none for all.
    """

    minutes: tuple[int, ...]
    hours: tuple[int, ...]
    days: tuple[int, ...]
    months: tuple[int, ...]
    weekdays: tuple[int, ...] = ()
    days_from_end: tuple[int, ...] = ()
    workdays: tuple[int, ...] = ()
    last_workday: bool = False
    nth: tuple[tuple[int, int], ...] = ()
    last_weekdays: tuple[int, ...] = ()
    seconds: tuple[int, ...] = (0,)
    years: tuple[int, ...] = ()

    @property
    def every_hour(self) -> bool:
        """An interval job: it follows elapsed time through changes of the clock."""
        return len(self.hours) == 24

    def canonical(self) -> str:
        """One text for all spellings of one meaning."""
        # Schedule ids are made from it, so what has neither seconds nor years keeps the text it always had.
        plain = self.seconds == (0,) and not self.years
        return repr(tuple(self)[:_PLAIN_PARTS] if plain else tuple(self))


def _mask(values: Iterable[int]) -> int:
    mask = 0
    for value in values:
        mask |= 1 << value
    return mask


def _lowest(mask: int) -> int:
    return (mask & -mask).bit_length() - 1


def _first_day(year: int) -> int:
    return date(year, 1, 1).toordinal() - _EPOCH


class NaiveCron:
    """Evaluates one expression. Safe to share between threads: the masks are pure, so filling one twice does no harm."""

    __slots__ = (
        "_days",
        "_earliest",
        "_expression",
        "_first_second",
        "_hours",
        "_last_second",
        "_latest",
        "_masks",
        "_minutes",
        "_per_day",
        "_per_minute",
        "_seconds",
        "_weekdays",
        "_year_set",
        "_years",
    )

    def __init__(self, expression: Expression) -> None:
        """Takes an expression that the parser made."""
        self._expression = expression
        self._minutes, self._hours = _mask(expression.minutes), _mask(expression.hours)
        self._days = _mask(expression.days) >> 1
        self._weekdays = sum(_mask(expression.weekdays) << 7 * week for week in range(6))
        self._earliest = expression.hours[0] * 60 + expression.minutes[0]
        self._latest = expression.hours[-1] * 60 + expression.minutes[-1]
        self._per_day = len(expression.hours) * len(expression.minutes)
        self._seconds, self._per_minute = _mask(expression.seconds), len(expression.seconds)
        self._first_second, self._last_second = expression.seconds[0], expression.seconds[-1]
        self._masks: list[int | None] = [None] * 14
        self._year_set: frozenset[int] | None = None
        self._years: tuple[int, ...] = ()
        if expression.years:
            self._years = tuple(year for year in expression.years if self._days_of(year, _first_day(year)))
            self._year_set = frozenset(self._years)

    def ever(self) -> bool:
        """False where its days never come, in any of its years."""
        if self._year_set is not None:
            return bool(self._years)
        return any(self._year_mask(first, leap) for leap in (True, False) for first in range(7))

    def first(self, second: int) -> int | None:
        """The first match at or after second; None where there is none up to the year 9999."""
        # The earliest minute that can hold it is the first whose last second is not over yet.
        minute = self._first_minute(-((self._last_second - second) // 60))
        if minute is None:
            return None
        at = minute * 60 + self._first_second
        return at if at >= second else second + _lowest(self._seconds >> (second - minute * 60))

    def last(self, second: int) -> int | None:
        """The last match before second; None where there is none from the year 1 on."""
        minute = self._last_minute((second - 1 - self._first_second) // 60 + 1)
        if minute is None:
            return None
        at = minute * 60 + self._last_second
        return (
            at if at < second else minute * 60 + (self._seconds & ((1 << (second - minute * 60)) - 1)).bit_length() - 1
        )

    def count(self, low: int, high: int) -> int:
        """How many matches there are from low up to, not including, high; within the years 1 to 9999."""
        if high <= low:
            return 0
        (first, before), (last, after) = divmod(low, 60), divmod(high, 60)
        whole = self._count_minutes(first, last) * self._per_minute
        return whole + self._seconds_before(last, after) - self._seconds_before(first, before)

    def _seconds_before(self, minute: int, rest: int) -> int:
        """Matches in that minute before its second rest."""
        if rest <= self._first_second or self._first_minute(minute) != minute:
            return 0
        return (self._seconds & ((1 << rest) - 1)).bit_count()

    def _first_minute(self, minute: int) -> int | None:
        day, rest = divmod(minute, 1440)
        ordinal = day + _EPOCH
        if ordinal < 1:
            day, rest, ordinal = 1 - _EPOCH, 0, 1
        if ordinal > date.max.toordinal():
            return None
        year = date.fromordinal(ordinal).year
        start = _first_day(year)
        days = self._days_of(year, start) >> (day - start)
        if days & 1:
            hour, within = divmod(rest, 60)
            if self._hours >> hour & 1 and (minutes := self._minutes >> within):
                return day * 1440 + rest + _lowest(minutes)
            if hours := self._hours >> (hour + 1):
                return day * 1440 + (hour + 1 + _lowest(hours)) * 60 + _lowest(self._minutes)
        if days := days >> 1:
            return (day + 1 + _lowest(days)) * 1440 + self._earliest
        for later in self._years_after(year):
            start = _first_day(later)
            if days := self._days_of(later, start):
                return (start + _lowest(days)) * 1440 + self._earliest
        return None

    def _last_minute(self, minute: int) -> int | None:
        day, rest = divmod(minute, 1440)
        ordinal = day + _EPOCH
        if ordinal < 1:
            return None
        if ordinal > date.max.toordinal():
            day, rest, ordinal = date.max.toordinal() - _EPOCH, 1440, date.max.toordinal()
        year = date.fromordinal(ordinal).year
        start = _first_day(year)
        days = self._days_of(year, start)
        if days >> (day - start) & 1:
            hour, within = divmod(rest, 60)
            if self._hours >> hour & 1 and (minutes := self._minutes & ((1 << within) - 1)):
                return day * 1440 + hour * 60 + minutes.bit_length() - 1
            if hours := self._hours & ((1 << hour) - 1):
                return day * 1440 + (hours.bit_length() - 1) * 60 + self._minutes.bit_length() - 1
        if days := days & ((1 << (day - start)) - 1):
            return (start + days.bit_length() - 1) * 1440 + self._latest
        for earlier in self._years_before(year):
            start = _first_day(earlier)
            if days := self._days_of(earlier, start):
                return (start + days.bit_length() - 1) * 1440 + self._latest
        return None

    def _count_minutes(self, low: int, high: int) -> int:
        (first, before), (last, after) = divmod(low, 1440), divmod(high, 1440)
        days = 0
        for year in range(date.fromordinal(first + _EPOCH).year, date.fromordinal(last + _EPOCH).year + 1):
            start = _first_day(year)
            mask = self._days_of(year, start)
            if last - start < 366:
                mask &= (1 << (last - start)) - 1
            days += (mask >> max(first - start, 0)).bit_count()
        return days * self._per_day + self._within(last, after) - self._within(first, before)

    def _years_after(self, year: int) -> Sequence[int]:
        """The years to search; the first of those that were named, for each of them has a day."""
        if self._year_set is not None:
            i = bisect_right(self._years, year)
            return self._years[i : i + 1]
        # The same kind of year comes again within 40 years, so this search is short even for the rarest day.
        return range(year + 1, min(year + 41, _LAST_YEAR + 1))

    def _years_before(self, year: int) -> Sequence[int]:
        if self._year_set is not None:
            i = bisect_left(self._years, year)
            return self._years[max(i - 1, 0) : i]
        return range(year - 1, max(year - 41, 0), -1)

    def _within(self, day: int, rest: int) -> int:
        """Matches on that day before its minute rest."""
        year = date.fromordinal(day + _EPOCH).year
        start = _first_day(year)
        if not self._days_of(year, start) >> (day - start) & 1:
            return 0
        hour, within = divmod(rest, 60)
        full = (self._hours & ((1 << hour) - 1)).bit_count() * self._minutes.bit_count()
        return full + ((self._minutes & ((1 << within) - 1)).bit_count() if self._hours >> hour & 1 else 0)

    def _days_of(self, year: int, start: int) -> int:
        if self._year_set is not None and year not in self._year_set:
            return 0
        leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
        first = (start + _EPOCH) % 7
        mask = self._masks[first + 7 * leap]
        return self._year_mask(first, leap) if mask is None else mask

    def _year_mask(self, first: int, leap: bool) -> int:
        """Bit n: the nth day (from 0) of a year whose January 1 is the weekday first."""
        mask = at = 0
        weekday = first
        months = self._expression.months
        for month, days in enumerate(_LENGTHS, 1):
            length = days + (leap and month == 2)
            if month in months:
                mask |= self._month_mask(weekday, length) << at
            at += length
            weekday = (weekday + length) % 7
        self._masks[first + 7 * leap] = mask
        return mask

    def _month_mask(self, first: int, length: int) -> int:
        e = self._expression
        mask = self._days | self._weekdays >> first
        last_weekday = (first + length - 1) % 7
        for n in e.days_from_end:
            if n < length:
                mask |= 1 << (length - 1 - n)
        for n in e.workdays:
            if n <= length:
                mask |= 1 << _workday(n - 1, weekday=(first + n - 1) % 7, length=length)
        if e.last_workday:
            mask |= 1 << _workday(length - 1, weekday=last_weekday, length=length)
        for weekday, n in e.nth:
            mask |= 1 << ((weekday - first) % 7 + 7 * (n - 1))
        for weekday in e.last_weekdays:
            mask |= 1 << (length - 1 - (last_weekday - weekday) % 7)
        return mask & ((1 << length) - 1)


def _workday(day: int, *, weekday: int, length: int) -> int:
    """The Monday to Friday nearest to day (from 0) without leaving the month."""
    if weekday == 6:
        return day - 1 if day > 0 else day + 2
    if weekday == 0:
        return day + 1 if day < length - 1 else day - 2
    return day
