"""Catch-up ranges: late or backfilled occurrences whose runs are made a few at a time.

Authority: a range's member in the sorted set; whoever makes runs of it replaces the member in the same step, so that any
scheduler may do it and of two one is told `stale`. Errors: ShardClosed, Unavailable.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from rsched.core.ids import JobId
from rsched.store.connection import Part


class CatchupRange(NamedTuple):
    """Late occurrences whose catch-up runs are still to be made.

    Attributes:
        job: Whose they are.
        start: The first occurrence (ms).
        end: The last occurrence (ms).
        schedule_version: The version of the schedule that has them.
        flags: What the runs are marked with.
        made_at: When (ms) the range was made.
        score: When (ms) runs may be made of it next.
    """

    job: JobId
    start: int
    end: int
    schedule_version: int
    flags: str
    made_at: int
    score: int

    @property
    def member(self) -> str:
        """The range as the sorted set has it."""
        return f"{self.job}|{self.start}|{self.end}|{self.schedule_version}|{self.flags}|{self.made_at}"


def parse_range(member: bytes, score: float) -> CatchupRange | None:
    """Returns the range, None where the member is not one of ours, which is for the reconciler."""
    try:
        job, start, end, schedule_version, flags, made_at = member.decode().split("|")
        return CatchupRange(JobId(job), int(start), int(end), int(schedule_version), flags, int(made_at), int(score))
    except ValueError:
        return None


class QueueLoad(NamedTuple):
    """How busy a queue is: attempts ever handed out of it, and whether runs of it wait for a worker."""

    started: int
    waiting: bool


class Catchup(Part):
    """Makes catch-up runs, at a pace, and reads the ranges."""

    async def list_due(self, *, limit: int) -> list[CatchupRange]:
        """Returns up to `limit` ranges of which runs may be made now."""
        now = await self._redis.clock.read()
        members = await self._redis.ask(
            self._redis.client.zrange(
                self._redis.keys.catchup, "-inf", now, byscore=True, offset=0, num=limit, withscores=True
            )
        )
        ranges = [parse_range(member, score) for member, score in members]
        return [found for found in ranges if found is not None]

    async def list_all(self) -> list[CatchupRange]:
        """Returns all ranges as they are at one moment, as one that shrinks while pages are read could be missed."""
        members = await self._redis.ask(self._redis.client.zrange(self._redis.keys.catchup, 0, -1, withscores=True))
        ranges = [parse_range(member, score) for member, score in members]
        return [found for found in ranges if found is not None]

    async def list_jobs(self) -> set[str]:
        """Returns the ids of jobs with a range."""
        members = await self._redis.ask(self._redis.client.zrange(self._redis.keys.catchup, 0, -1))
        return {member.partition(b"|")[0].decode(errors="replace") for member in members}

    async def enqueue(
        self,
        pending: CatchupRange,
        *,
        occurrences: Sequence[int],
        rest: CatchupRange | None,
        pace_ms: int,
        most: int,
        left: int = 0,
    ) -> str:
        """Makes runs of the first occurrences of a range.

        Args:
            pending: The range as it was read.
            occurrences: Those to make runs of (ms).
            rest: What remains of the range, None for nothing.
            pace_ms: The time within which a job may get `most` runs, of all its ranges.
            most: See `pace_ms`.
            left: How many occurrences the range still has, 0 where that is not known.

        Returns:
            A tag: ok, stale (another scheduler was there first), paced (the job has got enough), gone (it is not active under
            that schedule any more).
        """
        reply = await self._redis.call(
            "catch_up",
            [(o,) for o in occurrences],
            member=pending.member,
            score=pending.score,
            rest=rest.member if rest else "",
            pace_ms=pace_ms,
            most=most,
            left=left,
        )
        return str(reply[0])

    async def postpone(self, ranges: Sequence[tuple[CatchupRange, int]]) -> None:
        """Lets each range be looked at again only so many ms from now, unless another scheduler made runs of it meanwhile."""
        if ranges:
            now = await self._redis.clock.read()
            scores = {pending.member: now + by_ms for pending, by_ms in ranges}
            await self._redis.ask(self._redis.client.zadd(self._redis.keys.catchup, scores, xx=True, gt=True))

    async def measure_queues(self, queues: Sequence[str]) -> dict[str, QueueLoad]:
        """Returns how much was started of each queue, and whether runs wait in it."""
        pipe = self._redis.pipeline()
        for queue in queues:
            pipe.hget(self._redis.keys.starts, queue)
            pipe.zcard(self._redis.keys.ready(queue))
        replies = await self._redis.ask(pipe.execute()) if queues else []
        return {
            queue: QueueLoad(int(started or 0), bool(ready))
            for queue, started, ready in zip(queues, replies[::2], replies[1::2], strict=True)
        }
