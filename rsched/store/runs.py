"""Runs in Redis, from the claim that makes one to the end of its last attempt.

Authority: the lease says who may work, and the fence which attempt a write comes from; both are judged inside the scripts, by the
server's own time. A late or repeated call is answered with a tag (`stale_fence`, `missing`, `already`) and changes nothing.
Errors: ShardClosed, Unavailable. `renewer.SyncRenewer` is the synchronous twin of `renew`.
"""

from __future__ import annotations

from collections.abc import Sequence

from rsched.core.ids import RunId, WorkerId
from rsched.core.jobs.packed import RunRecord, unpack_run
from rsched.store.connection import Part, tags
from rsched.store.replies import VerbReply, call_verb
from rsched.store.run_values import (
    Claimed,
    ExpiredRun,
    FetchReply,
    FinishItem,
    MisfireItem,
    ReapItem,
    Released,
    RenewReply,
    read_claimed,
    read_expired,
    read_fetched,
)

# Characters of an error that are kept.
MAX_ERROR = 2000


def to_bytes(run: str) -> bytes:
    """Returns a run's id as Redis has it; one that is not text came through Python unharmed."""
    return run.encode(errors="surrogateescape")


class Runs(Part):
    """Makes, hands out, ends and reads runs."""

    async def claim(
        self, scheduler: str, *, horizon_ms: int, limit: int, partitions: Sequence[tuple[int, int]]
    ) -> Claimed:
        """Makes runs of what is due.

        Args:
            scheduler: Who claims.
            horizon_ms: How far from now an occurrence may be due.
            limit: The most runs to make.
            partitions: (partition, epoch) to look at; an epoch of 0 leaves ownership unchecked.
        """
        reply = await self._redis.call("claim", partitions, scheduler=scheduler, horizon_ms=horizon_ms, limit=limit)
        if reply[0] == "full":
            return Claimed(reply[1], 0, more=False, needs=[], late=[], stale=[], full=True)
        return Claimed(reply[1], int(reply[2]), reply[3] == b"1", *read_claimed(reply[4:7]))

    async def resolve_misfires(self, items: Sequence[MisfireItem]) -> list[str]:
        """Applies to late jobs what their misfire policy says; returns a tag an item: ok, stale."""
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
        return tags((await self._redis.call("resolve_misfires", group))[2])

    async def release(self, *, limit: int) -> Released:
        """Moves what has come due to the queue streams, up to `limit` from each of staged and retries."""
        reply = await self._redis.call("release", limit=limit)
        return Released(reply[1], int(reply[2]), reply[3] == b"1", int(reply[4]) if reply[4] else None)

    async def fetch(
        self, worker: WorkerId, *, request: int, slots: int, lease_ms: int, queues: Sequence[str]
    ) -> FetchReply:
        """Hands runs to a worker under a lease and new fences. It is the worker's heartbeat, too.

        Args:
            worker: Who fetches.
            request: The number of the request: a repeat of the same one gives the same runs.
            slots: The most runs to hand out; none are where Redis has too little memory left.
            lease_ms: How long the leases are.
            queues: The queues that the worker serves.
        """
        reply = await self._redis.call(
            "fetch",
            [(queue,) for queue in queues],
            worker=worker,
            request=request,
            slots=slots,
            lease_ms=lease_ms,
            visits=max(64, 4 * slots),
        )
        if reply[0] == "full":
            return FetchReply(reply[1], 0, [], more=False)
        return FetchReply(reply[1], int(reply[2]), read_fetched(reply[4]), reply[3] == b"1")

    async def renew(self, worker: WorkerId, *, lease_ms: int, items: Sequence[tuple[RunId, int]]) -> RenewReply:
        """Renews the leases of (run, fence) by lease_ms from now."""
        reply = await self._redis.call("renew", items, worker=worker, lease_ms=lease_ms)
        return RenewReply(reply[1], int(reply[2]), tags(reply[3]))

    async def finish(self, worker: WorkerId, *, request: int, items: Sequence[FinishItem]) -> list[str]:
        """Ends attempts.

        Args:
            worker: Whose they are.
            request: The number of the request, by which a repeat is known.
            items: How each ended.

        Returns:
            A tag an item: ok, already (a repeat of this request), stale_fence, missing.
        """
        group = [(i.run, i.fence, i.outcome.code, i.delay_ms, i.started_at, i.error[:MAX_ERROR]) for i in items]
        return tags((await self._redis.call("finish", group, worker=worker, request=request))[2])

    async def requeue(self, worker: WorkerId, items: Sequence[tuple[RunId, int]]) -> list[str]:
        """Puts (run, fence) back that were fetched and not started; returns a tag an item: ok, stale_fence, missing."""
        return tags((await self._redis.call("requeue", items, worker=worker))[2])

    async def adopt(
        self, worker: WorkerId, *, lease_ms: int, queues: Sequence[str], items: Sequence[tuple[RunId, int, int]]
    ) -> list[str]:
        """Presents attempts that a worker has had since before a recovery.

        Args:
            worker: Whose they are.
            lease_ms: How long their leases are from now.
            queues: The queues that the worker serves.
            items: Run, attempt and fence of each.

        Returns:
            A tag an item: ok, stale_fence, missing.
        """
        reply = await self._redis.call("adopt", items, worker=worker, lease_ms=lease_ms, queues=",".join(queues))
        return tags(reply[3])

    async def cancel(self, run: RunId) -> VerbReply:
        """Cancels a run.

        Returns:
            Tags: ok, cancelling (its worker was asked to stop it), missing.
        """
        return await call_verb(self._redis, "cancel", run=run)

    async def expired_leases(self, *, after_ms: int, limit: int) -> tuple[list[ExpiredRun], bool]:
        """Returns runs whose lease ended at least after_ms ago, up to `limit`, and whether there are more."""
        reply = await self._redis.call("expired_leases", after_ms=after_ms, limit=limit)
        return read_expired(reply[3]), reply[2] == b"1"

    async def reap(self, items: Sequence[ReapItem], *, after_ms: int) -> list[str]:
        """Ends attempts whose lease ended at least after_ms ago.

        Returns:
            A tag an item: ok, later (of N: its definition is coming back, or is there by now), stale_fence, missing.
        """
        return tags((await self._redis.call("reap", items, after_ms=after_ms))[2])

    async def get(self, run: RunId) -> RunRecord | None:
        """Returns a run that is not final, None where there is none."""
        record = await self._redis.ask(self._redis.client.hget(self._redis.keys.runs, run))
        return None if record is None else unpack_run(record.decode())

    async def read_packed(self, runs: Sequence[RunId]) -> list[bytes | None]:
        """Reads the packed records of runs, None for each that there is not."""
        fields = [to_bytes(run) for run in runs]
        return list(await self._redis.ask(self._redis.client.hmget(self._redis.keys.runs, fields))) if runs else []
