"""Pauses that end by themselves, as the schedulers' resume loop and a recovery look at them.

Authority: none; the verb `resume` looks at the job again. Errors: Unavailable.
"""

from __future__ import annotations

from collections.abc import Sequence

from rsched.core.ids import JobId
from rsched.store.connection import Part


class Pauses(Part):
    """Reads and moves the ends of pauses."""

    async def list_ended(self, *, limit: int) -> list[JobId]:
        """Returns up to `limit` paused jobs whose pause ends by now, those first that waited longest."""
        now = await self._redis.clock.read()
        ended = await self._redis.ask(
            self._redis.client.zrange(self._redis.keys.pauses, "-inf", now, byscore=True, offset=0, num=limit)
        )
        return [JobId(job.decode()) for job in ended]

    async def postpone(self, jobs: Sequence[JobId], *, by_ms: int) -> None:
        """Lets the ends of these pauses be looked at again only `by_ms` from now."""
        if jobs:
            later = await self._redis.clock.read() + by_ms
            await self._redis.ask(self._redis.client.zadd(self._redis.keys.pauses, dict.fromkeys(jobs, later), xx=True))

    async def list_ending(self, *, skip: int, until: int, count: int) -> list[JobId]:
        """Returns up to `count` jobs whose pause ends until then (ms), soonest first, after so many that are left out."""
        ending = await self._redis.ask(
            self._redis.client.zrangebyscore(self._redis.keys.pauses, "-inf", until, start=skip, num=count)
        )
        return [JobId(job.decode(errors="replace")) for job in ending]
