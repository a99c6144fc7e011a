"""A Postgres that came back without its tail: what it should know and Redis still has is written into it once more.

The journal of what it lost is trimmed; definitions and open runs are not. What ended in the gap has no history any more, which
is on record.
"""

from __future__ import annotations

from rsched.core.ids import PARTITIONS
from rsched.core.packed import Event, JobEvent, RunEvent
from rsched.ledger import Ledger
from rsched.ledger.positions import Position
from rsched.runtime.log import get_logger
from rsched.store.store import Store

_log = get_logger("rsched.recorder")
_PAGE = 1000


class Reemission:
    """step() writes a page of definitions, then of open runs; the version that Postgres has decides. Begun again, it starts over.

    Authority: the mark in Redis, set as soon as a gap is found and taken away at the end.
    """

    def __init__(self, store: Store, ledger: Ledger, *, shard: str) -> None:
        self._store, self._ledger, self._shard = store, ledger, shard
        self._partition, self._cursor, self._count = 0, 0, 0
        self._asked: bool | None = None

    async def found_gap(self, stream: str, before: Position, found: Position) -> None:
        """Entries after `before` up to `found` are in neither store. Unavailable."""
        self._store.metrics.alert("journal_gap")
        _log.error(
            "entries of the journal are missing: Postgres lost what it had recorded, or Redis what it had not",
            extra={"fields": {"shard": self._shard, "stream": stream, "after": str(before), "found": str(found)}},
        )
        await self._store.set_reemit(True)
        await self._ledger.record_gap(self._shard, stream=stream, before=before, found=found)
        self._partition = self._cursor = self._count = 0
        self._asked = True

    async def step(self) -> bool:
        """True while there is more. Unavailable."""
        if self._asked is None:
            self._asked = await self._store.reemit()
        if not self._asked:
            return False
        events: list[Event] = []
        if self._partition < PARTITIONS:
            self._cursor, page = await self._store.page_of_values(self._partition, cursor=self._cursor, count=_PAGE)
            events += [JobEvent(job, value) for job, value in page]
        else:
            self._cursor, runs = await self._store.page_of_runs(cursor=self._cursor, count=_PAGE)
            events += [RunEvent(run, record, self._store.now_ms(), "") for run, record in runs]
        if events:
            await self._ledger.write_again(self._shard, events)
            self._count += len(events)
        self._partition += self._cursor == 0
        if self._partition <= PARTITIONS:
            return True
        await self._store.set_reemit(False)
        self._asked = False
        _log.warning(
            "what Redis has is in Postgres again", extra={"fields": {"shard": self._shard, "rows": self._count}}
        )
        return False
