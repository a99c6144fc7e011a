"""Says when the ledger may be told, or judged by, what was just seen in Redis.

That is when nothing that belongs to it is still on its way to the ledger, and nothing of it was lost meanwhile.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

from rsched.ledger import Ledger
from rsched.ledger.positions import parse_position
from rsched.recorder.ledger_trust import LOOK_MS, Mark, behind, mark_of, unsettled
from rsched.store.store import Store

# A part yields after each bounded piece of work.
Part = AsyncIterator[None]


class Look:
    """begin() before the first reading, recorded() after it, holds() after the last one: False means to begin anew.

    Authority: the generation. Each loss of Redis, and each change of its server, ends in a recovery that has another.
    """

    def __init__(self, store: Store, ledger: Ledger, *, shard: str) -> None:
        self._store, self._ledger, self._shard = store, ledger, shard
        self._generation: int | None = None

    async def begin(self) -> Part:
        """Ends when the shard is open."""
        self._generation = await self._opened()
        while self._generation is None:
            await self._store.connection.process_clock.sleep(LOOK_MS)
            yield
            self._generation = await self._opened()

    async def recorded(self, *, settled: bool = False) -> Part:
        """Ends when the ledger has all that it will ever have of what is in the journal now.

        Args:
            settled: Wait also until Redis has been given back all that it may have lost.
        """
        mark = await mark_of(self._store)
        while await self._more_to_come(mark) or (settled and await unsettled(self._store)):
            await self._store.connection.process_clock.sleep(LOOK_MS)
            yield

    async def holds(self) -> bool:
        """Returns whether Redis lost nothing since begin().

        Where it did, the journal of what was seen may be lost with it, and what was missing may have been on its way back.
        """
        return self._generation is not None and await self._opened() == self._generation

    async def _opened(self) -> int | None:
        marker = await self._store.recovery.get_marker()
        return marker.generation if marker is not None and marker.matches and marker.state == "open" else None

    async def _more_to_come(self, mark: Mark) -> bool:
        for stream in await behind(self._ledger, shard=self._shard, mark=mark):
            # The position passes over what is trimmed only with the next entry, which may be long in coming.
            first = await self._store.journal.get_first_id(stream)
            if first is not None and parse_position(first) <= mark[stream]:
                return True
        return False
