"""When a cron expression must fire, by brute force: look at a clock on the wall at every real minute (or second).

Nothing is shared with the program but the zone data: the zones are the standard library's reading of it, the fields are
read and matched here, one wall time after the other. Slow, and meant to be plain enough to be believed.
"""

from __future__ import annotations

import calendar
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

EPOCH = datetime(1970, 1, 1)
CONTEXT_S = 6 * 3600  # how long a wall must have been watched to know what comes for the second time

_MONTHS = {name.upper(): n for n, name in enumerate(calendar.month_abbr) if name}
_WEEKDAYS = {"SUN": 0, "MON": 1, "TUE": 2, "WED": 3, "THU": 4, "FRI": 5, "SAT": 6}


def wall_in(zone: ZoneInfo) -> Callable[[int], datetime]:
    """What the wall shows at an instant (s)."""
    return lambda t: (EPOCH + timedelta(seconds=t)).replace(tzinfo=UTC).astimezone(zone).replace(tzinfo=None)


class Walk:
    """Each real step in low < t <= high (s) with what the wall shows, which of it came before, and what it jumped over."""

    def __init__(
        self, wall_of: Callable[[int], datetime], low: int, high: int, *, step: int = 60, context: int = CONTEXT_S
    ) -> None:
        assert low % step == 0
        self.low, self.high = low, high
        self.steps: list[tuple[int, datetime]] = []
        self.repeated: set[int] = set()
        self.jumped: dict[int, list[datetime]] = {}
        tick = timedelta(seconds=step)
        came: set[datetime] = set()
        before: datetime | None = None
        for t in range(low - context, high + 1, step):
            wall = wall_of(t)
            skipped = []
            while before is not None and (before := before + tick) < wall:
                if before not in came:
                    skipped.append(before)
            if t > low:
                self.steps.append((t, wall))
                if wall in came:
                    self.repeated.add(t)
                if skipped:
                    self.jumped[t] = skipped
            came.update(skipped)
            came.add(wall)
            before = wall

    def fired(self, expression: Matcher, *, gap: str, overlap: str) -> list[int]:
        """The instants (ms) at which the policy has the expression fire."""
        fired = {t for t, wall in self.steps if expression.matches(wall)}
        if overlap == "first":
            fired -= self.repeated
        if gap == "shift":
            fired |= {t for t, walls in self.jumped.items() if any(map(expression.matches, walls))}
        return sorted(t * 1000 for t in fired)


class Matcher:
    """An expression by its text; `H` is not read here."""

    def __init__(self, text: str, *, second: str = "0", year: str = "*") -> None:
        minute, hour, self._day, month, self._weekday = text.upper().split()
        self._seconds, self._minutes = _numbers(second, 0, 59), _numbers(minute, 0, 59)
        self._hours, self._months = _numbers(hour, 0, 23), _numbers(month, 1, 12, _MONTHS)
        self._years = _numbers(year, 1970, 9999)
        self.every_hour = len(self._hours) == 24
        self._days: dict[date, bool] = {}

    def matches(self, wall: datetime) -> bool:
        if wall.minute not in self._minutes or wall.hour not in self._hours or wall.second not in self._seconds:
            return False
        day = wall.date()
        if day not in self._days:
            self._days[day] = self._matches_day(day)
        return self._days[day]

    def _matches_day(self, day: date) -> bool:
        if day.year not in self._years or day.month not in self._months:
            return False
        of_month = any(_is_day(item, day) for item in self._day.split(","))
        of_week = any(_is_weekday(item, day) for item in self._weekday.split(","))
        if self._day != "*" and self._weekday != "*":
            return of_month or of_week
        return of_month and of_week


def _numbers(text: str, low: int, high: int, names: dict[str, int] | None = None) -> set[int]:
    def number(word: str) -> int:
        return (names or {}).get(word) or int(word)

    out: set[int] = set()
    for item in text.split(","):
        span, _, step = item.partition("/")
        first, _, last = span.partition("-")
        if span == "*":
            a, b = low, high
        elif last:
            a, b = number(first), number(last)
        else:
            a = number(first)
            b = high if step else a
        out.update(range(a, b + 1, int(step or 1)))
    return out


def _days_of_month(day: date) -> Iterator[date]:
    for n in range(1, calendar.monthrange(day.year, day.month)[1] + 1):
        yield day.replace(day=n)


def _is_day(item: str, day: date) -> bool:
    days = list(_days_of_month(day))
    working = [d for d in days if d.isoweekday() <= 5]
    if item == "LW":
        return day == working[-1]
    if item.startswith("L"):
        return day == days[-1] - timedelta(days=int(item[2:] or 0))
    if item.endswith("W"):
        n = int(item[:-1])
        return n <= len(days) and day == min(working, key=lambda d: abs(d.day - n))
    return day.day in _numbers(item, 1, 31)


def _is_weekday(item: str, day: date) -> bool:
    same = [d for d in _days_of_month(day) if d.weekday() == day.weekday()]
    if "#" in item:
        name, _, which = item.partition("#")
        return _is_weekday(name, day) and day in same[int(which) - 1 : int(which)]
    if item.startswith("L"):
        return _is_weekday(item[1:], day) and day == same[-1]
    item = item.replace("-SUN", "-7")  # the Sunday that ends the week
    for name, number in _WEEKDAYS.items():
        item = item.replace(name, str(number))
    return day.isoweekday() % 7 in {number % 7 for number in _numbers(item, 0, 7)}
