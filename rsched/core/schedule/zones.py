"""Time zones as integer tables, from the pinned tzdata package alone.

The host's own zone files are never read: two nodes with different ones would fire at different times. Instants and wall
times here are whole seconds since 1970-01-01T00:00 (UTC, or on the zone's wall). Source of the file format: RFC 9636.
"""

from __future__ import annotations

import difflib
import importlib
import re
import struct
from bisect import bisect_right
from datetime import date
from functools import lru_cache
from importlib import resources
from itertools import pairwise
from typing import NamedTuple
from zoneinfo import ZoneInfo

from rsched.core.ids import short_hash

FOREVER = 1 << 60
CYCLE_S = 146_097 * 86_400  # the calendar repeats every 400 years, and so do the rules of a footer
_EPOCH = 719_163

_ABBREVIATION = r"(?:[A-Za-z]{3,}|<[A-Za-z0-9+-]+>)"
_OFFSET = r"([+-]?[0-9]{1,3}(?::[0-9]{2}){0,2})"
_RULE = rf"(M[0-9]+\.[0-9]\.[0-9]|J?[0-9]+)(?:/{_OFFSET})?"
_FOOTER = re.compile(rf"{_ABBREVIATION}{_OFFSET}(?:{_ABBREVIATION}{_OFFSET}?(?:,{_RULE},{_RULE})?)?", re.ASCII)


class UnknownZone(ValueError):
    """The name is in no zone list of this tzdata; the text suggests one that is."""


class Segment(NamedTuple):
    """start <= t < end is one stretch of one offset; seen: every wall time below it had come before start.

    So where seen < opened, the wall time at start, the clock jumped over seen to opened (a gap); where opened < seen, it
    shows opened to seen for a second time (an overlap).
    """

    start: int
    end: int
    offset: int
    seen: int

    @property
    def opened(self) -> int:
        """The wall time at start."""
        return self.start + self.offset


class Zone:
    """A zone's offsets, past the end of its file by its footer's rules. Immutable."""

    __slots__ = ("_base", "_offsets", "_seen", "_starts", "name")

    def __init__(self, name: str, *, changes: list[tuple[int, int]], base: int) -> None:
        """changes: (from instant, offset), ascending. base: from here on the table repeats every 400 years."""
        self.name = name
        self._starts = [start for start, _ in changes]
        self._offsets = [offset for _, offset in changes]
        self._base = base
        self._seen = [-FOREVER]
        # The greatest wall time of all earlier segments: what lies below it, a clock on the wall shows for the second time.
        for (_, offset), (end, _) in pairwise(changes):
            self._seen.append(max(self._seen[-1], end + offset))

    def segment(self, t: int) -> Segment:
        """The stretch of constant offset that holds the instant t."""
        shift = (t - self._base) // CYCLE_S * CYCLE_S if t >= self._base else 0
        starts = self._starts
        i = bisect_right(starts, t - shift) - 1
        end = starts[i + 1] if i + 1 < len(starts) else FOREVER
        return Segment(starts[i] + shift, end + shift, self._offsets[i], self._seen[i] + shift)

    def unseen_after(self, t: int) -> int:
        """The first wall time that no clock on the wall has shown, or jumped over, up to and including the instant t."""
        shift = (t - self._base) // CYCLE_S * CYCLE_S if t >= self._base else 0
        t -= shift
        i = bisect_right(self._starts, t) - 1
        return max(self._seen[i], t + 1 + self._offsets[i]) + shift

    def instant_of(self, wall: int) -> int:
        """When the wall time comes: first pass in an overlap, the first instant after it in a gap. Monotone in wall."""
        shift = (wall - self._base) // CYCLE_S * CYCLE_S if wall >= self._base else 0
        wall -= shift
        i = bisect_right(self._seen, wall) - 1
        return max(self._starts[i], wall - self._offsets[i]) + shift


@lru_cache(maxsize=1)
def tzdata_version() -> str:
    """The IANA release that all zones here come from, such as "2026f"."""
    return str(importlib.import_module("tzdata").IANA_VERSION)


@lru_cache(maxsize=1)
def zone_names() -> frozenset[str]:
    """Returns the names of all zones that tzdata has."""
    return frozenset(resources.files("tzdata").joinpath("zones").read_text("ascii").split())


def check_zone_name(name: str) -> None:
    """Raises UnknownZone, with the likeliest name meant, where tzdata has no such zone."""
    names = zone_names()
    if name in names:
        return
    folded = {n.lower(): n for n in names}
    wanted = name[:64].strip().replace(" ", "_").lower()
    # People write the city alone, or the right city on the wrong continent: compare with the last part as well.
    cities = {n.rpartition("/")[2]: n for n in sorted(folded, reverse=True)}
    city = wanted.rpartition("/")[2]
    close = [wanted] if wanted in folded else [cities[city]] if city in cities else []
    close = close or difflib.get_close_matches(wanted, folded, n=1, cutoff=0.7)
    if not close:
        close = [cities[c] for c in difflib.get_close_matches(city, cities, n=1, cutoff=0.8)]
    fix = f"did you mean {folded[close[0]]}?" if close else "write an IANA name such as 'Europe/Berlin', or 'UTC'"
    raise UnknownZone(f"unknown time zone {name[:64]!r}; {fix}")


