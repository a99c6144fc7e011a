"""Which partitions this scheduler works on: rendezvous hashing over the live schedulers, held as leases in Redis."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterable

from rsched.core.ids import PARTITIONS
from rsched.scheduler.ports import OwnershipStore


def fair_share(scheduler: str, live: Iterable[str]) -> frozenset[int]:
    """The partitions that fall to `scheduler`: the highest hash of (scheduler, partition) wins each.

    A scheduler that comes or goes moves only the partitions it wins or held (source: rendezvous hashing).
    """
    everyone = sorted({*live, scheduler})

    def weight(name: str, partition: int) -> bytes:
        return hashlib.blake2b(f"{name}\0{partition}".encode(), digest_size=8).digest()

    return frozenset(p for p in range(PARTITIONS) if max(everyone, key=lambda s: weight(s, p)) == scheduler)


class Ownership:
    """`epochs`: the partitions held, with the epoch each claim has to present.

    `next_end`: when (Redis-clock ms) the first lease of another scheduler ends unless it is renewed.
    """

    def __init__(self, store: OwnershipStore, scheduler: str, *, lease_ms: int, log: logging.Logger) -> None:
        self._store, self._scheduler, self._lease_ms, self._log = store, scheduler, lease_ms, log
        self._live: tuple[str, ...] = ()
        self._share: frozenset[int] = frozenset()
        self.epochs: dict[int, int] = {}
        self.next_end: int | None = None
        self._generation = store.connection.generation

    async def step(self) -> bool:
        """Renews the lease, takes what falls to this scheduler, gives up what no longer does. More: it just changed."""
        give = [p for p in self.epochs if p not in self._share]
        take = [p for p in self._share if p not in self.epochs]
        for p in give:
            del self.epochs[p]
        reply = await self._store.partitions.acquire(self._scheduler, lease_ms=self._lease_ms, take=take, give=give)
        if self._store.connection.generation != self._generation:
            # Opened anew: Redis may have forgotten who owned what, so all are taken again.
            self._generation = self._store.connection.generation
            self.epochs.clear()
            self.epochs.update(reply.taken)
            self._live = ()
            return True
        self.epochs.update(reply.taken)
        self.next_end = reply.next_end
        live = tuple(sorted(reply.live))
        if live == self._live:
            return False
        self._live = live
        self._share = fair_share(self._scheduler, live)
        self._log.info("schedulers live: %d, partitions that fall to this one: %d", len(live), len(self._share))
        return True

    @property
    def live(self) -> int:
        """How many schedulers were alive at the last step, this one among them."""
        return max(len(self._live), 1)

    def lost(self, partitions: Iterable[int]) -> None:
        """A claim was refused: somebody else owns these by now, or they must be taken again."""
        for p in partitions:
            self.epochs.pop(p, None)

    async def leave(self) -> None:
        """Frees all partitions for the others at once."""
        await self._store.partitions.acquire(self._scheduler, lease_ms=0)
        self.epochs.clear()
