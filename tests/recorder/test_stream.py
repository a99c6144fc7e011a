from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from rsched.core.errors import Unavailable
from rsched.core.jobs.packed import Event, QuarantineEvent, RunEvent
from rsched.ledger.positions import Position
from rsched.recorder.stream import StreamRecorder
from rsched.runtime.metrics import Metrics
from tests.ledger.events import T0, run


class FakeClock:
    now = 0

    def boot_ms(self) -> int:
        return self.now

    def wall_ms(self) -> int:
        return self.now

    async def sleep(self, ms: float) -> None:
        self.now += int(ms)


class FakeJournal:
    """The streams of a store, of which one is asked for. last: the last id ever added. trimmed: what was asked to go."""

    def __init__(self, *entries: tuple[str, list[tuple[bytes, bytes]]]) -> None:
        self.entries, self.trimmed, self.last = list(entries), [], "0-0"

    async def read(self, positions: dict[str, str], *, block_ms: int, count: int) -> list[Any]:
        entries, self.entries = self.entries, []
        return [(next(iter(positions)), *e) for e in entries]

    async def get_last_id(self, stream: str) -> str:
        return self.last

    async def get_first_id(self, stream: str) -> str | None:
        return None

    async def trim(self, stream: str, min_id: str) -> int:
        self.trimmed.append(min_id)
        return 0


class FakeStore:
    """What a recorder of one stream needs of a store."""

    def __init__(self, *entries: tuple[str, list[tuple[bytes, bytes]]]) -> None:
        self.connection = SimpleNamespace(metrics=Metrics())
        self.journal = FakeJournal(*entries)


class FakeLedger:
    def __init__(self) -> None:
        self.at, self.calls, self.fail = "0-0", [], 0
        self.write = self

    def quarantined(self, shard: str, stream: str) -> int:
        return 0

    async def position(self, shard: str, stream: str) -> str:
        return self.at

    async def record(self, shard: str, *, stream: str, expected: str, new: str, events: list[Event]) -> bool:
        if self.fail:
            self.fail -= 1
            raise Unavailable("away")
        if expected != self.at:
            return False
        self.calls.append((expected, new, len(events)))
        self.at = new
        return True


def pair(event: RunEvent) -> tuple[bytes, bytes]:
    return b"r", "\n".join((event.run, event.record.pack(), str(event.at), event.detail)).encode()


def entry(entry_id: str, events: int = 1) -> tuple[str, list[tuple[bytes, bytes]]]:
    return entry_id, [pair(run(T0 + i)) for i in range(events)]


Gaps = list[tuple[str, str]]


def recorder_of(
    store: FakeStore, ledger: FakeLedger, clock: FakeClock, *, batch: int = 10, gaps: Gaps | None = None
) -> StreamRecorder:
    async def gap(stream: str, before: Position, found: Position) -> None:
        assert gaps is not None, f"a gap from {before} to {found}"
        gaps.append((str(before), str(found)))

    return StreamRecorder(
        store, ledger, shard="s0", stream="journal", clock=clock, batch=batch, keep_ms=60_000, linger_ms=0, gap=gap
    )  # type: ignore[arg-type]


def test_batches_are_filled_and_end_with_their_generation() -> None:
    store = FakeStore(entry("1-0", 6), entry("1-1", 4), entry("1-2", 50), entry("1-3"), entry("2-0"))
    ledger = FakeLedger()
    recorder = recorder_of(store, ledger, FakeClock())

    async def main() -> None:
        while await recorder.step(block_ms=0):
            pass

    asyncio.run(main())
    assert ledger.calls == [("0-0", "1-1", 10), ("1-1", "1-2", 50), ("1-2", "1-3", 1), ("1-3", "2-0", 1)]


def test_after_an_outage_it_goes_on_from_the_ledgers_position() -> None:
    store, ledger = FakeStore(entry("1-0")), FakeLedger()
    ledger.fail = 1
    recorder = recorder_of(store, ledger, FakeClock())

    async def main() -> None:
        with pytest.raises(Unavailable):
            await recorder.step(block_ms=0)
        store.journal.entries = [entry("1-0"), entry("1-1")]
        assert await recorder.step(block_ms=0)

    asyncio.run(main())
    assert ledger.calls == [("0-0", "1-1", 2)]


@pytest.mark.parametrize(
    ("at", "entries", "expected"),
    [
        ("1-4", ["1-5", "1-6", "2-0"], []),
        ("1-4", ["2-0"], []),
        ("0-0", ["1-0"], []),
        ("1-4", ["1-6"], [("1-4", "1-6")]),
        ("1-4", ["1-5", "1-7"], [("1-5", "1-7")]),
        ("1-4", ["2-1"], [("1-4", "2-1")]),
        ("0-0", ["1-3"], [("0-0", "1-3")]),
    ],
)
def test_a_gap_in_the_numbers_is_told(at: str, entries: list[str], expected: Gaps) -> None:
    gaps: Gaps = []
    ledger = FakeLedger()
    ledger.at = at
    recorder = recorder_of(FakeStore(*map(entry, entries)), ledger, FakeClock(), gaps=gaps)

    async def main() -> None:
        while await recorder.step(block_ms=0):
            pass

    asyncio.run(main())
    assert gaps == expected


def test_entries_that_were_trimmed_before_they_were_recorded_are_told_though_none_follows() -> None:
    gaps: Gaps = []
    store, ledger = FakeStore(), FakeLedger()
    store.journal.last, ledger.at = "3-7", "3-2"
    for _ in range(2):
        asyncio.run(recorder_of(store, ledger, FakeClock(), gaps=gaps).step(block_ms=0))
    assert gaps == [("3-2", "3-7")]
    assert ledger.at == "3-7"


def test_an_unreadable_event_becomes_a_quarantined_event() -> None:
    class Keeping(FakeLedger):
        async def record(self, shard: str, *, stream: str, expected: str, new: str, events: list[Event]) -> bool:
            self.calls += events
            return True

    ledger = Keeping()
    store = FakeStore(("1-0", [(b"r", b"junk"), (b"?", b"a\nb"), (b"w", b"1")]))
    asyncio.run(recorder_of(store, ledger, FakeClock()).step(block_ms=0))  # type: ignore[arg-type]
    assert [(type(e), e.kind, e.key) for e in ledger.calls] == [
        (QuarantineEvent, "r", "junk"),
        (QuarantineEvent, "?", "a"),
        (QuarantineEvent, "w", "1"),
    ]


def test_what_was_recorded_a_minute_ago_is_trimmed() -> None:
    store, ledger, clock = FakeStore(entry("1-0")), FakeLedger(), FakeClock()
    recorder = recorder_of(store, ledger, clock)

    async def main() -> None:
        await recorder.step(block_ms=0)
        for n in range(1, 70):
            clock.now += 1000
            store.journal.entries = [entry(f"1-{n}")]
            await recorder.step(block_ms=0)

    asyncio.run(main())
    assert store.journal.trimmed[-1] == "1-9"
    assert len(store.journal.trimmed) == 10
