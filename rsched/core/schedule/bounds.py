"""Schedules made of plain ones: within bounds, without what is excluded, several as one.

Instants in ms. Every search is bounded: exclusions are jumped over one stretch at a time, and counted without stepping.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from functools import cached_property
from itertools import pairwise, takewhile
from typing import Literal
from zoneinfo import ZoneInfo

from rsched.core.cron.timetable import Missed
from rsched.core.instants import MAX_INSTANT_MS, MIN_INSTANT_MS
from rsched.core.schedule.exclusions import Spans
from rsched.core.schedule.kinds import Cron, Interval, Schedule, calendar_arg, first_of, stepped

MAX_MERGED = 100_000

_PROBE_MS = 3_600_000


class Bounded:
    """A cron or an interval from start up to, not including, end; the first max_runs of them; without what is excluded."""

    kind: Literal["c"] = "c"

    def __init__(
        self,
        rule: Cron | Interval,
        *,
        zone: ZoneInfo,
        start_ms: int | None,
        end_ms: int | None,
        max_runs: int | None,
        excluded: Spans,
        window_ms: int = 0,
    ) -> None:
        """Takes the rule and its bounds.

        Args:
            rule: What has the occurrences.
            zone: To show them in.
            start_ms: The first instant that may be one.
            end_ms: The first instant that may not.
            max_runs: The first so many from the start.
            excluded: The instants that are left out.
            window_ms: How long after its occurrence a run may start.
        """
        self.rule, self.zone, self.end_ms, self.window_ms = rule, zone, end_ms, window_ms
        self._excluded = excluded
        self._low = MIN_INSTANT_MS - 1 if start_ms is None else start_ms - 1
        self._high = MAX_INSTANT_MS if end_ms is None else end_ms - 1
        self.meaning = f"{rule.meaning} from {start_ms} to {end_ms} times {max_runs} but {excluded.text()}"
        if max_runs is not None:
            self._high = self._nth(max_runs)

    @cached_property
    def arg(self) -> str:
        """The id of the schedule."""
        return calendar_arg(self.meaning)

    def next_after(self, t_ms: int) -> int | None:
        """Returns the first occurrence strictly after t_ms, or None."""
        t_ms = max(t_ms, self._low)
        while (at := self.rule.next_after(t_ms)) is not None and at <= self._high:
            end = self._excluded.end_of(at)
            if end is None:
                return at
            t_ms = end - 1
        return None

    def upcoming(self, t_ms: int, n: int) -> list[int]:
        """Returns up to n occurrences strictly after t_ms."""
        return first_of(self.next_after, t_ms, n)

    def missed(self, lo_ms: int, hi_ms: int) -> Missed:
        """Counts the occurrences in lo_ms < t <= hi_ms."""
        count, first, last = 0, None, None
        for low, high in self._excluded.gaps(max(lo_ms, self._low), min(hi_ms, self._high)):
            if (missed := self.rule.missed(low, high)).count:
                count, last = count + missed.count, missed.last
                first = missed.first if first is None else first
        return Missed(count, first, last)

    def note(self, t_ms: int) -> str | None:
        """Says what a change of the clock did to the occurrence at t_ms."""
        return self.rule.note(t_ms)

    def _nth(self, n: int) -> int:
        """The instant of the nth occurrence from the start; the last bound where there are fewer."""
        for low, end in self._excluded.gaps(self._low, self._high):
            # Counted in ever longer stretches, so that the work follows the distance and not the bound of the years.
            step = _PROBE_MS
            while low < end:
                high = min(low + step, end)
                count = self.rule.missed(low, high).count
                if count >= n:
                    return self._nth_within(low, high, n)
                n, low, step = n - count, high, step * 2
        return self._high

    def _nth_within(self, low: int, high: int, n: int) -> int:
        while high - low > 1:
            middle = (low + high) // 2
            count = self.rule.missed(low, middle).count
            if count >= n:
                high = middle
            else:
                n, low = n - count, middle
        return high


class Union:
    """All occurrences of several schedules; two of one instant are one."""

    kind: Literal["c"] = "c"

    def __init__(self, parts: Sequence[Schedule]) -> None:
        """Takes the schedules, all with the window of the job."""
        self.parts = parts
        self.window_ms = parts[0].window_ms  # all parts have the job's
        self.zone = next((part.zone for part in parts if part.zone.key != "UTC"), parts[0].zone)
        ends = [part.end_ms for part in parts]
        self.end_ms = None if None in ends else max(end for end in ends if end is not None)
        self.meaning = " and ".join(sorted(part.meaning for part in parts))
        self.arg = calendar_arg(f"union {self.meaning}")

    def next_after(self, t_ms: int) -> int | None:
        """Returns the first occurrence strictly after t_ms, or None."""
        return min((at for part in self.parts if (at := part.next_after(t_ms)) is not None), default=None)

    def upcoming(self, t_ms: int, n: int) -> list[int]:
        """Returns up to n occurrences strictly after t_ms."""
        return first_of(self.next_after, t_ms, n)

    def missed(self, lo_ms: int, hi_ms: int) -> Missed:
        """Counts the occurrences in lo_ms < t <= hi_ms; past the first 100,000 the count is a lower bound."""
        by_part = [m for part in self.parts if (m := part.missed(lo_ms, hi_ms)).count]
        if not by_part:
            return Missed(0, None, None)
        first = min(m.first for m in by_part if m.first is not None)
        last = max(m.last for m in by_part if m.last is not None)
        if len(by_part) == 1:
            return Missed(by_part[0].count, first, last)
        count, at = self._merged(lo_ms, hi_ms)
        if count > MAX_MERGED:
            count += max(part.missed(at, hi_ms).count for part in self.parts)
        return Missed(count, first, last)

    def note(self, t_ms: int) -> str | None:
        """Says what a change of the clock did to the occurrence at t_ms."""
        notes = (part.note(t_ms) for part in self.parts if part.next_after(t_ms - 1) == t_ms)
        return next((note for note in notes if note is not None), None)

    def _merged(self, lo_ms: int, hi_ms: int) -> tuple[int, int]:
        """How many instants there are, up to one more than the limit, and the last of them that was counted."""
        streams = [takewhile(hi_ms.__ge__, stepped(part.next_after, lo_ms)) for part in self.parts]
        count, last = 0, lo_ms
        for before, at in pairwise(heapq.merge([lo_ms], *streams)):
            if at != before:
                count, last = count + 1, at
                if count > MAX_MERGED:
                    break
        return count, last
