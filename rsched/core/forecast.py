"""How many runs come due in each minute to come, and what windows would make of the spikes.

Pure arithmetic over groups of jobs that share a schedule; no job is expanded by itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

MINUTE_MS = 60_000
WINDOWS_M = (1, 5, 15, 30)
SPIKES = 10


class Spike(NamedTuple):
    """A minute that stands out.

    Attributes:
        minute: Its index from the start.
        runs: Due in it.
        teams: Their runs, most first.
    """

    minute: int
    runs: float
    teams: list[tuple[str, float]]


class Forecast:
    """Runs per minute from start_ms (a whole minute) on, by team."""

    def __init__(self, start_ms: int, minutes: int) -> None:
        """Takes where it begins (ms, a whole minute) and how many minutes it has."""
        self.start_ms, self.minutes = start_ms, minutes
        self.teams: dict[str, list[float]] = {}
        # What has no window yet and could get one: what is due by the calendar or once.
        self._sharp = [0.0] * minutes

    def add(
        self, team: str, occurrences: Iterable[tuple[int, float]], *, window_ms: int = 0, movable: bool = True
    ) -> None:
        """Adds the occurrences of a group of jobs that share a schedule.

        Args:
            team: Whose jobs they are.
            occurrences: (instant in ms, how many runs).
            window_ms: Over how long each of them is spread.
            movable: A window would spread them, if they have none.
        """
        row = self.teams.setdefault(team, [0.0] * self.minutes)
        for at, runs in occurrences:
            if window_ms > MINUTE_MS:
                self._spread(row, at, runs, window_ms)
                continue
            minute = (at - self.start_ms) // MINUTE_MS
            if 0 <= minute < self.minutes:
                row[minute] += runs
                if movable:
                    self._sharp[minute] += runs

    def _spread(self, row: list[float], at: int, runs: float, window_ms: int) -> None:
        end = at + window_ms
        minute = (at - self.start_ms) // MINUTE_MS
        while (begins := self.start_ms + minute * MINUTE_MS) < end:
            part = min(end, begins + MINUTE_MS) - max(at, begins)
            if 0 <= minute < self.minutes:
                row[minute] += runs * part / window_ms
            minute += 1

    def total(self) -> list[float]:
        """Returns the runs of all teams, by minute."""
        return (
            [sum(column) for column in zip(*self.teams.values(), strict=True)] if self.teams else [0.0] * self.minutes
        )

    def spikes(self) -> list[Spike]:
        """Returns the minutes with the most runs, of those with at least twice the average."""
        total = self.total()
        average = sum(total) / max(len(total), 1)
        top = sorted(range(len(total)), key=lambda m: (-total[m], m))[:SPIKES]
        return [
            Spike(m, total[m], sorted(((t, r[m]) for t, r in self.teams.items() if r[m]), key=lambda x: (-x[1], x[0])))
            for m in top
            if total[m] > 0 and total[m] >= 2 * average
        ]

    def flattened(self) -> list[tuple[int, float]]:
        """Returns (window in minutes, the highest minute if all that is due at once were spread over such a window)."""
        total = self.total()
        fixed = [t - s for t, s in zip(total, self._sharp, strict=True)]
        return [(w, max(_smoothed(fixed, self._sharp, w), default=0.0)) for w in WINDOWS_M]


def _smoothed(fixed: Sequence[float], sharp: Sequence[float], width: int) -> list[float]:
    """fixed, plus each minute of sharp spread evenly over itself and those that follow, `width` in all."""
    out = list(fixed)
    running = 0.0
    for minute in range(len(out)):
        running += sharp[minute] - (sharp[minute - width] if minute >= width else 0.0)
        out[minute] += running / width
    return out


def interval_counts(first_ms: int, every_ms: int, until_ms: int) -> list[tuple[int, float]]:
    """Returns the occurrences of an interval as (instant ms, how many), those of one minute together.

    Args:
        first_ms: The first of them.
        every_ms: The length of the interval.
        until_ms: Before when the last of them is.
    """
    if every_ms >= MINUTE_MS:
        return [(t, 1.0) for t in range(first_ms, until_ms, every_ms)]
    out: Counter[int] = Counter()
    minute = first_ms // MINUTE_MS
    while minute * MINUTE_MS < until_ms:
        low, high = max(first_ms, minute * MINUTE_MS), min(until_ms, (minute + 1) * MINUTE_MS)
        # Those t = first + k * every with low <= t < high.
        out[minute * MINUTE_MS] += -(-(high - first_ms) // every_ms) + (first_ms - low) // every_ms
        minute += 1
    return [(t, float(n)) for t, n in out.items() if n]
