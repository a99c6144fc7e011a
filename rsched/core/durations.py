"""Durations as people write them: "90s", "5m", "1h30m", ISO 8601 ("PT5M"), or a number of seconds."""

from __future__ import annotations

import re
from functools import lru_cache

Duration = str | int | float  # as people write it: text, or a number of seconds
MAX_MS = 100 * 366 * 86_400_000  # a century: longer is a slip of the pen

_UNIT_MS = {"w": 604_800_000, "d": 86_400_000, "h": 3_600_000, "m": 60_000, "s": 1000, "ms": 1}
_NUMBER = r"([0-9]{1,12}(?:\.[0-9]{1,6})?)"
_SHORT = re.compile(
    rf"(?:{_NUMBER}w)?(?:{_NUMBER}d)?(?:{_NUMBER}h)?(?:{_NUMBER}m)?(?:{_NUMBER}s)?(?:{_NUMBER}ms)?", re.ASCII
)
_ISO = re.compile(rf"P(?:{_NUMBER}W)?(?:{_NUMBER}D)?(?:T(?:{_NUMBER}H)?(?:{_NUMBER}M)?(?:{_NUMBER}S)?)?", re.ASCII)
_SCALES = (604_800_000, 86_400_000, 3_600_000, 60_000, 1000, 1)


# typed: True and 1 are one key otherwise, and only one of them is a duration.
@lru_cache(maxsize=4096, typed=True)
def parse_duration(value: str | int | float) -> int:
    """Reads a duration. Source of the ISO form: ISO 8601, without years and months.

    Args:
        value: Text such as "90s", "1h30m" or "PT5M", or a number of seconds.

    Returns:
        Milliseconds, 0 or more.

    Raises:
        ValueError: value is not a duration, is negative, or is over a century; the text says the fix.
    """
    if isinstance(value, bool):
        raise ValueError('write a duration such as "90s", "5m", "1h30m", "PT5M", or a number of seconds')
    if isinstance(value, int | float):
        if value != value or abs(value) > 1e12:
            raise ValueError("must be a number of seconds up to a century")
        ms = round(value * 1000)
    else:
        m = (_SHORT.fullmatch(value) or _ISO.fullmatch(value)) if 0 < len(value) <= 64 else None
        parts = [g for g in m.groups() if g] if m else []
        if m is None or not parts or value.endswith("T"):
            raise ValueError(
                f'{value[:40]!r} is not a duration; write "90s", "5m", "1h30m", "PT5M", or a number of seconds'
            )
        ms = round(sum(float(g) * scale for g, scale in zip(m.groups(), _SCALES, strict=False) if g))
    if ms < 0:
        raise ValueError("must not be negative")
    if ms > MAX_MS:
        raise ValueError("must be at most a century")
    return ms


def format_duration(ms: int) -> str:
    """Returns the shortest text that parse_duration reads back as ms."""
    if ms == 0:
        return "0s"
    out = []
    for unit in ("d", "h", "m", "s", "ms"):
        count, ms = divmod(ms, _UNIT_MS[unit])
        if count:
            out.append(f"{count}{unit}")
    return "".join(out)
