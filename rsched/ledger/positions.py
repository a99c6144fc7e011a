"""Journal ids as numbers, and the names that Postgres sessions of one deployment agree on."""

from __future__ import annotations

import zlib
from typing import NamedTuple

CHANNEL = "rsched_recorded"
# First key of the advisory locks by which the recorders of a shard take turns; the second one names the shard.
RECORDER_LOCK = 7_231_042


class Position(NamedTuple):
    """Orders as journal entries do: by generation, then by number."""

    generation: int
    n: int

    def __str__(self) -> str:
        return f"{self.generation}-{self.n}"


START = Position(0, 0)


def parse_position(text: str) -> Position:
    """ValueError where text is no `<generation>-<n>`."""
    generation, _, n = text.partition("-")
    return Position(int(generation), int(n))


def lock_key(shard: str) -> int:
    return zlib.crc32(shard.encode()) & 0x7FFF_FFFF
