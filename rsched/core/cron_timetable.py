"""When an expression fires in a zone: naive minutes, resolved through the zone's integer table.

The rule: a job whose hours are all 24 follows elapsed time, at every real occurrence, also through the repeated hour.
Any other job fires each wall slot once: in a gap at the first instant after it (the slots of one gap merge into that
run), in an overlap on the first pass. `next` is strictly after t and gives one chain from wherever it is asked.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from rsched.core.cron_days import Expression, NaiveCron
from rsched.core.instants import MAX_INSTANT_MS, MIN_INSTANT_MS
from rsched.core.zones import Zone, load_zone

_END = MAX_INSTANT_MS // 1000
_START = MIN_INSTANT_MS // 1000 + 2 * 86_400
_NEVER = 1 << 60


@dataclass(frozen=True, slots=True)
class Missed:
    """How many occurrences, and the first and last of them in ms (None where there are none)."""

    count: int
    first: int | None
    last: int | None


class Timetable:
    """The occurrences of one expression in one zone, in ms. Threads may share it: the memo is swapped as one tuple."""

    __slots__ = ("_cron", "_follows_elapsed_time", "_memo", "_zone")

    def __init__(self, expression: Expression, zone: Zone) -> None:
        self._cron = NaiveCron(expression)
        self._zone = zone
        self._follows_elapsed_time = expression.every_hour
        self._memo = (1, 0)  # low <= t < high: the answer is high

    def next_after(self, t_ms: int) -> int | None:
        """The first occurrence strictly after t_ms; None where none is left up to the year 9999."""
        low, high = self._memo
        if low <= t_ms < high:
            return high if high != _NEVER else None
        t = min(max(t_ms // 1000, _START), _END)
        at = self._next_real(t) if self._follows_elapsed_time else self._next_slot(t)
        found = at * 1000 if at is not None and at <= _END else _NEVER
        self._memo = (t_ms, found)
        return found if found != _NEVER else None

    def missed(self, low_ms: int, high_ms: int) -> Missed:
        """What lies in low_ms < t <= high_ms, counted exactly and without stepping through it."""
        first = self.next_after(low_ms)
        if first is None or first > high_ms:
            return Missed(0, None, None)
        # What is counted begins at the first occurrence, so that an ancient low_ms costs nothing.
        low, high = first // 1000 - 1, min(high_ms // 1000, _END - 2 * 86_400)
        if high <= low:
            return Missed(1, first, first)
        count, last = self._missed_real(low, high) if self._follows_elapsed_time else self._missed_slots(low, high)
        return Missed(count, first, last * 1000)

    def _next_slot(self, t: int) -> int | None:
        minute = self._cron.first(-(-self._zone.unseen_after(t) // 60))
        return None if minute is None else self._zone.instant_of(minute * 60)

    def _next_real(self, t: int) -> int | None:
        minute: int | None = None
        searched = _NEVER
        while t < _END:
            segment = self._zone.segment(t + 1)
            wall = t + 1 + segment.offset
            # Still the next match where the clock jumped neither back behind the last search nor past the match.
            if minute is None or not searched <= wall <= minute * 60:
                minute, searched = self._cron.first(-(-wall // 60)), wall
                if minute is None:
                    return None
            if minute * 60 - segment.offset < segment.end:
                return minute * 60 - segment.offset
            t = segment.end - 1
        return None

    def _missed_slots(self, low: int, high: int) -> tuple[int, int]:
        a, b = -(-self._zone.unseen_after(low) // 60), -(-self._zone.unseen_after(high) // 60)
        count = self._cron.count(a, b)
        segment = self._zone.segment(low)
        while segment.end <= high:
            segment = self._zone.segment(segment.end)
            opened = segment.start + segment.offset
            if segment.seen < opened:
                count -= max(self._cron.count(-(-segment.seen // 60), opened // 60 + 1) - 1, 0)
        last = self._cron.last(b)
        assert last is not None  # the first occurrence lies in the range
        return count, self._zone.instant_of(last * 60)

    def _missed_real(self, low: int, high: int) -> tuple[int, int]:
        count, last = 0, low
        while low < high:
            segment = self._zone.segment(low + 1)
            end = min(segment.end, high + 1)
            a, b = -(-(low + 1 + segment.offset) // 60), -(-(end + segment.offset) // 60)
            if found := self._cron.count(a, b):
                count += found
                last = (self._cron.last(b) or 0) * 60 - segment.offset
            low = end - 1
        return count, last


@lru_cache(maxsize=16_384)
def timetable(expression: Expression, zone: str) -> Timetable:
    """The one shared timetable (and memo) of all jobs with this meaning in this zone. UnknownZone."""
    return Timetable(expression, load_zone(zone))
