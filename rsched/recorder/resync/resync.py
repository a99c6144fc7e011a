"""A Postgres that came back without its tail: what it should know and Redis still has is written into it once more.

The journal of what it lost is trimmed; what Redis holds is not. What ended in the gap has no history any more, which is on
record; where the ledger has it as open, it is closed, so that nothing brings it back.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence

import anyio

from rsched.core.ids import PARTITIONS, JobId
from rsched.core.jobs.packed import (
    CalendarEvent,
    Event,
    JobEvent,
    PayloadEvent,
    RangeEvent,
    RunEvent,
    TriggerEvent,
    WatermarkEvent,
)
from rsched.ledger import Ledger
from rsched.ledger.positions import Position
from rsched.recorder.resync.ended_in_gap import Ended
from rsched.recorder.resync.observation import Look, Part
from rsched.runtime.log import get_logger
from rsched.store.store import Store

_log = get_logger("rsched.recorder")
_PAGE = 1000
# Payloads and calendars may have 64 KB each.
_LARGE_PAGE = 100
# Of few jobs each: as many as can be read in one step.
_PARTITIONS_AT_ONCE = 16


class Resync:
    """Of one recorder, while it has the shard's lock: what another began has to begin anew.

    step() does one bounded piece of one part; an interrupted part begins anew, and a gap that is found begins all of it anew.
    The version that Postgres has decides, so that a piece too many changes nothing.

    Authority: the mark in Redis, set before anything is recorded past a gap and taken away at the end. While it is there the
    reconciler believes the ledger about nothing that Redis lacks. Asked for at each step: a Redis that comes back in another
    state may have it again, or lack it.
    """

    def __init__(self, store: Store, ledger: Ledger, *, shard: str) -> None:
        self._store, self._ledger, self._shard = store, ledger, shard
        self._told: set[tuple[str, Position, Position]] = set()
        # Gaps that were found: one that is found while a step waits for a server makes what the step did out of date.
        self._gaps = 0
        self._mark = anyio.Lock()
        self._parts: deque[Callable[[], Part]] | None = None
        self._part: Part | None = None
        self._rows, self._ended = 0, Ended(store, ledger, shard=shard)
        # The first whose definitions are not written yet: one that was interrupted begins anew, and not all of them.
        self._partition = 0

    async def found_gap(self, stream: str, before: Position, found: Position) -> None:
        """Puts on record that the entries after `before` up to `found` are in neither store, and asks for a resync.

        A gap that is told again, as each try to record past it does, changes nothing.

        Raises:
            Unavailable: A server does not answer.
        """
        gap = (stream, before, found)
        async with self._mark:
            new = await self._ledger.quarantine.record_gap(self._shard, stream=stream, before=before, found=found)
            if new:
                self._store.connection.metrics.alert("journal_gap")
                _log.error(
                    "entries of the journal are missing: Postgres lost what it had recorded, or Redis what it had not",
                    extra={
                        "fields": {"shard": self._shard, "stream": stream, "after": str(before), "found": str(found)}
                    },
                )
            elif gap in self._told:
                return
            # One that was on record already may be so by a recorder that ended before it came to this.
            await self._store.resync.request()
            self._gaps += 1
            self._parts, self._part = None, None
            self._told.add(gap)

    async def step(self) -> bool:
        """True while there is more. Unavailable."""
        if not await self._wanted():
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

    async def _wanted(self) -> bool:
        if await self._store.resync.is_requested():
            return True
        async with self._mark:
            if self._parts is None:
                # A gap that was found meanwhile has set it.
                return await self._store.resync.is_requested()
            # Redis lost it in the middle of the work.
            await self._store.resync.request()
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
            await self._store.resync.finish()
            self._parts = None
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
            await self._ledger.write.resync(self._shard, events)
            self._rows += len(events)

    async def _definitions(self) -> Part:
        """What a job's record says is settled, runs and skips that are still in the journal may be all there is of."""
        cursor, look = 0, Look(self._store, self._ledger, shard=self._shard)
        while self._partition < PARTITIONS:
            async for _ in look.begin():
                yield
            partition, following, values = await self._some_values(self._partition, cursor)
            async for _ in look.recorded():
                yield
            if await look.holds():
                await self._write([JobEvent(job, value) for job, value in values])
                self._partition, cursor = partition, following
            else:
                cursor = 0
            yield

    async def _some_values(self, partition: int, cursor: int) -> tuple[int, int, list[tuple[JobId, bytes]]]:
        """The partition and cursor that follow, and (job, whole value) of up to about two pages."""
        found: list[tuple[JobId, bytes]] = []
        for _ in range(_PARTITIONS_AT_ONCE):
            cursor, page = await self._store.resync.read_jobs(partition, cursor=cursor, count=_PAGE)
            found += page
            partition += not cursor
            if partition == PARTITIONS or len(found) >= _PAGE:
                break
        return partition, cursor, found

    async def _exclusions(self) -> Part:
        cursor = -1
        while cursor:
            cursor, page = await self._store.resync.read_calendars(cursor=max(cursor, 0), count=_LARGE_PAGE)
            # When a version was made is nowhere any more.
            now = self._store.clock.now_ms()
            await self._write([CalendarEvent(team, name, version, now, body) for team, name, version, body in page])
            yield

    async def _payloads(self) -> Part:
        cursor = -1
        while cursor:
            cursor, page = await self._store.resync.read_payloads(cursor=max(cursor, 0), count=_LARGE_PAGE)
            await self._write([PayloadEvent(run, payload) for run, payload in page])
            yield

    async def _triggers(self) -> Part:
        cursor = -1
        while cursor:
            cursor, page = await self._store.resync.read_triggers(cursor=max(cursor, 0), count=_PAGE)
            await self._write([TriggerEvent(job, key_hash, at) for job, key_hash, at in page])
            yield

    async def _ranges(self) -> Part:
        """A range without what was paid from it, the runs of which may still be in the journal."""
        look, sure = Look(self._store, self._ledger, shard=self._shard), False
        while not sure:
            async for _ in look.begin():
                yield
            found, now = await self._store.catchup.list_all(), self._store.clock.now_ms()
            async for _ in look.recorded():
                yield
            sure = await look.holds()
        for i in range(0, len(found), _PAGE):
            page = found[i : i + _PAGE]
            await self._write(
                [RangeEvent(r.job, r.made_at, r.end, r.start, r.schedule_version, r.flags, now) for r in page]
            )
            yield

    async def _runs(self) -> Part:
        cursor = -1
        while cursor:
            cursor, page = await self._store.resync.read_runs(cursor=max(cursor, 0), count=_PAGE)
            await self._write([RunEvent(run, record, self._store.clock.now_ms(), "") for run, record in page])
            yield

    async def _watermarks(self) -> Part:
        """Writes the watermarks of all partitions.

        Without them what was claimed in the gap, and has no run in the ledger, would be pending again after a loss of Redis.

        Workers are not written: nothing asks the ledger for them, and each is recorded again when it is next heard of.
        """
        look, sure = Look(self._store, self._ledger, shard=self._shard), False
        while not sure:
            async for _ in look.begin():
                yield
            # The instant first: what is put meanwhile is due after it.
            now = await self._store.clock.read()
            dues = await self._store.partitions.get_first_due_times()
            async for _ in look.recorded(settled=True):
                yield
            sure = await look.holds()
        # As a claim marks them. Where nothing is due there is nothing to claim, and no mark is needed.
        await self._write([WatermarkEvent(partition, min(due, now)) for partition, due in dues.items()])
        yield
