"""Journal ids as numbers, and the names that Postgres sessions of one deployment agree on."""

from __future__ import annotations

import zlib
from typing import NamedTuple

CHANNEL = "rsched_recorded"
# First key of the advisory locks by which the recorders of a shard take turns; the second one names the shard.
RECORDER_LOCK = 7_231_042
# Likewise, of those who write runs of a shard: its recorder, and a resync beside it.
RUNS_LOCK = 7_231_045


class Position(NamedTuple):
    """Orders as journal entries do: by generation, then by number."""

    generation: int
    sequence: int

    def __str__(self) -> str:
        return f"{self.generation}-{self.sequence}"


START = Position(0, 0)


def parse_position(text: str) -> Position:
    """Reads a journal id. Raises ValueError where text is no `<generation>-<sequence>`."""
    generation, _, sequence = text.partition("-")
    return Position(int(generation), int(sequence))


def lock_key(shard: str) -> int:
    """Returns the number of the shard in the keys of advisory locks."""
    return zlib.crc32(shard.encode()) & 0x7FFF_FFFF