@lru_cache(maxsize=1024)
def zone_info(name: str) -> ZoneInfo:
    """The standard library's view of the same file, to show local times. UnknownZone."""
    check_zone_name(name)
    with _path(name).open("rb") as file:
        return ZoneInfo.from_file(file, key=name)


@lru_cache(maxsize=1024)
def load_zone(name: str) -> Zone:
    """The table of a zone by its exact IANA name. UnknownZone."""
    check_zone_name(name)
    return parse_tzif(name, _path(name).read_bytes())


def _path(name: str) -> resources.abc.Traversable:
    return resources.files("tzdata").joinpath("zoneinfo", *name.split("/"))


class _Table(NamedTuple):
    """What a zone file says of offsets: the changes that it lists, and the rules for those after the last of them."""

    changes: list[tuple[int, int]]
    rules: _Rules | None


def parse_tzif(name: str, data: bytes) -> Zone:
    """A compiled zone file, version 2 or later, as a table."""
    changes, rules = _read(name, data)
    base = FOREVER
    if rules:
        last = max(changes[-1][0], 0)
        year = date.fromordinal(last // 86_400 + _EPOCH).year
        changes = changes + [c for y in range(year, year + 403) for c in rules.changes(y) if c[0] > last]
        base = (date(year + 1, 1, 1).toordinal() - _EPOCH) * 86_400
    return Zone(name, changes=_kept(changes), base=base)


@lru_cache(maxsize=1024)
def zone_digest(name: str) -> str:
    """A short text that changes with the zone's offsets and with nothing else: not with its name, or another zone's data.

    UnknownZone.
    """
    check_zone_name(name)
    return table_digest(_path(name).read_bytes())


def table_digest(data: bytes) -> str:
    """The digest of a compiled zone file's changes and rules; names and DST flags are left out."""
    changes, rules = _read("zone", data)
    return short_hash(f"{_kept(changes)} {rules and tuple(rules)}", 12)


def _read(name: str, data: bytes) -> _Table:
    head = ">4sc15x6l"
    size = struct.calcsize(head)
    magic, version, utc, std, leap, times, types, chars = struct.unpack_from(head, data)
    if magic != b"TZif" or version < b"2":
        raise ValueError(f"{name}: no zone file of version 2 or later")
    at = size + times * 5 + types * 6 + chars + leap * 8 + std + utc  # the 32-bit block is passed over
    _, _, utc, std, leap, times, types, chars = struct.unpack_from(head, data, at)
    at += size
    instants = struct.unpack_from(f">{times}q", data, at)
    kinds = data[at + times * 8 : at + times * 9]
    at += times * 9
    offsets = [struct.unpack_from(">lbB", data, at + i * 6)[0] for i in range(types)]
    footer = data[at + types * 6 + chars + leap * 12 + std + utc :].strip(b"\n").decode("ascii")
    listed = [(-FOREVER, offsets[0]), *zip(instants, (offsets[k] for k in kinds), strict=True)]
    return _Table(listed, _rules(footer))


def _kept(changes: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Changes of the name or of the DST flag alone are no changes of the offset."""
    return changes[:1] + [c for before, c in pairwise(changes) if c[1] != before[1]]


class _Rules(NamedTuple):
    """A footer with two changes a year: (day rule, seconds on the wall) into DST and back, and the two offsets."""

    standard: int
    daylight: int
    begin: tuple[str, int]
    end: tuple[str, int]

    def changes(self, year: int) -> list[tuple[int, int]]:
        return sorted(
            [
                (_day(self.begin[0], year) * 86_400 + self.begin[1] - self.standard, self.daylight),
                (_day(self.end[0], year) * 86_400 + self.end[1] - self.daylight, self.standard),
            ]
        )


def _rules(footer: str) -> _Rules | None:
    m = _FOOTER.fullmatch(footer)
    if m is None or m[3] is None or m[5] is None:
        return None
    standard = -_seconds(m[1])
    daylight = -_seconds(m[2]) if m[2] else standard + 3600
    two = 7200
    begin, end = (m[3], _seconds(m[4]) if m[4] else two), (m[5], _seconds(m[6]) if m[6] else two)
    return _Rules(standard, daylight, begin, end)


def _seconds(text: str) -> int:
    sign = -1 if text.startswith("-") else 1
    hours, minutes, seconds = ([int(part) for part in text.lstrip("+-").split(":")] + [0, 0])[:3]
    return sign * (hours * 3600 + minutes * 60 + seconds)


def _day(rule: str, year: int) -> int:
    """Days since 1970 of `Mm.w.d`, `Jn` (1-365, no leap day) or `n` (0-365) in year."""
    first = date(year, 1, 1).toordinal() - _EPOCH
    if rule[0] == "J":
        n = int(rule[1:]) - 1
        leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
        return first + n + (1 if leap and n >= 59 else 0)
    if rule[0] != "M":
        return first + int(rule)
    month, week, weekday = (int(part) for part in rule[1:].split("."))
    start = date(year, month, 1).toordinal()
    length = (date(year + month // 12, month % 12 + 1, 1).toordinal()) - start
    day = (weekday - start) % 7 + 7 * (week - 1)
    return start + (day if day < length else day - 7) - _EPOCH
