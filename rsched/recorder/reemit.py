"""A Postgres that came back without its tail: what it should know and Redis still has is written into it once more.

The journal of what it lost is trimmed; what Redis holds is not. What ended in the gap has no history any more, which is on
record; where the ledger has it as open, it is closed, so that nothing brings it back.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence

import anyio

from rsched.core.ids import PARTITIONS
from rsched.core.packed import (
    Event,
    ExclusionsEvent,
    JobEvent,
    PayloadEvent,
    RangeEvent,
    RunEvent,
    TriggerEvent,
    WatermarkEvent,
)
from rsched.ledger import Ledger
from rsched.ledger.positions import Position
from rsched.recorder.ended import Ended, Part
from rsched.recorder.recorded import LOOK_MS, unsettled
from rsched.runtime.log import get_logger
from rsched.store.store import Store

_log = get_logger("rsched.recorder")
_PAGE = 1000
# Payloads and calendars may have 64 KB each.
_LARGE_PAGE = 100


class Reemission:
    """step() does one bounded piece of one part; an interrupted part begins anew, and a gap that is found begins all of it anew.
    The version that Postgres has decides, so that a piece too many changes nothing.

    Authority: the mark in Redis, set before anything is recorded past a gap and taken away at the end. While it is there the
    reconciler believes the ledger about nothing that Redis lacks.
    """

    def __init__(self, store: Store, ledger: Ledger, *, shard: str) -> None:
        self._store, self._ledger, self._shard = store, ledger, shard
        self._asked: bool | None = None
        # Gaps that were found: one that is found while a step waits for a server makes what the step did out of date.
        self._gaps = 0
        self._mark = anyio.Lock()
        self._parts: deque[Callable[[], Part]] | None = None
        self._part: Part | None = None
        self._rows, self._ended = 0, Ended(store, ledger, shard=shard)
        # The first whose definitions are not written yet: one that was interrupted begins anew, and not all of them.
        self._partition = 0

    async def found_gap(self, stream: str, before: Position, found: Position) -> None:
        """Entries after `before` up to `found` are in neither store. Unavailable."""
        self._store.metrics.alert("journal_gap")
        _log.error(
            "entries of the journal are missing: Postgres lost what it had recorded, or Redis what it had not",
            extra={"fields": {"shard": self._shard, "stream": stream, "after": str(before), "found": str(found)}},
        )
        async with self._mark:
            await self._store.set_reemit(True)
            self._gaps += 1
            self._asked, self._parts, self._part = True, None, None
        await self._ledger.record_gap(self._shard, stream=stream, before=before, found=found)

    async def step(self) -> bool:
        """True while there is more. Unavailable."""
        if self._asked is None:
            self._asked = await self._store.reemit()
        if not self._asked:
            return False
        if self._parts is None:
            self._parts = self._begin()
        if not self._parts:
            return await self._end()
        gaps = self._gaps
        part, self._part = self._part or self._parts[0](), None
        ended = True
        async for _ in part:
            ended = False
            break
        if gaps != self._gaps:
            return True
        if ended:
            self._parts.popleft()
        else:
            self._part = part
        return True

    def _begin(self) -> deque[Callable[[], Part]]:
        self._rows, self._partition, self._ended = 0, 0, Ended(self._store, self._ledger, shard=self._shard)
        # What has ended comes last: by then the ledger has all that has not.
        here = [self._exclusions, self._definitions, self._payloads, self._triggers, self._ranges, self._runs]
        return deque([*here, *self._ended.parts, self._watermarks])

    async def _end(self) -> bool:
        gaps = self._gaps
        async with self._mark:
            if gaps != self._gaps:
                return True
            await self._store.set_reemit(False)
            self._asked = False
        closed = self._ended.count
        fields = {
            "shard": self._shard,
            "rows": self._rows,
            **{f"closed_{kind}": closed[kind] for kind in sorted(closed)},
        }
        _log.warning("what Redis has is in Postgres again", extra={"fields": fields})
        if closed:
            _log.error(
                "what ended while its record was lost is closed, its outcome unknown",
                extra={"fields": {"shard": self._shard, **closed}},
            )
        return False

    async def _write(self, events: Sequence[Event]) -> None:
        if events:
            await self._ledger.write_again(self._shard, events)
            self._rows += len(events)

    async def _definitions(self) -> Part:
        while self._partition < PARTITIONS:
            cursor = -1
            while cursor:
                cursor, page = await self._store.page_of_values(self._partition, cursor=max(cursor, 0), count=_PAGE)
                await self._write([JobEvent(job, value) for job, value in page])
                yield
            self._partition += 1

    async def _exclusions(self) -> Part:
        cursor = -1
        while cursor:
            cursor, page = await self._store.page_of_exclusions(cursor=max(cursor, 0), count=_LARGE_PAGE)
            # When a version was made is nowhere any more.
            now = self._store.now_ms()
            await self._write([ExclusionsEvent(team, name, version, now, body) for team, name, version, body in page])
            yield

    async def _payloads(self) -> Part:
        cursor = -1
        while cursor:
            cursor, page = await self._store.page_of_payloads(cursor=max(cursor, 0), count=_LARGE_PAGE)
            await self._write([PayloadEvent(run, payload) for run, payload in page])
            yield

    async def _triggers(self) -> Part:
        cursor = -1
        while cursor:
            cursor, page = await self._store.page_of_triggers(cursor=max(cursor, 0), count=_PAGE)
            await self._write([TriggerEvent(job, key_hash, at) for job, key_hash, at in page])
            yield

    async def _ranges(self) -> Part:
        found, now = await self._store.ranges(), self._store.now_ms()
        for i in range(0, len(found), _PAGE):
            page = found[i : i + _PAGE]
            await self._write([RangeEvent(r.job, r.made_at, r.end, r.start, r.sv, r.flags, now) for r in page])
            yield

    async def _runs(self) -> Part:
        cursor = -1
        while cursor:
            cursor, page = await self._store.page_of_runs(cursor=max(cursor, 0), count=_PAGE)
            await self._write([RunEvent(run, record, self._store.now_ms(), "") for run, record in page])
            yield

    async def _watermarks(self) -> Part:
        """Without them what was claimed in the gap, and has no run in the ledger, would be owed once more after a loss of Redis.

        Workers are not written: nothing asks the ledger for them, and each is recorded again when it is next heard of.
        """
        dues, now = await self._dues()
        while await unsettled(self._store):
            await self._store.clock.sleep(LOOK_MS)
            yield
            dues, now = await self._dues()
        # As a claim marks them. Where nothing is due there is nothing to claim, and no mark is needed.
        await self._write([WatermarkEvent(partition, min(due, now)) for partition, due in dues.items()])
        yield

    async def _dues(self) -> tuple[dict[int, int], int]:
        # The instant first: what is put meanwhile is due after it.
        now = await self._store.time()
        return await self._store.first_dues(), now
