"""One stream of a shard's journal to the ledger: read, record, trim behind."""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable

from rsched.core.errors import Unavailable
from rsched.core.jobs.packed import Event, QuarantineEvent, unpack_event
from rsched.ledger import Ledger
from rsched.ledger.positions import START, Position, parse_position
from rsched.recorder.counts import count_recorded
from rsched.runtime import faults
from rsched.runtime.clock import Clock
from rsched.runtime.log import get_logger
from rsched.store.store import Store

_log = get_logger("rsched.recorder")
# An entry has up to 2,000 events, most have a few: this many entries are read at once.
_ENTRIES = 256
_TRIM_EVERY_MS = 1000

Entry = tuple[Position, list[Event]]
Gap = Callable[[str, Position, Position], Awaitable[None]]


class StreamRecorder:
    """Authority: the position in the ledger. Whatever goes wrong, the next step reads it again and goes on from there."""

    def __init__(
        self, store: Store, ledger: Ledger, *, shard: str, stream: str, clock: Clock, batch: int, keep_ms: int,
        linger_ms: float, gap: Gap,
    ) -> None:  # fmt: skip
        """linger_ms: the pause after a small batch, which makes the next one larger. gap: is told of missing entries."""
        self._store, self._ledger, self._clock = store, ledger, clock
        self._shard, self._stream = shard, stream
        self._batch, self._keep_ms, self._linger_ms = batch, keep_ms, linger_ms
        self._gap = gap
        self._position: Position | None = None
        self._buffer: deque[Entry] = deque()
        # Ids don't tell the time, so what is old enough to trim is known from when it was recorded.
        self._recorded: deque[tuple[Position, int]] = deque()

    async def step(self, *, block_ms: int) -> bool:
        """Records one batch; waits up to block_ms for something to record. True when it recorded. Unavailable."""
        try:
            return await self._step(block_ms)
        except Unavailable:
            self._position = None
            raise

    async def _step(self, block_ms: int) -> bool:
        if self._position is None:
            self._buffer.clear()
            self._position = await self._begin()
            if self._position is None:
                return True
        if not self._buffer:
            await self._read(self._position, block_ms)
        if not self._buffer:
            await self._trim()
            return False
        faults.point("recorder.after_read")
        aside = self._ledger.write.quarantined(self._shard, self._stream)
        new, events = self._take()
        await self._tell_gaps(self._position, new)
        if not await self._ledger.write.record(
            self._shard, stream=self._stream, expected=str(self._position), new=str(new[-1]), events=events
        ):
            _log.warning("the position moved", extra={"fields": {"shard": self._shard, "stream": self._stream}})
            self._position = None
            return True
        self._position = new[-1]
        aside = self._ledger.write.quarantined(self._shard, self._stream) - aside
        count_recorded(self._store.connection.metrics, self._stream, events, aside=aside)
        faults.point("recorder.after_commit")
        await self._trim()
        if self._linger_ms and block_ms and len(events) < self._batch // 2:
            await self._clock.sleep(self._linger_ms)
        return True

    async def _read(self, position: Position, block_ms: int) -> None:
        found = await self._store.journal.read({self._stream: str(position)}, block_ms=block_ms, count=_ENTRIES)
        for _, entry_id, pairs in found:
            self._buffer.append((parse_position(entry_id), [_event(kind, payload) for kind, payload in pairs]))

    def _take(self) -> tuple[list[Position], list[Event]]:
        """The ids and events of one transaction: of one generation, at least one entry, about `batch` events."""
        ids: list[Position] = []
        events: list[Event] = []
        while self._buffer:
            entry_id, found = self._buffer[0]
            if ids and (entry_id.generation != ids[0].generation or len(events) + len(found) > self._batch):
                break
            ids.append(entry_id)
            events += found
            self._buffer.popleft()
        return ids, events

    async def _tell_gaps(self, before: Position, ids: list[Position]) -> None:
        for entry_id in ids:
            if not _follows(before, entry_id):
                await self._gap(self._stream, before, entry_id)
            before = entry_id

    async def _begin(self) -> Position | None:
        """Returns the ledger's position; None where someone else recorded meanwhile.

        It is moved past what is beyond it and trimmed already, as nothing new may come for long.
        """
        position = parse_position(await self._ledger.write.position(self._shard, self._stream))
        last = parse_position(await self._store.journal.get_last_id(self._stream))
        if last > position and await self._store.journal.get_first_id(self._stream) is None:
            await self._gap(self._stream, position, last)
            if not await self._ledger.write.record(
                self._shard, stream=self._stream, expected=str(position), new=str(last), events=[]
            ):
                return None
            return last
        return position

    async def _trim(self) -> None:
        assert self._position is not None
        now = self._clock.boot_ms()
        if self._position != START and (not self._recorded or now - self._recorded[-1][1] >= _TRIM_EVERY_MS):
            if not self._recorded or self._recorded[-1][0] != self._position:
                self._recorded.append((self._position, now))
            old = None
            while self._recorded and now - self._recorded[0][1] >= self._keep_ms:
                old = self._recorded.popleft()[0]
            if old is not None:
                await self._store.journal.trim(self._stream, str(old))
                faults.point("recorder.after_trim")


def _follows(before: Position, entry_id: Position) -> bool:
    """Entries of a generation are numbered from 0 without a gap."""
    if entry_id.generation == before.generation:
        return entry_id.sequence == before.sequence + 1
    return entry_id.sequence == 0


def _event(kind: bytes, payload: bytes) -> Event:
    try:
        return unpack_event(kind, payload)
    except (ValueError, KeyError, IndexError) as error:
        key = payload.partition(b"\n")[0][:200].decode(errors="replace")
        return QuarantineEvent(
            kind.decode(errors="replace"), key, f"{error}: {payload.decode(errors='backslashreplace')}", 0
        )
