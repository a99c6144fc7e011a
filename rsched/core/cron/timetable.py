"""When an expression fires in a zone: naive seconds, resolved through the zone's integer table.

A zone is a row of segments of one offset each. Where the offset grows, the wall clock jumps over a *gap*, and its slots
come at no instant; where it falls, an *overlap* is on the wall for a second time. The policy has an answer for each:

* gap: `skip`: those slots do not occur. `shift`: they run at the first instant after the gap, all as one run, which is
  also that of a slot of this very instant.
* overlap: `both`: a slot fires whenever the wall shows it. `first`: only where the wall had not shown it before.

Where a part is unset, a job whose hours are all 24 follows elapsed time (skip, both: whatever the wall shows, it fires),
and any other job fires each wall slot once (shift, first). `next` is strictly after t, and gives one chain from wherever
it is asked: it depends on t alone, never on an earlier answer.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from rsched.core.cron.days import Expression, NaiveCron
from rsched.core.cron.notes import gap_note, pass_note
from rsched.core.instants import MAX_INSTANT_MS, MIN_INSTANT_MS
from rsched.core.schedule.zones import Segment, Zone, load_zone

Gap = Literal["shift", "skip"]
Overlap = Literal["first", "both"]

_END = MAX_INSTANT_MS // 1000
_START = MIN_INSTANT_MS // 1000 + 2 * 86_400
_NEVER = 1 << 60
_FARTHEST_BACK = 2 * 86_400  # no change of a zone ever put the wall back by as much


@dataclass(frozen=True, slots=True)
class Missed:
    """How many occurrences, and the first and last of them in ms (None where there are none)."""

    count: int
    first: int | None
    last: int | None


class Timetable:
    """The occurrences of one expression in one zone, in ms. Threads may share it: the memo is swapped as one tuple."""

    __slots__ = ("_cron", "_each_slot_once", "_first_pass_only", "_memo", "_shifts", "_zone")

    def __init__(
        self, expression: Expression, zone: Zone, *, gap: Gap | None = None, overlap: Overlap | None = None
    ) -> None:
        """Takes what fires, where, and what it does where the clock jumps over a slot (gap) or shows it twice (overlap)."""
        self._cron = NaiveCron(expression)
        self._zone = zone
        gap, overlap = resolve_policy(expression, gap=gap, overlap=overlap)
        self._shifts = gap == "shift"
        self._first_pass_only = overlap == "first"
        self._each_slot_once = self._shifts and self._first_pass_only
        self._memo = (1, 0)  # low <= t < high: the answer is high

    def next_after(self, t_ms: int) -> int | None:
        """The first occurrence strictly after t_ms; None where none is left up to the year 9999."""
        low, high = self._memo
        if low <= t_ms < high:
            return high if high != _NEVER else None
        t = min(max(t_ms // 1000, _START), _END)
        at = self._next_slot(t) if self._each_slot_once else self._next_shown(t)
        following = at * 1000 if at is not None and at <= _END else _NEVER
        self._memo = (t_ms, following)
        return following if following != _NEVER else None

    def missed(self, low_ms: int, high_ms: int) -> Missed:
        """What lies in low_ms < t <= high_ms, counted exactly and without stepping through it."""
        first = self.next_after(low_ms)
        if first is None or first > high_ms:
            return Missed(0, None, None)
        # What is counted begins at the first occurrence, so that an ancient low_ms costs nothing.
        low, high = first // 1000 - 1, min(high_ms // 1000, _END - 2 * 86_400)
        if high <= low:
            return Missed(1, first, first)
        count, last = self._count(low + 1, high + 1)
        return Missed(count, first, last * 1000)

    def note(self, t_ms: int) -> str | None:
        """What a change of the clock did to the occurrence at t_ms, in words; None where nothing, or for no occurrence."""
        t = t_ms // 1000
        if t_ms % 1000 or not _START <= t <= _END:
            return None
        segment = self._zone.segment(t)
        wall = t + segment.offset
        if self._shifts and t == segment.start and (slot := self._in_gap(segment)) is not None:
            last = self._cron.last(segment.opened)
            assert last is not None  # the slot lies before it
            return gap_note(
                (slot, last),
                count=self._cron.count(segment.seen, wall),
                gap=(segment.seen, wall),
                before=self._before(t),
            )
        if self._cron.first(wall) != wall:
            return None
        if wall < segment.seen:
            return None if self._first_pass_only else pass_note(wall, second=True)
        if segment.end < _END and self._zone.segment(segment.end).opened <= wall:
            return pass_note(wall, second=False)
        return None

    def _before(self, change: int) -> int:
        """What the wall would have shown at the instant of a change without it."""
        return change + self._zone.segment(change - 1).offset

    def _in_gap(self, segment: Segment) -> int | None:
        """The first slot that the wall jumped over where this segment opened."""
        if segment.seen >= segment.opened:
            return None
        slot = self._cron.first(segment.seen)
        return slot if slot is not None and slot < segment.opened else None

    def _next_slot(self, t: int) -> int | None:
        """Shift and first. The next slot that had not come by t is next, whatever the zone does until it comes.

        So no change in between has to be looked at: this is the way of nearly all jobs, and the fastest.
        """
        wall = self._cron.first(self._zone.unseen_after(t))
        return None if wall is None else self._zone.instant_of(wall)

    def _next_shown(self, t: int) -> int | None:
        """Any policy: one segment after the other, from the first wall time in it that may fire."""
        slot: int | None = None
        searched = _NEVER
        t += 1
        while t <= _END:
            segment = self._zone.segment(t)
            wall = self._begin(segment, t)
            # Still the next slot where the clock jumped neither back behind the last search nor past the slot.
            if slot is None or not searched <= wall <= slot:
                slot, searched = self._cron.first(wall), wall
                # Past the last year's last slot, only a wall that is put back may show one again.
                if slot is None and self._cron.first(wall - _FARTHEST_BACK) is None:
                    return None
            if slot is not None:
                at = max(slot - segment.offset, segment.start)  # a slot in the gap: the first instant after it
                if at < segment.end:
                    return at
            t = segment.end
        return None

    def _begin(self, segment: Segment, t: int) -> int:
        """The earliest wall time that may fire in the segment at the instant t or later, by the policy."""
        wall = t + segment.offset
        if self._shifts and t == segment.start and segment.seen < wall:
            return segment.seen  # with the gap before it
        if self._first_pass_only:
            return max(wall, segment.seen)
        return wall

    def _count(self, low: int, high: int) -> tuple[int, int]:
        """The occurrences in low <= t < high, and the last of them. Segment by segment, by the policy."""
        count = last = 0
        while low < high:
            segment = self._zone.segment(low)
            end = min(segment.end, high)
            begin, opened, closed = self._begin(segment, low), low + segment.offset, end + segment.offset
            if begin < opened:
                # The gap's slots are one run, at the recovery, and the slot of the recovery itself is that run too.
                if self._cron.count(begin, opened + 1):
                    count, last = count + 1, low
                begin = opened + 1
            if skipped := self._cron.count(begin, closed):
                count += skipped
                last = (self._cron.last(closed) or 0) - segment.offset
            low = end
        return count, last


def resolve_policy(
    expression: Expression, *, gap: Gap | None = None, overlap: Overlap | None = None
) -> tuple[Gap, Overlap]:
    """What is unset, by the hours: a set of hours and not a spelling, so that `*/15 2 * * *` is no interval job."""
    usual: tuple[Gap, Overlap] = ("skip", "both") if expression.every_hour else ("shift", "first")
    return gap or usual[0], overlap or usual[1]


def timetable(
    expression: Expression, zone: str, *, gap: Gap | None = None, overlap: Overlap | None = None
) -> Timetable:
    """The one shared timetable (and memo) of all jobs with this meaning in this zone. UnknownZone."""
    return _timetable(expression, zone, *resolve_policy(expression, gap=gap, overlap=overlap))


@lru_cache(maxsize=16_384)
def _timetable(expression: Expression, zone: str, gap: Gap, overlap: Overlap) -> Timetable:
    return Timetable(expression, load_zone(zone), gap=gap, overlap=overlap)
