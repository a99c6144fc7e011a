"""When a schedule would run, in instants and in words."""

from __future__ import annotations

from rsched.core.answers import Occurrence, Preview
from rsched.core.instants import format_local, format_utc
from rsched.core.schedule import schedule as schedules
from rsched.core.schedule.schedule import Calendars, Draft, Schedule
from rsched.core.schedule.words import describe, warnings


def preview_of(draft: Draft, *, start: int, count: int, calendars: Calendars | None = None) -> Preview:
    """Returns the first occurrences of a schedule, described and with warnings.

    Args:
        draft: The schedule.
        start: After which instant (ms) occurrences count.
        count: How many are wanted.
        calendars: The team's holiday calendars, by name.

    Raises:
        Invalid: It names every wrong field.
    """
    resolved, schedule = schedules.resolve(draft, now_ms=start, calendars=calendars)
    # A one-off of this very moment, or one a moment ago, still runs.
    instants = [int(schedule.arg)] if schedule.kind == "o" else schedule.upcoming(start, count)
    job = draft._replace(schedule=resolved.schedule, schedules=resolved.schedules)
    told = warnings(job, now_ms=start, calendars=calendars)
    if not instants:
        told.insert(0, "there is no occurrence after `from`")
    return Preview(occurrences=[_occurrence(t, schedule) for t in instants], description=describe(job), warnings=told)


def _occurrence(at: int, schedule: Schedule) -> Occurrence:
    return Occurrence(
        utc=format_utc(at, short=at % 1000 == 0), local=format_local(at, schedule.zone), note=schedule.note(at)
    )
