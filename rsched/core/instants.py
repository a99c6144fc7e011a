"""Instants at the edge: RFC 3339 text to and from ms since 1970 (UTC). Text without an offset is refused."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, tzinfo

MAX_INSTANT_MS = 253_402_300_799_999  # 9999-12-31T23:59:59.999Z, the last instant that can be written
MIN_INSTANT_MS = -62_135_596_800_000  # 0001-01-01T00:00:00Z

_EPOCH = datetime(1970, 1, 1)
_RFC3339 = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})[Tt ]([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.([0-9]{1,9}))?"
    r"(?:([Zz])|([+-])([0-9]{2}):([0-9]{2}))?",
    re.ASCII,
)


def parse_instant(text: str) -> int:
    """Reads an instant. Source of the form: RFC 3339, section 5.6.

    Args:
        text: With an offset, such as `2026-10-25T20:30:00Z`.

    Returns:
        Milliseconds since 1970 (UTC); what is finer is dropped.

    Raises:
        ValueError: text is not an RFC 3339 instant, or has no offset; the error's text says the fix.
    """
    m = _RFC3339.fullmatch(text) if len(text) <= 40 else None
    if m is None:
        raise ValueError(f"{text[:40]!r} is not an RFC 3339 instant; write it like '2026-10-25T20:30:00Z'")
    if m[8] is None and m[9] is None:
        raise ValueError(f"{text!r} has no offset, so it names no instant; write '{text}Z' for UTC, or '{text}+05:30'")
    year, month, day, hour, minute, second = (int(m[i]) for i in range(1, 7))
    if m[9] and (int(m[10]) > 23 or int(m[11]) > 59):
        raise ValueError(f"{text!r}: the offset {m[9]}{m[10]}:{m[11]} is out of range; write at most 23:59")
    try:
        wall = datetime(year, month, day, hour, minute, second)
    except ValueError as e:
        raise ValueError(f"{text!r}: {e}; write a date and time that exist") from None
    ms = (wall - _EPOCH) // timedelta(milliseconds=1) + int((m[7] or "0")[:3].ljust(3, "0"))
    if m[9]:
        offset = (int(m[10]) * 60 + int(m[11])) * 60_000
        ms += offset if m[9] == "-" else -offset
    if not MIN_INSTANT_MS <= ms <= MAX_INSTANT_MS:
        raise ValueError(f"{text!r} is outside the years 1 to 9999 in UTC; write an instant within them")
    return ms


def format_utc(ms: int, *, short: bool = False) -> str:
    """Returns `2026-10-25T20:30:00.000Z`.

    Args:
        ms: Since 1970 (UTC).
        short: Without the ms part.

    Raises:
        ValueError: It is outside the years 1 to 9999.
    """
    return _at(ms).isoformat(timespec="seconds" if short else "milliseconds") + "Z"


def format_local(ms: int, zone: tzinfo) -> str:
    """Returns `2026-10-26T02:00:00+05:30`, with a ms part only where it is not zero.

    Args:
        ms: Since 1970 (UTC).
        zone: Whose wall clock it is; UTC where that has left the years 1 to 9999.

    Raises:
        ValueError: It is outside the years 1 to 9999.
    """
    at = _at(ms).replace(tzinfo=UTC)
    try:
        at = at.astimezone(zone)
    except OverflowError:
        at = at.astimezone(UTC)
    return at.isoformat(timespec="milliseconds" if ms % 1000 else "seconds")


def _at(ms: int) -> datetime:
    if not MIN_INSTANT_MS <= ms <= MAX_INSTANT_MS:
        raise ValueError(f"{ms} ms is outside the years 1 to 9999")
    return _EPOCH + timedelta(milliseconds=ms)
