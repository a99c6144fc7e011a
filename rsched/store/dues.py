"""Due sets and ends of pauses as a recovery looks at them, in pages over many partitions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from rsched.core.ids import JobId
from rsched.store.base import Base, tags


class DueEntry(NamedTuple):
    """due: ms. value: the job's, a body over 1 KB left out; None where there is none."""

    job: JobId
    due: int
    value: bytes | None


class DueVerbs(Base):
    async def page_of_dues(self, skips: Mapping[int, int], *, until: int, count: int) -> dict[int, list[DueEntry]]:
        """Of each partition up to `count` entries due until then (ms), soonest first, after so many that are left out."""
        pipe = self.client.pipeline(transaction=False)
        for partition, skip in skips.items():
            pipe.zrangebyscore(self.keys.due(partition), "-inf", until, start=skip, num=count, withscores=True)
        pages = dict(zip(skips, await self._redis(pipe.execute()), strict=True)) if skips else {}
        pages = {partition: page for partition, page in pages.items() if page}
        for partition, page in pages.items():
            pipe.hmget(self.keys.jobs(partition), [job for job, _ in page])
        values = await self._redis(pipe.execute()) if pages else []
        return {
            # Hands may have written anything: what is no id is no job's, and the claim sets it aside.
            partition: [
                DueEntry(JobId(job.decode(errors="replace")), int(due), value)
                for (job, due), value in zip(page, found, strict=True)
            ]
            for (partition, page), found in zip(pages.items(), values, strict=True)
        }

    async def page_of_pauses(self, *, skip: int, until: int, count: int) -> list[JobId]:
        """Up to `count` jobs whose pause ends until then (ms), after so many that are left out."""
        found = await self._redis(self.client.zrangebyscore(self.keys.pauses, "-inf", until, start=skip, num=count))
        return [JobId(job.decode(errors="replace")) for job in found]

    async def restore_dues(self, items: Sequence[tuple[JobId, int, int, int | None]]) -> list[str]:
        """Moves (job, version, due as it is, due as it should be or None) on, where version and due are still those; the jobs
        of which it was moved.
        """
        group = [(job, version, due, "" if later is None else later) for job, version, due, later in items]
        return tags((await self._call("restore_dues", group))[2])
