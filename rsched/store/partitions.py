"""Partitions: who claims from which, what is due in them, and the occurrences that claims take their due times from.

Authority: the epoch in `owners`, which `claim` checks; owning a partition only saves work. The occurrence cache of a schedule is
contiguous, and what it lacks is computed by a scheduler, never in a script. Errors: ShardClosed, Unavailable.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from rsched.core.ids import PARTITIONS, JobId
from rsched.store.connection import Part, tags

# Due sets that are asked in one round trip.
_AT_ONCE = 256


class Ownership(NamedTuple):
    """Who owns what.

    Attributes:
        live: The schedulers with a lease.
        taken: Partition -> epoch of those that were asked for and had.
        next_end: When (ms) the first lease of another scheduler ends unless it is renewed, None without others.
    """

    live: list[str]
    taken: dict[int, int]
    next_end: int | None


class DueEntry(NamedTuple):
    """A due time (ms) and the job's packed value, a body over 1 KB left out; None where there is no such job."""

    job: JobId
    due: int
    value: bytes | None


class DueGroup(NamedTuple):
    """Due jobs of one team, schedule and window; see lua/jobs/forecast.lua.

    Attributes:
        team: The team.
        kind: The kind of the schedule.
        arg: The schedule's argument.
        window_ms: The window over which its runs are spread.
        total: How many jobs.
        first: The earliest due time among them (ms).
        job: One of them.
    """

    team: str
    kind: str
    arg: str
    window_ms: int
    total: int
    first: int
    job: JobId


class Partitions(Part):
    """Acquires partitions and reads what is due in them."""

    async def acquire(
        self, scheduler: str, *, lease_ms: int, take: Iterable[int] = (), give: Iterable[int] = ()
    ) -> Ownership:
        """Renews a scheduler's lease, and takes and gives partitions.

        Args:
            scheduler: Whose lease it is.
            lease_ms: How long it is from now; 0 lets the scheduler leave.
            take: Partitions that it wants.
            give: Partitions that it lets go.
        """
        group = [(partition, 1) for partition in take] + [(partition, 0) for partition in give]
        reply = await self._redis.call("acquire_partitions", group, scheduler=scheduler, lease_ms=lease_ms)
        taken = {int(p): int(epoch) for p, epoch in zip(reply[3][::2], reply[3][1::2], strict=True)}
        return Ownership(tags(reply[2]), taken, int(reply[4]) if reply[4] else None)

    async def count_owned(self) -> int:
        """Returns how many partitions are owned by a scheduler with a lease."""
        now, keys, client = await self._redis.clock.read(), self._redis.keys, self._redis.client
        schedulers = set(await self._redis.ask(client.zrange(keys.schedulers, f"({now}", "+inf", byscore=True)))
        owners = await self._redis.ask(client.hvals(keys.owners))
        return sum(1 for owner in owners if owner.rsplit(b"|", 1)[0] in schedulers)

    async def list_due(self, *, within_ms: int) -> tuple[list[int], int | None]:
        """Returns the partitions with a job due within that time, and the next due time (ms) beyond it."""
        horizon = await self._redis.clock.read() + within_ms
        pipe = self._redis.pipeline()
        pipe.zrange(self._redis.keys.heads, "-inf", horizon, byscore=True, offset=0, num=1024)
        pipe.zrange(self._redis.keys.heads, f"({horizon}", "+inf", byscore=True, offset=0, num=1, withscores=True)
        due, beyond = await self._redis.ask(pipe.execute())
        return [int(partition) for partition in due], (int(beyond[0][1]) if beyond else None)

    async def cache_occurrences(self, schedule: str, *, after: int, occurrences: Sequence[int], ended: bool) -> None:
        """Adds to the occurrence cache of a schedule.

        Args:
            schedule: The schedule's id.
            after: The instant (ms) after which these occurrences come.
            occurrences: All of them (ms) up to the last one given.
            ended: Whether none follow.
        """
        group = [(occurrence,) for occurrence in occurrences]
        await self._redis.call("cache_occurrences", group, schedule=schedule, after=after, ended=int(ended))

    async def count_due(self) -> list[int]:
        """Returns how many jobs have a due time, by partition."""
        pipe = self._redis.pipeline()
        for partition in range(PARTITIONS):
            pipe.zcard(self._redis.keys.due(partition))
        return [int(count) for count in await self._redis.ask(pipe.execute())]

    async def read_due_groups(
        self, partition: int, *, skip: int, until_ms: int, limit: int
    ) -> tuple[list[DueGroup], bool]:
        """Reads what will come due, in groups.

        Args:
            partition: Where to look.
            skip: How many jobs to pass over.
            until_ms: The latest due time (ms).
            limit: The most jobs to look at.

        Returns:
            A page of groups, and whether there are more jobs.
        """
        reply = await self._redis.call("forecast", partition=partition, skip=skip, until_ms=until_ms, limit=limit)
        flat = [value.decode() for value in reply[3]]
        groups = [
            DueGroup(team, kind, arg, int(window or 0), int(count), int(first), JobId(job))
            for team, kind, arg, window, count, first, job in zip(*(flat[n::7] for n in range(7)), strict=True)
        ]
        return groups, reply[2] == b"1"

    async def get_first_due_times(self) -> dict[int, int]:
        """Returns partition -> the earliest due time (ms) in it; those in which nothing is due are left out."""
        earliest: dict[int, int] = {}
        for first in range(0, PARTITIONS, _AT_ONCE):
            pipe = self._redis.pipeline()
            for partition in range(first, first + _AT_ONCE):
                pipe.zrange(self._redis.keys.due(partition), 0, 0, withscores=True)
            for partition, entries in enumerate(await self._redis.ask(pipe.execute()), start=first):
                for _, due in entries:
                    earliest[partition] = int(due)
        return earliest

    async def read_due_entries(self, skips: Mapping[int, int], *, until: int, count: int) -> dict[int, list[DueEntry]]:
        """Reads a page of due times of many partitions at once.

        Args:
            skips: Partition -> how many entries to pass over in it.
            until: The latest due time (ms).
            count: The most entries of each partition.

        Returns:
            Partition -> entries, soonest first; partitions without any are left out.
        """
        pipe = self._redis.pipeline()
        for partition, skip in skips.items():
            pipe.zrangebyscore(self._redis.keys.due(partition), "-inf", until, start=skip, num=count, withscores=True)
        replies = dict(zip(skips, await self._redis.ask(pipe.execute()), strict=True)) if skips else {}
        pages = {partition: page for partition, page in replies.items() if page}
        for partition, page in pages.items():
            pipe.hmget(self._redis.keys.jobs(partition), [job for job, _ in page])
        values = await self._redis.ask(pipe.execute()) if pages else []
        return {
            # Hands may have written anything: what is no id is no job's, and the claim quarantines it.
            partition: [
                DueEntry(JobId(job.decode(errors="replace")), int(due), value)
                for (job, due), value in zip(page, found, strict=True)
            ]
            for (partition, page), found in zip(pages.items(), values, strict=True)
        }
