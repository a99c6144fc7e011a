"""Verbs of the scheduler: own, claim, calendars, misfire, catch_up, release, reap."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, TypeVar

from rsched.core.ids import JobId, RunId
from rsched.core.jobs.packed import JobRecord, RunRecord, unpack_job, unpack_run
from rsched.store.base import Base, tags

T = TypeVar("T")


class Ownership(NamedTuple):
    """live: schedulers with a lease; taken: partition -> epoch of those asked for and had.

    next_end: when (ms) the first lease of another one ends unless it is renewed, None without others.
    """

    live: list[str]
    taken: dict[int, int]
    next_end: int | None


class CalendarNeed(NamedTuple):
    """A job that needs its schedule's calendar to reach past `after` (ms)."""

    schedule: str
    after: int
    job: JobId


class Claimed(NamedTuple):
    """full: too little memory is left, nothing was claimed."""

    now: int
    total: int
    more: bool
    needs: list[CalendarNeed]
    late: list[tuple[JobId, int]]
    stale: list[int]
    full: bool = False


class MisfireItem(NamedTuple):
    """How a late job is settled; see lua/misfire.lua. Instants in ms, None for none. catch_up: both ends included."""

    job: JobId
    schedule_version: int
    due: int
    following: int | None
    run_at: int | None
    first: int
    last: int
    skipped: int
    catch_up: tuple[int, int] | None = None


class CatchupRange(NamedTuple):
    """Late occurrences from `start` to `end` (ms, both included) still to be paid out; made_at: when (ms) it was made."""

    job: JobId
    start: int
    end: int
    schedule_version: int
    flags: str
    made_at: int
    score: int

    @property
    def member(self) -> str:
        return f"{self.job}|{self.start}|{self.end}|{self.schedule_version}|{self.flags}|{self.made_at}"


class QueueLoad(NamedTuple):
    """started: attempts ever handed out. waiting: runs of it wait for a worker."""

    started: int
    waiting: bool


class Released(NamedTuple):
    """next_at: the next instant (ms) at which something is to be released, None for none known."""

    now: int
    total: int
    more: bool
    next_at: int | None


class ExpiredRun(NamedTuple):
    """record and job are None where Redis has no such run or no definition of its job."""

    run: RunId
    record: RunRecord | None
    job: JobRecord | None


class ReapItem(NamedTuple):
    """outcome: T to retry after delay_ms, D for dead, N where there was no definition to tell."""

    run: RunId
    fence: int
    outcome: str
    delay_ms: int


def _unpack_run(raw: bytes) -> RunRecord:
    return unpack_run(raw.decode())


def _or_none(unpack: Callable[[bytes], T], value: bytes) -> T | None:
    try:
        return unpack(value)
    except (ValueError, KeyError):
        return None


