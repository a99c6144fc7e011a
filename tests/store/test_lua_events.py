"""What a script writes into the journal, the recorder reads."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from rsched.core.jobs.packed import (
    CalendarEvent,
    Event,
    EventKind,
    JobEvent,
    PayloadEvent,
    QuarantineEvent,
    RangeEvent,
    RunEvent,
    RunRecord,
    SkipEvent,
    TriggerEvent,
    WatermarkEvent,
    WorkerEvent,
    unpack_event,
)
from rsched.core.states import RunState
from tests.store.lua_part import run_part

JOB, RUN = "j_0000000000000", "j_0000000000000:1700000000000"
RECORD = RunRecord(RunState.RETRYING, 2**40, "q:t:1", 3, 1, 77, "w_1", 5, 6, 7, "LPs")
# A range of 9007199254740990, past 14 digits, as the scripts hold it: text.
RANGE = "{job = ARGV[1], from = '1', to = '9007199254740990', schedule_version = '4', flags = 'LB', made_at = '8'}"
ROWS: list[tuple[str, str, list[str | bytes], Event]] = [
    (
        "event_run",
        "event_run(events, ARGV[1], ARGV[2], '9', '')",
        [RUN, RECORD.pack()],
        RunEvent(RUN, RECORD, 9, "", 0),
    ),
    (
        "event_run",
        "event_run(events, ARGV[1], ARGV[2], '9,5', ARGV[3])",
        [RUN, RECORD.pack(), "Boom: at line 3\nand 4"],
        RunEvent(RUN, RECORD, 9, "Boom: at line 3\nand 4", 5),
    ),
    ("event_job", "event_job(events, ARGV[1], ARGV[2])", [JOB, b"1|a\n\xff\n\x00"], JobEvent(JOB, b"1|a\n\xff\n\x00")),
    (
        "event_skip",
        "event_skip(events, ARGV[1], '1', '2', '3', 'withdrawn by an edit', '9')",
        [JOB],
        SkipEvent(JOB, 1, 2, 3, "withdrawn by an edit", 9),
    ),
    (
        "event_catchup",
        f"event_catchup(events, {RANGE}, '9')",
        [JOB],
        RangeEvent(JOB, 8, 9007199254740990, 1, 4, "LB", 9),
    ),
    (
        "event_catchup_done",
        f"event_catchup_done(events, {RANGE}, '9')",
        [JOB],
        RangeEvent(JOB, 8, 9007199254740990, 9007199254740991, 4, "LB", 9),
    ),
    (
        "event_payload",
        "event_payload(events, ARGV[1], ARGV[2])",
        [RUN, b"\x81\n\xa1"],
        PayloadEvent(RUN, b"\x81\n\xa1"),
    ),
    (
        "event_calendar",
        "event_calendar(events, 'ops', 'days off', '3', '9', ARGV[1])",
        [b"2026-01-01\n2026-12-25"],
        CalendarEvent("ops", "days off", 3, 9, b"2026-01-01\n2026-12-25"),
    ),
    ("event_trigger", "event_trigger(events, ARGV[1], 'hash', '9')", [JOB], TriggerEvent(JOB, "hash", 9)),
    ("event_watermark", "event_watermark(events, '17', '9')", [], WatermarkEvent(17, 9)),
    ("event_worker", "event_worker(events, 'w_1', 'a,b', '9')", [], WorkerEvent("w_1", "a,b", 9)),
    (
        "event_quarantine",
        "event_quarantine(events, 'run', ARGV[1], ARGV[2], '9')",
        ["a\nb", "what\nit held"],
        QuarantineEvent("run", "a b", "what\nit held", 9),
    ),
]


@pytest.fixture(scope="module")
def client(redis_url: str) -> Iterator[Any]:
    import redis

    with redis.Redis.from_url(redis_url) as c:
        yield c


@pytest.mark.parametrize(
    ("part", "call", "args", "event"), ROWS, ids=lambda v: v if str(v).startswith("event_") else ""
)
def test_an_event_that_a_script_writes_is_read_as_it_was_meant(
    client: Any, part: str, call: str, args: list[str | bytes], event: Event
) -> None:
    kind, payload = run_part(client, part, f"local events = {{}} {call} return events", *args)
    assert unpack_event(kind, payload) == event


def test_every_kind_of_event_has_a_row_here(client: Any) -> None:
    kinds = {
        run_part(client, part, f"local events = {{}} {call} return events[1]", *args) for part, call, args, _ in ROWS
    }
    assert kinds == {kind.value for kind in EventKind}


def test_a_catch_up_range_goes_through_lua_unchanged(client: Any) -> None:
    member = f"{JOB}|1|2|3|LB|9"
    driver = "return range_pack(range_parse(ARGV[1]))"
    assert run_part(client, "range_parse range_pack", driver, member).decode() == member
    for wrong in (f"{JOB}|1|2|3|LB", f"{JOB}|-1|2|3||9", "|1|2|3||9", ""):
        assert run_part(client, "range_parse", "return range_parse(ARGV[1]) and 1 or 0", wrong) == 0
