"""Verbs of the worker: fetch, finish, requeue, adopt, leave (renew has a synchronous twin in renewer.py)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from rsched.core.ids import RunId, WorkerId
from rsched.core.jobs.model import Definition, with_payload
from rsched.core.jobs.packed import FLAG_MANUAL, JobHead, unpack_job
from rsched.core.states import RunState
from rsched.store.base import Base, tags


class FetchedRun(NamedTuple):
    """One attempt to make. due_at: the instant (ms) it was due: its own for the first, the end of the backoff after."""

    run: RunId
    attempt: int
    fence: int
    due_at: int
    manual: bool
    head: JobHead
    definition: Definition


class FetchReply(NamedTuple):
    """now and lease_end by Redis' clock (ms)."""

    now: int
    lease_end: int
    runs: list[FetchedRun]
    more: bool


class FinishItem(NamedTuple):
    """outcome: SUCCEEDED, RETRYING (after delay_ms), DEAD or CANCELLED. started_at: Redis-clock ms right before the call."""

    run: RunId
    fence: int
    outcome: RunState
    delay_ms: int
    started_at: int
    error: str


class RenewReply(NamedTuple):
    """tags, one an item: ok, cancel (renewed, and a cancel was asked for), stale_fence, missing."""

    now: int
    lease_end: int
    tags: list[str]


MAX_ERROR = 2000


class WorkVerbs(Base):
    async def fetch(
        self, worker: WorkerId, *, request: int, slots: int, lease_ms: int, queues: Sequence[str]
    ) -> FetchReply:
        """Up to `slots` runs, none where Redis has too little memory left; a repeat of the same request number gives the same
        ones. Also the worker's heartbeat.
        """
        reply = await self._call(
            "fetch",
            [(q,) for q in queues],
            worker=worker,
            request=request,
            slots=slots,
            lease_ms=lease_ms,
            visits=max(64, 4 * slots),
        )
        if reply[0] == "full":
            return FetchReply(reply[1], 0, [], False)
        flat = reply[4]
        runs = []
        for i in range(0, len(flat), 7):
            run, attempt, fence, due, flags, value, payload = flat[i : i + 7]
            try:
                job = unpack_job(value)
                definition = with_payload(job.definition, payload) if payload else job.definition
            except (ValueError, KeyError):
                continue  # Nobody can call it: its lease runs out and reap decides. The others go on.
            runs.append(
                FetchedRun(
                    RunId(run.decode()),
                    int(attempt),
                    int(fence),
                    int(due),
                    FLAG_MANUAL in flags.decode(),
                    job.head,
                    definition,
                )
            )
        return FetchReply(reply[1], int(reply[2]), runs, reply[3] == b"1")

    async def finish(self, worker: WorkerId, *, request: int, items: Sequence[FinishItem]) -> list[str]:
        """tags, one an item: ok, already (a repeat of this request), stale_fence, missing."""
        group = [(i.run, i.fence, i.outcome.code, i.delay_ms, i.started_at, i.error[:MAX_ERROR]) for i in items]
        return tags((await self._call("finish", group, worker=worker, request=request))[2])

    async def requeue(self, worker: WorkerId, items: Sequence[tuple[RunId, int]]) -> list[str]:
        """Runs (and fences) that were fetched and not started. tags: ok, stale_fence, missing."""
        return tags((await self._call("requeue", items, worker=worker))[2])

    async def renew(self, worker: WorkerId, *, lease_ms: int, items: Sequence[tuple[RunId, int]]) -> RenewReply:
        reply = await self._call("renew", items, worker=worker, lease_ms=lease_ms)
        return RenewReply(reply[1], int(reply[2]), tags(reply[3]))

    async def adopt(
        self, worker: WorkerId, *, lease_ms: int, queues: Sequence[str], items: Sequence[tuple[RunId, int, int]]
    ) -> list[str]:
        """Presents (run, attempt, fence) held since before a recovery. tags: ok, stale_fence, missing."""
        reply = await self._call("adopt", items, worker=worker, lease_ms=lease_ms, queues=",".join(queues))
        return tags(reply[3])

    async def leave_silent(self, *, silent_ms: int) -> int:
        """Forgets workers that were not heard of for silent_ms, nor for two of their leases; how many."""
        now = await self.time()
        found = await self._redis(self.client.hgetall(self.keys.workers))
        silent = []
        for worker, value in found.items():
            seen, _, rest = value.decode().partition("|")
            lease = rest.rpartition("|")[2]
            if int(seen) < now - max(silent_ms, 2 * int(lease) if lease.isdigit() else 0):
                silent.append(WorkerId(worker.decode()))
        for name in silent:
            await self.leave(name)
        return len(silent)

    async def leave(self, worker: WorkerId) -> None:
        """Forgets a worker that holds nothing any more."""
        pipe = self.client.pipeline(transaction=True)
        for name in (self.keys.workers, self.keys.requests, self.keys.finishes):
            pipe.hdel(name, worker)
        pipe.srem(self.keys.unconfirmed, worker)
        await self._redis(pipe.execute())
