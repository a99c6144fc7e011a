"""The load_level: as Redis fills, first new jobs are refused, then claims and fetches stop; what was accepted is late, never lost.

Measured by the recorder and by each scheduler: a recorder that is dead, or waits for Postgres, is why memory runs out. The step
in force is in the marker, so that all who measure see one state and none of them swings.
"""

from __future__ import annotations

import logging

from rsched.core.errors import ShardClosed
from rsched.runtime import faults
from rsched.store.store import Store

EVERY_MS = 1000.0
# Part of maxmemory at which a step begins, and below which it ends again.
_BEGINS = (0.70, 0.85)
_ENDS = (0.65, 0.80)
_MEANS = (
    "Redis has room again: all work goes on",
    "Redis is filling up: new jobs are refused",
    "Redis is nearly full: claims and fetches stop until there is room",
)


def next_step(present: int, part: float) -> int:
    """The step for this part of maxmemory in use, coming from `present`."""
    step = sum(part >= begins for begins in _BEGINS)
    while step < present and part >= _ENDS[step]:
        step += 1
    return step


class LoadShedding:
    def __init__(self, store: Store, *, log: logging.Logger) -> None:
        self._store, self._log = store, log

    async def step(self) -> bool:
        """Measures, and sets the step where it has changed. Unavailable."""
        used, limit = await self._store.memory()
        present = await self._store.load_level()
        if not limit or present is None:
            return False  # no limit, no part of it; no marker, nothing is let in anyway
        part = used / limit
        step = next_step(present, part)
        if step != present:
            faults.point("load_level.before_set")
            try:
                await self._store.set_load_level(step)
            except ShardClosed:
                return False  # nothing is let in anyway
            faults.point("load_level.after_set")
            say = self._log.error if step > present else self._log.warning
            say(_MEANS[step], extra={"fields": {"step": step, "used": f"{part:.0%}", "maxmemory": limit}})
        return False
