"""The words for what a change of the clock did to an occurrence. Wall times are naive seconds since 1970."""

from __future__ import annotations

from datetime import datetime, timedelta

_EPOCH = datetime(1970, 1, 1)
_DAY = 86_400


def gap_note(slots: tuple[int, int], *, count: int, gap: tuple[int, int], before: int) -> str:
    """Of the one run that stands for slots in a gap: the first and last of the count that there are.

    gap: the wall times that it jumps over; before: what the wall showed at the change, were it not for the change.
    """
    first, last = slots
    day = gap[1] // _DAY
    # A gap of hours is named by the clock alone, one of a day needs the dates.
    dated = gap[1] - gap[0] >= _DAY
    change = f"clocks go forward {_wall(before, dated=dated)} -> {_wall(gap[1], dated=dated)}"
    other = dated or first // _DAY != day
    that_day = "" if other else " that day"
    if count == 1:
        return f"{_wall(first, dated=other)} does not exist{that_day} ({change}); runs at the first instant after"
    named = f"{_wall(first, dated=other)} to {_wall(last, dated=other)} ({count} occurrences)"
    return f"{named} do not exist{that_day} ({change}); one run for all at the first instant after"


def pass_note(wall: int, *, second: bool) -> str:
    """Of an occurrence in an overlap."""
    return f"{_wall(wall)} comes twice that day; this is the {'second' if second else 'first'} pass"


def _wall(wall: int, *, dated: bool = False) -> str:
    at = _EPOCH + timedelta(seconds=wall)
    return at.isoformat(" ", "seconds" if wall % 60 else "minutes")[0 if dated else 11 :]
