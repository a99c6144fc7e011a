"""What will come due, counted in Redis."""

from __future__ import annotations

from typing import NamedTuple

from rsched.core.ids import PARTITIONS, JobId
from rsched.store.base import Base


class DueGroup(NamedTuple):
    """`total` jobs of one team, schedule and window; see lua/forecast.lua. first: the earliest due instant (ms)."""

    team: str
    kind: str
    arg: str
    window_ms: int
    total: int
    first: int
    job: JobId


class ForecastVerbs(Base):
    async def due_counts(self) -> list[int]:
        """How many jobs have a due time, by partition."""
        pipe = self.client.pipeline(transaction=False)
        for partition in range(PARTITIONS):
            pipe.zcard(self.keys.due(partition))
        return [int(n) for n in await self._redis(pipe.execute())]

    async def due_groups(self, partition: int, *, skip: int, until_ms: int, limit: int) -> tuple[list[DueGroup], bool]:
        """A page of the jobs that are due up to until_ms, in groups, and whether there are more; skip: jobs passed over."""
        reply = await self._call("forecast", partition=partition, skip=skip, until_ms=until_ms, limit=limit)
        flat = [v.decode() for v in reply[3]]
        groups = [
            DueGroup(team, kind, arg, int(window or 0), int(count), int(first), JobId(job))
            for team, kind, arg, window, count, first, job in zip(*(flat[n::7] for n in range(7)), strict=True)
        ]
        return groups, reply[2] == b"1"
