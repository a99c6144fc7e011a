"""Which schedulers and workers there are.

Authority: a scheduler's lease; of a worker, when it was last heard of. Forgetting a worker touches none of its leases, which end
by themselves. Errors: Unavailable.
"""

from __future__ import annotations

from typing import NamedTuple

from rsched.core.ids import WorkerId
from rsched.store.connection import Part


class LiveProcesses(NamedTuple):
    """Schedulers with a lease, and workers with the instant (ms) at which they were last heard of."""

    schedulers: list[str]
    workers: dict[str, int]


class Processes(Part):
    """Lists processes and forgets workers."""

    async def list_live(self) -> LiveProcesses:
        """Returns the schedulers with a lease and all workers that were not forgotten."""
        now, keys, client = await self._redis.clock.read(), self._redis.keys, self._redis.client
        schedulers = await self._redis.ask(client.zrange(keys.schedulers, f"({now}", "+inf", byscore=True))
        workers = await self._redis.ask(client.hgetall(keys.workers))
        return LiveProcesses(
            [scheduler.decode() for scheduler in schedulers],
            {worker.decode(): int(value.split(b"|", 1)[0]) for worker, value in workers.items()},
        )

    async def forget_worker(self, worker: WorkerId) -> None:
        """Forgets a worker that has no attempts any more."""
        keys = self._redis.keys
        pipe = self._redis.client.pipeline(transaction=True)
        for key in (keys.workers, keys.requests, keys.finishes):
            pipe.hdel(key, worker)
        pipe.srem(keys.unconfirmed, worker)
        await self._redis.ask(pipe.execute())

    async def forget_silent_workers(self, *, silent_ms: int) -> int:
        """Forgets workers that were not heard of for silent_ms, nor for two of their leases; returns how many."""
        now = await self._redis.clock.read()
        workers = await self._redis.ask(self._redis.client.hgetall(self._redis.keys.workers))
        silent = []
        for worker, value in workers.items():
            seen, _, rest = value.decode().partition("|")
            lease = rest.rpartition("|")[2]
            if int(seen) < now - max(silent_ms, 2 * int(lease) if lease.isdigit() else 0):
                silent.append(WorkerId(worker.decode()))
        for name in silent:
            await self.forget_worker(name)
        return len(silent)
