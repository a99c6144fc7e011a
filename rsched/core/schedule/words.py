"""A job's schedule as one sentence in plain words."""

from __future__ import annotations

from collections.abc import Sequence

from rsched.core.cron.words import in_words, joined
from rsched.core.durations import Duration, parse_duration
from rsched.core.instants import format_utc, parse_instant
from rsched.core.schedule.exclusions import entries_of, names_in
from rsched.core.schedule.parse import parse_cron
from rsched.core.schedule.schedule import Draft, Scheduled
from rsched.core.schedule.spec import ScheduleSpec
from rsched.core.schedule.warnings import warnings

__all__ = ["describe", "duration_words", "warnings"]

_UNITS = (("week", 604_800_000), ("day", 86_400_000), ("hour", 3_600_000), ("minute", 60_000), ("second", 1000))
_LISTED = 5
_GAP = {"skip": "left out", "shift": "made up for right after it"}
_OVERLAP = {"first": "the first time only", "both": "both times"}


def describe(job: Scheduled | ScheduleSpec | Sequence[ScheduleSpec]) -> str:
    """Returns a sentence such as "at 02:00 every day, in Asia/Kolkata"; several schedules are joined with "; and ".

    For a schedule that resolve() accepts, resolved or not. H is read for the job's team and name, so give the job.
    """
    owner = _job(job)
    specs = list(owner.schedules) if owner.schedule is None else [owner.schedule]
    window = next((spec.window for spec in specs if spec.window is not None), None)
    ending = ""
    if window is not None:
        each = ", each run" if len(specs) == 1 else "; each run"
        ending = f"{each} starting at a fixed point of the {_within(window)} after its time"
    return "; and ".join(_one(spec, owner) for spec in specs) + ending


def duration_words(value: Duration) -> str:
    """In the largest unit that it is a whole number of: "90 seconds", "2 hours"."""
    ms = parse_duration(value)
    for unit, size in _UNITS:
        if ms % size == 0 and ms >= size:
            return f"{ms // size} {unit}{'s' if ms != size else ''}"
    return f"{ms / 1000:.15g} seconds"


def _job(job: Scheduled | ScheduleSpec | Sequence[ScheduleSpec]) -> Scheduled:
    if isinstance(job, ScheduleSpec):
        return Draft(job)
    if isinstance(job, Draft) or not isinstance(job, Sequence):
        return job
    return Draft(None, job)


def _one(spec: ScheduleSpec, job: Scheduled) -> str:
    parts = [_rule(spec, job)]
    if spec.exclude:
        parts.append(_exclusions(spec))
    if spec.start is not None and not (spec.every is not None and spec.anchor in (None, spec.start)):
        parts.append(f"from {_instant(spec.start)} on")
    if spec.end is not None:
        parts.append(f"before {_instant(spec.end)}")
    if spec.max_runs is not None:
        parts.append(f"{spec.max_runs} times at most" if spec.max_runs > 1 else "once at most")
    if spec.dst is not None and spec.dst.gap is not None:
        parts.append(f"with what the clock jumps over {_GAP[spec.dst.gap]}")
    if spec.dst is not None and spec.dst.overlap is not None:
        parts.append(f"with a time that comes twice run {_OVERLAP[spec.dst.overlap]}")
    return ", ".join(parts)


def _rule(spec: ScheduleSpec, job: Scheduled) -> str:
    if spec.cron is not None:
        return f"{in_words(parse_cron(spec, team=job.team, name=job.name))}, in {spec.timezone or 'UTC'}"
    if spec.every is not None:
        every = f"every {_within(spec.every)}"
        if spec.start is not None and spec.anchor not in (None, spec.start):
            return f"{every} as counted from {_instant(spec.anchor or '')}"
        if spec.start is not None:
            return f"{every} from {_instant(spec.start)} on"
        return f"{every} from {_instant(spec.anchor)}" if spec.anchor else f"{every} from its creation"
    if spec.at is not None:
        return f"once at {_instant(spec.at)}"
    if parse_duration(spec.delay or 0) == 0:
        return "once, as soon as it is created"
    return f"once, {duration_words(spec.delay or 0)} after its creation"


def _within(value: Duration) -> str:
    """What stands after "every" and "the": "hour" for one hour, else "2 hours"."""
    words = duration_words(value)
    return words.removeprefix("1 ") if words.startswith("1 ") else words


def _exclusions(spec: ScheduleSpec) -> str:
    names = names_in(spec.exclude)
    entries = [e for e in entries_of(spec.exclude) if e not in names]
    parts = [" to ".join(e.split("/")) for e in entries]
    if len(parts) > _LISTED:
        parts = [f"{len(parts)} dates and ranges"]
    calendars = [e for e in entries_of(spec.exclude) if e in names]
    if calendars:
        parts.append(f"the days of the calendar{'s' if len(calendars) > 1 else ''} {joined(calendars)}")
    # What stands in a zone of its own says it; a cron has said its zone already.
    zone = f" in {spec.timezone or 'UTC'}" if spec.every is not None else ""
    return f"except on {joined(parts)}{zone}"


def _instant(text: str) -> str:
    ms = parse_instant(text)
    return format_utc(ms, short=ms % 1000 == 0)
