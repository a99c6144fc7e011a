"""Load shedding: as Redis fills, first new jobs are refused, then claims and fetches stop; what was accepted is late, never lost.

Memory is measured by the recorder and by each scheduler, as a recorder that is dead, or waits for Postgres, is why memory runs
out. Authority: the level in the marker, so that all who measure see one state and none of them swings. Errors: Unavailable.
"""

from __future__ import annotations

import logging

from rsched.core.errors import ShardClosed
from rsched.runtime import faults
from rsched.store.recovery import Recovery
from rsched.store.server import Server

EVERY_MS = 1000.0
# Part of maxmemory at which a level begins, and below which it ends again.
_BEGINS = (0.70, 0.85)
_ENDS = (0.65, 0.80)
_MEANS = (
    "Redis has room again: all work goes on",
    "Redis is filling up: new jobs are refused",
    "Redis is nearly full: claims and fetches stop until there is room",
)


def next_level(present: int, part: float) -> int:
    """Returns the level for a part of maxmemory in use, coming from the present one."""
    level = sum(part >= begins for begins in _BEGINS)
    while level < present and part >= _ENDS[level]:
        level += 1
    return level


class LoadShedding:
    """Measures memory and sets the load-shedding level of one shard."""

    def __init__(self, recovery: Recovery, server: Server, *, log: logging.Logger) -> None:
        """Takes the parts that have the level and the memory, and the log that tells of changes."""
        self._recovery, self._server, self._log = recovery, server, log

    async def step(self) -> bool:
        """Measures once, and sets the level where it has changed.

        Returns:
            False, as there is never more to do at once.

        Raises:
            Unavailable: Redis does not answer.
        """
        used, limit = await self._server.get_memory()
        present = await self._recovery.get_load_level()
        if not limit or present is None:
            return False  # no limit, no part of it; no marker, nothing is let in anyway
        part = used / limit
        level = next_level(present, part)
        if level != present:
            faults.point("load_level.before_set")
            try:
                await self._recovery.set_load_level(level)
            except ShardClosed:
                return False  # nothing is let in anyway
            faults.point("load_level.after_set")
            say = self._log.error if level > present else self._log.warning
            say(_MEANS[level], extra={"fields": {"level": level, "used": f"{part:.0%}", "maxmemory": limit}})
        return False