class TickVerbs(Base):
    async def own(
        self, scheduler: str, *, lease_ms: int, take: Iterable[int] = (), give: Iterable[int] = ()
    ) -> Ownership:
        """Renews the scheduler's lease (0: leaves), takes and gives partitions."""
        group = [(p, 1) for p in take] + [(p, 0) for p in give]
        reply = await self._call("acquire_partitions", group, scheduler=scheduler, lease_ms=lease_ms)
        taken = {int(p): int(e) for p, e in zip(reply[3][::2], reply[3][1::2], strict=True)}
        return Ownership(tags(reply[2]), taken, int(reply[4]) if reply[4] else None)

    async def heads(self, *, within_ms: int) -> tuple[list[int], int | None]:
        """Partitions with a job due within that time, and the next due instant (ms) beyond it."""
        horizon = await self.time() + within_ms
        pipe = self.client.pipeline(transaction=False)
        pipe.zrange(self.keys.heads, "-inf", horizon, byscore=True, offset=0, num=1024)
        pipe.zrange(self.keys.heads, f"({horizon}", "+inf", byscore=True, offset=0, num=1, withscores=True)
        due, beyond = await self._redis(pipe.execute())
        return [int(p) for p in due], (int(beyond[0][1]) if beyond else None)

    async def claim(
        self, scheduler: str, *, horizon_ms: int, limit: int, partitions: Sequence[tuple[int, int]]
    ) -> Claimed:
        """Claims what is due up to horizon_ms from now in these (partition, epoch); epoch 0: ownership unchecked."""
        reply = await self._call("claim", partitions, scheduler=scheduler, horizon_ms=horizon_ms, limit=limit)
        if reply[0] == "full":
            return Claimed(reply[1], 0, False, [], [], [], full=True)
        needs, late = reply[4], reply[5]
        return Claimed(
            reply[1],
            int(reply[2]),
            reply[3] == b"1",
            [
                CalendarNeed(s.decode(), int(a), JobId(j.decode()))
                for s, a, j in zip(needs[::3], needs[1::3], needs[2::3], strict=True)
            ],
            [(JobId(j.decode()), int(d)) for j, d in zip(late[::2], late[1::2], strict=True)],
            [int(p) for p in reply[6]],
        )

    async def cache_occurrences(self, schedule: str, *, after: int, occurrences: Sequence[int], ended: bool) -> None:
        """All occurrences of the schedule after `after`, up to the last one given; ended where none follow."""
        await self._call(
            "cache_occurrences", [(o,) for o in occurrences], schedule=schedule, after=after, ended=int(ended)
        )

    async def ended_pauses(self, *, limit: int) -> list[JobId]:
        """Paused jobs whose pause ends by now, those first that waited longest."""
        now = await self.time()
        found = await self._redis(self.client.zrange(self.keys.pauses, "-inf", now, byscore=True, offset=0, num=limit))
        return [JobId(job.decode()) for job in found]

    async def put_off_pauses(self, jobs: Sequence[JobId], *, by_ms: int) -> None:
        """Lets the ends of these pauses be looked at again only by_ms from now."""
        if jobs:
            later = await self.time() + by_ms
            await self._redis(self.client.zadd(self.keys.pauses, dict.fromkeys(jobs, later), xx=True))

    async def put_off(self, ranges: Sequence[tuple[CatchupRange, int]]) -> None:
        """Lets ranges be paid only so many ms from now, each unless another scheduler has paid of it meanwhile."""
        if ranges:
            now = await self.time()
            scores = {found.member: now + by_ms for found, by_ms in ranges}
            await self._redis(self.client.zadd(self.keys.catchup, scores, xx=True, gt=True))

    async def misfire(self, items: Sequence[MisfireItem]) -> list[str]:
        """tags, one an item: ok, stale."""
        group = [
            (
                i.job,
                i.schedule_version,
                i.due,
                "" if i.following is None else i.following,
                "" if i.run_at is None else i.run_at,
                i.first,
                i.last,
                i.skipped,
                *(i.catch_up or ("", "")),
            )
            for i in items
        ]
        return tags((await self._call("resolve_misfires", group))[2])

    async def catchup(self, *, limit: int) -> list[CatchupRange]:
        """Ranges that may be paid out now."""
        now = await self.time()
        found = await self._redis(
            self.client.zrange(self.keys.catchup, "-inf", now, byscore=True, offset=0, num=limit, withscores=True)
        )
        out = []
        for member, score in found:
            try:
                job, start, end, schedule_version, flags, made_at = member.decode().split("|")
                out.append(
                    CatchupRange(
                        JobId(job), int(start), int(end), int(schedule_version), flags, int(made_at), int(score)
                    )
                )
            except ValueError:
                continue  # no range of ours: it must not stop the others
        return out

    async def queue_loads(self, queues: Sequence[str]) -> dict[str, QueueLoad]:
        """How much was started of each queue, and whether runs wait in it."""
        pipe = self.client.pipeline(transaction=False)
        for queue in queues:
            pipe.hget(self.keys.starts, queue)
            pipe.zcard(self.keys.ready(queue))
        found = await self._redis(pipe.execute()) if queues else []
        return {
            q: QueueLoad(int(started or 0), bool(ready))
            for q, started, ready in zip(queues, found[::2], found[1::2], strict=True)
        }

    async def catch_up(
        self,
        paid: CatchupRange,
        *,
        occurrences: Sequence[int],
        rest: CatchupRange | None,
        pace_ms: int,
        most: int,
        left: int = 0,
    ) -> str:
        """most: what a job may get within pace_ms, of all its ranges. left: how many occurrences the range still has, 0 for
        unknown. tag: ok, stale (another scheduler paid it), paced (the job has got enough), gone (it is not active under that
        schedule any more).
        """
        reply = await self._call(
            "catch_up",
            [(o,) for o in occurrences],
            member=paid.member,
            score=paid.score,
            rest=rest.member if rest else "",
            pace_ms=pace_ms,
            most=most,
            left=left,
        )
        return str(reply[0])

    async def release(self, *, limit: int) -> Released:
        """Moves what has come due to the queue streams, up to limit from each of staged and retries."""
        reply = await self._call("release", limit=limit)
        return Released(reply[1], int(reply[2]), reply[3] == b"1", int(reply[4]) if reply[4] else None)

    async def expired(self, *, after_ms: int, limit: int) -> tuple[list[ExpiredRun], bool]:
        """Runs whose lease ended at least after_ms ago, and whether there are more."""
        reply = await self._call("expired_leases", after_ms=after_ms, limit=limit)
        items = reply[3]
        out = []
        for run, record, value in zip(items[::3], items[1::3], items[2::3], strict=True):
            out.append(ExpiredRun(RunId(run.decode()), _or_none(_unpack_run, record), _or_none(unpack_job, value)))
        return out, reply[2] == b"1"

    async def reap(self, items: Sequence[ReapItem], *, after_ms: int) -> list[str]:
        """tags, one an item: ok, later (of N: its definition is coming back, or is there by now), stale_fence, missing."""
        return tags((await self._call("reap", items, after_ms=after_ms))[2])
