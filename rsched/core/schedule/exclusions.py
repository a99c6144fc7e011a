"""Days on which a schedule has no occurrence: dates, date ranges and calendars of a team, as instants of a zone."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date
from functools import lru_cache

from rsched.core.errors import FieldError
from rsched.core.ids import SLUG
from rsched.core.instants import MAX_INSTANT_MS, MIN_INSTANT_MS
from rsched.core.schedule.zones import Zone

MAX_ENTRIES = 1000

Calendars = Mapping[str, Sequence[str]]  # of one team: name -> dates and date ranges, as ScheduleSpec.exclude has them

_DAY_S = 86_400
_EDGE_S = 2 * _DAY_S  # more than any offset of any zone: what is further inside a range is out in every zone
_EPOCH = 719_163
_DATE = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})", re.ASCII)
_FIX = "write a date as '2026-12-25', or a range as '2026-12-24/2027-01-02' (both ends included)"


class Spans:
    """Excluded instants: ascending, disjoint stretches of low <= t < high (ms)."""

    __slots__ = ("_highs", "_lows")

    def __init__(self, spans: Iterable[tuple[int, int]]) -> None:
        """Takes stretches (ms) in any order; those that touch become one."""
        self._lows: list[int] = []
        self._highs: list[int] = []
        for low, high in sorted(spans):
            if self._highs and low <= self._highs[-1]:
                self._highs[-1] = max(self._highs[-1], high)
            elif low < high:
                self._lows.append(low)
                self._highs.append(high)

    def __bool__(self) -> bool:
        """Whether anything is excluded."""
        return bool(self._lows)

    def text(self) -> str:
        """Returns a text that is the same for all spellings of the same instants."""
        return repr(list(zip(self._lows, self._highs, strict=True)))

    def end_of(self, t: int) -> int | None:
        """Returns the first instant after the excluded stretch that holds t; None where t is not excluded."""
        i = bisect_right(self._lows, t) - 1
        return self._highs[i] if i >= 0 and t < self._highs[i] else None

    def gaps(self, low: int, high: int) -> Iterator[tuple[int, int]]:
        """Yields what of low < t <= high is not excluded, as stretches of the same kind."""
        for i in range(max(bisect_right(self._lows, low) - 1, 0), len(self._lows)):
            if self._lows[i] > high:
                break
            if low < self._lows[i] - 1:
                yield low, self._lows[i] - 1
            low = max(low, self._highs[i] - 1)
        if low < high:
            yield low, high


def entries_of(exclude: Sequence[str] | str) -> list[str]:
    """Returns the entries as a list: one may be written without; what is there twice counts once."""
    return list(dict.fromkeys([exclude] if isinstance(exclude, str) else exclude))


def names_in(exclude: Sequence[str] | str) -> frozenset[str]:
    """Returns the entries that are names of the team's holiday calendars."""
    return frozenset(e for e in entries_of(exclude) if is_name(e))


def check_exclude(exclude: Sequence[str] | str, field: str) -> Iterator[FieldError]:
    """Yields what of a schedule's `exclude` cannot stand; whether a calendar exists is not asked here."""
    yield from _check(exclude, field, named=True)


def check_calendar(entries: Sequence[str], field: str) -> Iterator[FieldError]:
    """Yields what of a team's holiday calendar cannot stand: it holds dates and date ranges alone."""
    yield from _check(entries, field, named=False)


def _check(entries: Sequence[str] | str, field: str, *, named: bool) -> Iterator[FieldError]:
    listed = (entries,) if isinstance(entries, str) else tuple(entries)
    if len(listed) > MAX_ENTRIES:
        yield FieldError(field, f"has {len(listed)} entries; keep to {MAX_ENTRIES}, or write neighbours as ranges")
        return
    for i, message in _wrong(listed, named=named):
        yield FieldError(field if isinstance(entries, str) else f"{field}[{i}]", message)


@lru_cache(maxsize=256)
def _wrong(entries: tuple[str, ...], *, named: bool) -> tuple[tuple[int, str], ...]:
    out = []
    for i, entry in enumerate(entries):
        try:
            if not (named and is_name(entry)):
                _days(entry, named=named)
        except ValueError as error:
            out.append((i, str(error)))
    return tuple(out)


