"""A schedule whose text has been read: values in ms and tables, which cannot be invalid. Only schedule/parse.py makes them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from rsched.core.cron.days import Expression
from rsched.core.schedule.spec import DstPolicy, ScheduleSpec


class Once(NamedTuple):
    """One occurrence, at an instant (ms)."""

    at_ms: int


class After(NamedTuple):
    """One occurrence, so long (ms) after the job is created or replaced."""

    delay_ms: int


class Every(NamedTuple):
    """An interval (ms) and an instant (ms) that it counts from; None: its start, or the creation."""

    every_ms: int
    anchor_ms: int | None


class ByCron(NamedTuple):
    """The meaning of a cron expression, and what it does where the clocks change."""

    expression: Expression
    dst: DstPolicy


Rule = Once | After | Every | ByCron


@dataclass(frozen=True, kw_only=True, eq=False, slots=True)
class ParsedSchedule:
    """One schedule, as it was found to be right.

    Attributes:
        spec: The text that it was read from.
        rule: When it has occurrences.
        zone_name: The zone that cron and exclude go by; tzdata has it.
        start_ms: The first instant (ms) that may be an occurrence.
        end_ms: The first instant (ms) that may not.
        max_runs: The first so many from the start.
        window_ms: How long (ms) after its occurrence a run may start, 0: right then.
    """

    spec: ScheduleSpec
    rule: Rule
    zone_name: str = "UTC"
    start_ms: int | None = None
    end_ms: int | None = None
    max_runs: int | None = None
    window_ms: int = 0

    @property
    def bounded(self) -> bool:
        """Whether it leaves out occurrences of its rule."""
        return not (self.start_ms is self.end_ms is self.max_runs is None) or bool(self.spec.exclude)


class ParsedSchedules(NamedTuple):
    """The schedule or schedules of a job: single, or one or more entries whose union counts."""

    single: ParsedSchedule | None
    entries: tuple[ParsedSchedule, ...] = ()
