"""What resync reads: everything that Postgres should have of a shard, page by page."""

from __future__ import annotations

from rsched.core.ids import PARTITIONS, JobId, RunId
from rsched.core.jobs.packed import RunRecord, unpack_run
from rsched.store.base import Base
from rsched.store.ticks import CatchupRange

# Due sets that are asked in one round trip.
_AT_ONCE = 256


class ResyncReads(Base):
    async def resync(self) -> bool:
        """Whether what Redis has is to be written into Postgres once more."""
        return bool(await self._redis(self.client.hexists(self.keys.restore, "resync")))

    async def set_resync(self, wanted: bool) -> None:
        if wanted:
            await self._redis(self.client.hset(self.keys.restore, "resync", "1"))
        else:
            await self._redis(self.client.hdel(self.keys.restore, "resync"))

    async def page_of_values(self, partition: int, *, cursor: int, count: int) -> tuple[int, list[tuple[JobId, bytes]]]:
        """Some (job, whole value) of a partition and the next cursor, 0 at the end; a job may come twice."""
        following, page = await self._redis(self.client.hscan(self.keys.jobs(partition), cursor, count=count))
        apart = [job for job, value in page.items() if value.endswith(b"\n")]
        if apart:
            bodies = await self._redis(self.client.hmget(self.keys.body(partition), apart))
            page |= {job: page[job] + (body or b"") for job, body in zip(apart, bodies, strict=True)}
        return int(following), [(JobId(job.decode(errors="replace")), value) for job, value in page.items()]

    async def page_of_runs(self, *, cursor: int, count: int) -> tuple[int, list[tuple[RunId, RunRecord]]]:
        """Some runs that are not final and the next cursor, 0 at the end; those that can't be read are left out."""
        following, page = await self._redis(self.client.hscan(self.keys.runs, cursor, count=count))
        found = []
        for run, record in page.items():
            try:
                found.append((RunId(run.decode()), unpack_run(record.decode())))
            except (ValueError, KeyError):
                continue
        return int(following), found

    async def page_of_payloads(self, *, cursor: int, count: int) -> tuple[int, list[tuple[RunId, bytes]]]:
        """Some payloads that runs have of their own and the next cursor, 0 at the end; a run may come twice."""
        following, page = await self._redis(self.client.hscan(self.keys.payloads, cursor, count=count))
        return int(following), [(RunId(run.decode(errors="replace")), payload) for run, payload in page.items()]

    async def page_of_triggers(self, *, cursor: int, count: int) -> tuple[int, list[tuple[str, str, int]]]:
        """Some keyed triggers (job, hash, ms of the run) and the next cursor, 0 at the end; one may come twice."""
        following, page = await self._redis(self.client.zscan(self.keys.triggers, cursor, count=count))
        found = [(*member.decode(errors="replace").partition("|"), int(at)) for member, at in page]
        return int(following), [(job, key_hash, at) for job, _, key_hash, at in found if key_hash]

    async def page_of_calendars(self, *, cursor: int, count: int) -> tuple[int, list[tuple[str, str, int, bytes]]]:
        """Some (team, calendar, version, body) and the next cursor, 0 at the end; body b"": deleted. Those that can't be read
        are left out.
        """
        following, page = await self._redis(self.client.hscan(self.keys.calendars, cursor, count=count))
        found = []
        for field, value in page.items():
            team, slash, name = field.decode(errors="replace").partition("/")
            version, line, body = value.partition(b"\n")
            if slash and line and version.isdigit():
                found.append((team, name, int(version), body))
        return int(following), found

    async def ranges(self) -> list[CatchupRange]:
        """All catch-up ranges, as they are at one moment: one that is paid from while pages are read could be missed. Those that
        can't be read are left out.
        """
        found = [
            _range(m, s) for m, s in await self._redis(self.client.zrange(self.keys.catchup, 0, -1, withscores=True))
        ]
        return [r for r in found if r is not None]

    async def first_dues(self) -> dict[int, int]:
        """partition -> the earliest due time (ms) in it; none for those in which nothing is due."""
        found: dict[int, int] = {}
        for first in range(0, PARTITIONS, _AT_ONCE):
            pipe = self.client.pipeline(transaction=False)
            for partition in range(first, first + _AT_ONCE):
                pipe.zrange(self.keys.due(partition), 0, 0, withscores=True)
            for partition, entries in enumerate(await self._redis(pipe.execute()), start=first):
                for _, due in entries:
                    found[partition] = int(due)
        return found


def _range(member: bytes, score: float) -> CatchupRange | None:
    try:
        job, start, end, schedule_version, flags, made_at = member.decode().split("|")
        return CatchupRange(JobId(job), int(start), int(end), int(schedule_version), flags, int(made_at), int(score))
    except ValueError:
        return None  # for the reconciler