def opened(exclude: Sequence[str] | str, calendars: Calendars | None) -> tuple[str, ...]:
    """Returns the dates and ranges of `exclude`, those of its calendars included.

    Raises:
        ValueError: It names a calendar that there is none of.
    """
    days, names = _apart((exclude,) if isinstance(exclude, str) else tuple(exclude))
    for name in names:
        if calendars is None or name not in calendars:
            raise ValueError(
                f"the team has no calendar {name!r}; create it with PUT /v1/teams/{{team}}/calendars/{name}, or take it out"
            )
        days += tuple(calendars[name])
    return days


@lru_cache(maxsize=256)
def _apart(entries: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Dates and ranges, and names of calendars. Long lists are read at each load of their jobs, hence the cache."""
    return tuple(e for e in entries if not is_name(e)), tuple(e for e in entries if is_name(e))


def spans_of(entries: Iterable[str], zone: Zone) -> Spans:
    """Returns the excluded instants of dates and ranges in a zone.

    Raises:
        ValueError: It names an entry that is neither.
    """
    days = merged(_days(entry, named=False) for entry in entries)
    return Spans(span for low, high in days for span in _instants(low * _DAY_S, high * _DAY_S, zone))


def merged(days: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Returns the same days as ascending ranges that do not touch. Days since 1970; the end of a range is not part of it."""
    out: list[tuple[int, int]] = []
    for low, high in sorted(days):
        if out and low <= out[-1][1]:
            out[-1] = (out[-1][0], max(out[-1][1], high))
        else:
            out.append((low, high))
    return out


def is_name(entry: str) -> bool:
    """Returns whether an entry of `exclude` is the name of a calendar, as a calendar may have."""
    # A slip in a date must not become the name of a calendar.
    return SLUG.fullmatch(entry) is not None and not entry.replace("-", "").replace("_", "").isdigit()


def _days(entry: str, *, named: bool = True) -> tuple[int, int]:
    """Days since 1970 of a date or a range: low <= day < high. ValueError with the fix."""
    first, slash, last = entry.partition("/")
    low = _day(entry, first, named=named)
    high = _day(entry, last, named=named) if slash else low
    if high < low:
        raise ValueError(f"{entry!r}: the range runs backwards; write '{last}/{first}'")
    return low, high + 1


def _day(entry: str, text: str, *, named: bool) -> int:
    m = _DATE.fullmatch(text)
    if m is None:
        more = ", or the name of a calendar of the team" if named else ""
        raise ValueError(f"{entry[:60]!r} is not a date; {_FIX}{more}")
    try:
        return date(int(m[1]), int(m[2]), int(m[3])).toordinal() - _EPOCH
    except ValueError as error:
        raise ValueError(f"{entry[:60]!r}: {error}; write a date that exists") from None


def _instants(low: int, high: int, zone: Zone) -> Iterator[tuple[int, int]]:
    """When the wall shows low <= wall < high (s): also where a day comes back for an hour after its end."""
    inner = low + _EDGE_S, high - _EDGE_S
    if inner[0] >= inner[1]:
        yield from _shown(low - _EDGE_S, high + _EDGE_S, low=low, high=high, zone=zone)
        return
    yield from _shown(low - _EDGE_S, inner[0], low=low, high=high, zone=zone)
    yield _ms(inner[0]), _ms(inner[1])
    yield from _shown(inner[1], high + _EDGE_S, low=low, high=high, zone=zone)


def _shown(begin: int, end: int, *, low: int, high: int, zone: Zone) -> Iterator[tuple[int, int]]:
    while begin < end:
        segment = zone.segment(begin)
        stop = min(segment.end, end)
        span = max(begin, low - segment.offset), min(stop, high - segment.offset)
        if span[0] < span[1]:
            yield _ms(span[0]), _ms(span[1])
        begin = stop


def _ms(t: int) -> int:
    return min(max(t * 1000, MIN_INSTANT_MS), MAX_INSTANT_MS + 1)
