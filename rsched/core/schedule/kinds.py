"""The plain kinds of schedules: one instant, an interval, a cron. Instants in ms."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Literal, Protocol
from zoneinfo import ZoneInfo

from rsched.core.cron import parser as cron
from rsched.core.cron.timetable import Missed, Timetable, resolve_policy, timetable
from rsched.core.ids import short_hash
from rsched.core.instants import MAX_INSTANT_MS
from rsched.core.schedule import zones
from rsched.core.schedule.spec import DstPolicy

_ARG_LENGTH = 16
_USUAL = DstPolicy()


class Schedule(Protocol):
    """kind and arg are what the shard keeps. Instants in ms; nothing here reads a clock.

    meaning: one text for all spellings. window_ms: how long after its occurrence a run may start (0: right then);
    end_ms: no run starts at or after it.
    """

    @property
    def kind(self) -> Literal["o", "e", "c"]:
        """`o` one instant, `e` an interval, `c` occurrences that are computed and cached."""

    @property
    def arg(self) -> str:
        """What a shard keeps of it: an instant, an interval, or the id of the schedule."""

    @property
    def meaning(self) -> str:
        """One text for all spellings."""

    @property
    def zone(self) -> ZoneInfo:
        """To show its occurrences in."""

    @property
    def window_ms(self) -> int:
        """How long after its occurrence a run may start, 0: right then."""

    @property
    def end_ms(self) -> int | None:
        """No run starts at or after this instant."""

    def next_after(self, t_ms: int) -> int | None:
        """Returns the first occurrence strictly after t_ms, or None."""

    def upcoming(self, t_ms: int, n: int) -> list[int]:
        """Returns up to n occurrences strictly after t_ms."""

    def missed(self, lo_ms: int, hi_ms: int) -> Missed:
        """Returns how many occurrences lie in lo_ms < t <= hi_ms, the first and the last of them.

        Exact, but for the count of a union past its first 100,000 occurrences: there a lower bound.
        """

    def note(self, t_ms: int) -> str | None:
        """Says what a change of the clock did to the occurrence at t_ms, in words."""


class OneOff:
    """One occurrence. arg: its instant."""

    kind: Literal["o"] = "o"
    end_ms: int | None = None

    def __init__(self, at_ms: int, *, window_ms: int = 0) -> None:
        """Takes its instant (ms)."""
        self.at_ms, self.window_ms = at_ms, window_ms
        self.arg = str(at_ms)
        self.meaning = f"at {at_ms}"
        self.zone = zones.zone_info("UTC")

    def next_after(self, t_ms: int) -> int | None:
        """Returns its instant where that is after t_ms."""
        return self.at_ms if t_ms < self.at_ms else None

    def upcoming(self, t_ms: int, n: int) -> list[int]:
        """Returns its instant where that is after t_ms."""
        return [self.at_ms] if t_ms < self.at_ms and n > 0 else []

    def missed(self, lo_ms: int, hi_ms: int) -> Missed:
        """Counts it where lo_ms < t <= hi_ms."""
        return Missed(1, self.at_ms, self.at_ms) if lo_ms < self.at_ms <= hi_ms else Missed(0, None, None)

    def note(self, t_ms: int) -> str | None:
        """No change of the clock does anything to an instant."""
        return None


class Interval:
    """anchor + k * every for every whole k, elapsed time; the anchor sets the phase, not the start."""

    kind: Literal["e"] = "e"
    end_ms: int | None = None

    def __init__(self, *, anchor_ms: int, every_ms: int, window_ms: int = 0) -> None:
        """Takes an instant (ms) that it counts from, and its length (ms)."""
        self.anchor_ms, self.every_ms, self.window_ms = anchor_ms, every_ms, window_ms
        self.arg = f"{anchor_ms},{every_ms}"
        self.meaning = f"every {every_ms} from {anchor_ms % every_ms}"
        self.zone = zones.zone_info("UTC")

    def next_after(self, t_ms: int) -> int | None:
        """Returns the first occurrence strictly after t_ms, or None."""
        at = self.anchor_ms + ((t_ms - self.anchor_ms) // self.every_ms + 1) * self.every_ms
        return at if at <= MAX_INSTANT_MS else None

    def upcoming(self, t_ms: int, n: int) -> list[int]:
        """Returns up to n occurrences strictly after t_ms."""
        return first_of(self.next_after, t_ms, n)

    def missed(self, lo_ms: int, hi_ms: int) -> Missed:
        """Counts the occurrences in lo_ms < t <= hi_ms, without stepping."""
        first = self.next_after(lo_ms)
        hi_ms = min(hi_ms, MAX_INSTANT_MS)
        if first is None or first > hi_ms:
            return Missed(0, None, None)
        more = (hi_ms - first) // self.every_ms
        return Missed(more + 1, first, first + more * self.every_ms)

    def note(self, t_ms: int) -> str | None:
        """No change of the clock does anything to elapsed time."""
        return None


class Cron:
    """A cron expression in a zone. arg: the schedule id, which all jobs of this meaning and these zone rules share."""

    kind: Literal["c"] = "c"
    end_ms: int | None = None

    def __init__(
        self, expression: cron.Expression, *, zone_name: str, dst: DstPolicy = _USUAL, window_ms: int = 0
    ) -> None:
        """Takes an expression, the zone that it goes by, and what it does where the clocks change."""
        self.expression, self.window_ms = expression, window_ms
        self.zone = zones.zone_info(zone_name)
        gap, overlap = resolve_policy(expression, gap=dst.gap, overlap=dst.overlap)
        # By the zone's rules and not by its name or the release: new tzdata moves the jobs that it affects and no others.
        self.meaning = f"cron {expression.canonical()} {zones.zone_digest(zone_name)} {gap} {overlap}"
        self.arg = calendar_arg(self.meaning)
        self._timetable: Timetable = timetable(expression, zone_name, gap=gap, overlap=overlap)

    def next_after(self, t_ms: int) -> int | None:
        """Returns the first occurrence strictly after t_ms, or None."""
        return self._timetable.next_after(t_ms)

    def upcoming(self, t_ms: int, n: int) -> list[int]:
        """Returns up to n occurrences strictly after t_ms."""
        return first_of(self._timetable.next_after, t_ms, n)

    def missed(self, lo_ms: int, hi_ms: int) -> Missed:
        """Counts the occurrences in lo_ms < t <= hi_ms, without stepping."""
        return self._timetable.missed(lo_ms, hi_ms)

    def note(self, t_ms: int) -> str | None:
        """Says what a change of the clock did to the occurrence at t_ms."""
        return self._timetable.note(t_ms)


def calendar_arg(meaning: str) -> str:
    """Returns the id of the schedule, by which a shard knows the cached occurrences of all jobs of this meaning."""
    return short_hash(meaning, _ARG_LENGTH)


def stepped(next_after: Callable[[int], int | None], t_ms: int) -> Iterator[int]:
    """Yields all occurrences after t_ms, one by one."""
    while (at := next_after(t_ms)) is not None:
        yield at
        t_ms = at


def first_of(next_after: Callable[[int], int | None], t_ms: int, n: int) -> list[int]:
    """Returns the first n occurrences after t_ms, or as many as there are."""
    return list(islice(stepped(next_after, t_ms), max(n, 0)))
