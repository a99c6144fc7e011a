"""A schedule that is put again keeps the grid it has: what resolve() once took from the clock is not taken anew."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from rsched.core.durations import Duration, parse_duration
from rsched.core.schedule.schedule import Scheduled
from rsched.core.schedule.spec import ScheduleSpec

_replace = msgspec.structs.replace
_RULE = ("cron", "second", "year", "dst")


def keep_grid(new: Scheduled, old: Scheduled) -> tuple[ScheduleSpec | None, list[ScheduleSpec]]:
    """Returns the schedule and schedules of new, with what they leave out taken from old.

    new is unresolved, and stays so; old is resolved.

    An interval of the same length keeps its anchor; max_runs of the same rule goes on counting from its start.
    """
    known = [old.schedule] if old.schedule is not None else list(old.schedules)
    if new.schedule is not None:
        return _kept(new.schedule, known), list(new.schedules)
    return None, [_kept(spec, known) for spec in new.schedules]


def _kept(spec: ScheduleSpec, known: Sequence[ScheduleSpec]) -> ScheduleSpec:
    for old in known:
        if not _same_rule(spec, old):
            continue
        begins_alike = spec.start is None or spec.start == old.start
        if spec.every is not None and spec.anchor is None and begins_alike:
            spec = _replace(spec, anchor=old.anchor)
        if spec.max_runs is not None and spec.start is None and old.max_runs is not None:
            spec = _replace(spec, start=old.start)
        break
    return spec


def _same_rule(new: ScheduleSpec, old: ScheduleSpec) -> bool:
    if any(getattr(new, part) != getattr(old, part) for part in _RULE):
        return False
    if new.every is None or old.every is None:
        return new.cron is not None and (new.timezone or "UTC") == old.timezone
    return new.anchor in (None, old.anchor) and _ms(new.every) == _ms(old.every)


def _ms(value: Duration) -> int | None:
    try:
        return parse_duration(value)
    except ValueError:
        return None  # refused later, under its field
