from __future__ import annotations

import asyncio
from unittest.mock import AsyncMock, Mock

from rsched.core.jobs.packed import QuarantineEvent, SkipEvent, WatermarkEvent
from rsched.ledger.positions import Position
from rsched.recorder.counts import count_recorded
from rsched.recorder.gauges import Lag, depth_series
from rsched.recorder.resync.resync import Resync
from rsched.runtime.instruments import OTHER
from rsched.runtime.metrics import ALERTS, RECORDED, SKIPPED, TRANSACTIONS, Metrics


def lag(*samples: tuple[int, Position], position: Position | None) -> Lag:
    found = Lag()
    for now, last in samples:
        found.sample(last, now_ms=now)
    found.position = position
    return found


def test_nothing_lags_where_all_is_recorded_or_nothing_was_written() -> None:
    assert lag(position=None).entries == 0
    assert lag((0, Position(0, 0)), position=Position(0, 0)).entries == 0
    done = lag((0, Position(1, 4)), (5000, Position(1, 9)), position=Position(1, 9))
    assert (done.entries, done.age_ms(9000)) == (0, 0)


def test_the_age_is_that_of_the_first_sample_with_an_entry_that_is_not_recorded() -> None:
    behind = lag((0, Position(1, 4)), (5000, Position(1, 9)), (10_000, Position(1, 20)), position=Position(1, 4))
    assert (behind.entries, behind.age_ms(12_000)) == (16, 7000)
    behind.position = Position(1, 15)
    assert (behind.entries, behind.age_ms(12_000)) == (5, 2000)


def test_a_lag_grows_while_postgres_does_not_answer_and_nothing_more_is_written() -> None:
    behind = lag((0, Position(1, 4)), (1000, Position(1, 5)), (60_000, Position(1, 5)), position=Position(1, 4))
    assert (behind.entries, behind.age_ms(60_000)) == (1, 59_000)


def test_a_new_generation_counts_its_own_entries() -> None:
    assert lag((0, Position(2, 2)), position=Position(1, 700)).entries == 3


def test_a_stream_that_lost_its_tail_does_not_lag() -> None:
    lost = lag((0, Position(1, 9)), (5000, Position(1, 2)), position=Position(1, 9))
    assert (lost.entries, lost.age_ms(9000)) == (0, 0)


def test_the_depth_has_the_longest_queue_keys_and_the_rest_by_queue_and_priority() -> None:
    depth = {f"q:team-{i}:{i % 3}": i + 1 for i in range(300)}
    series = depth_series("s0", depth)
    assert len(series) == 203
    assert series["s0", "q", "team-299", "low"] == 300
    assert sum(series.values()) == sum(depth.values())
    assert series["s0", "q", OTHER, "high"] == sum(i + 1 for i in range(100) if i % 3 == 0)


def test_recorded_events_are_counted_with_what_was_skipped_and_quarantined() -> None:
    metrics = Metrics("recorder")
    events = [
        SkipEvent("j", 1, 9, 4, "misfire", 10),
        SkipEvent("j", 11, 11, 1, "paused", 12),
        SkipEvent("k", 1, 2, 2, "misfire", 10),
        WatermarkEvent(3, 10),
        QuarantineEvent("r", "j:1", "?", 0),
    ]
    count_recorded(metrics, "journal", events, aside=2)
    count_recorded(metrics, "journal", [], aside=0)
    assert metrics.number(RECORDED).child("journal").value == 5
    assert metrics.number(TRANSACTIONS).child("journal").value == 2
    assert {k[0]: v.value for k, v in metrics.number(SKIPPED).series()} == {"misfire": 6, "paused": 1}
    assert metrics.number(ALERTS).child("quarantined_event").value == 2


def test_a_gap_in_the_journal_is_an_alert() -> None:
    store = Mock(connection=Mock(metrics=Metrics("recorder")), resync=Mock(request=AsyncMock()))
    ledger = Mock(quarantine=Mock(record_gap=AsyncMock()))
    asyncio.run(Resync(store, ledger, shard="s0").found_gap("journal", Position(1, 2), Position(1, 9)))
    assert store.connection.metrics.number(ALERTS).child("journal_gap").value == 1
