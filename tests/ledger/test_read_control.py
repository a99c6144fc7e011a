"""What the API asks the ledger for control: skips, runs of a range, open catch-ups, payloads, calendars."""

from __future__ import annotations

import msgspec

from rsched.core.ids import JobId, RunId
from rsched.core.jobs.model import ScheduleSpec
from rsched.core.jobs.packed import CalendarEvent, Event, PayloadEvent, RangeEvent, SkipEvent
from rsched.core.states import JobState, RunState
from rsched.ledger import Ledger
from tests.ledger.events import T0, job, job_id, run
from tests.ledger.test_read import all_pages, with_events

JOB = JobId(job_id())
MINUTE = 60_000


def test_skips_are_ranges_and_skipped_runs_each_once_and_counted_by_reason(database_url: str) -> None:
    events: list[Event] = [
        job(),
        *(SkipEvent(JOB, T0 - i * MINUTE, T0 - i * MINUTE, 1, "paused", T0) for i in range(1, 6)),
        SkipEvent(JOB, T0 - MINUTE, T0 - MINUTE, 2, "misfire", T0),
        run(T0, state=RunState.SKIPPED, detail="overlap"),
        run(T0 + MINUTE, state=RunState.SUCCEEDED, fence=3),
    ]

    async def body(ledger: Ledger) -> None:
        found = await all_pages(lambda c: ledger.skips.list(JOB, cursor=c, limit=2))
        assert len(set(found)) == len(found) == 7
        assert [s.first_at for s in found] == sorted((s.first_at for s in found), reverse=True)
        assert await ledger.skips.totals(JOB) == {"misfire": 2, "overlap": 1, "paused": 5}

    with_events(database_url, events, body)


def test_a_backfill_sees_the_runs_of_its_range_and_what_is_still_to_be_paid(database_url: str) -> None:
    events: list[Event] = [
        job(),
        run(T0, fence=2, state=RunState.SUCCEEDED),
        run(T0 + MINUTE),
        run(T0 + 2 * MINUTE, state=RunState.SKIPPED),
        run(T0 + 3 * MINUTE),
        RangeEvent(JOB, T0, T0 + 9 * MINUTE, T0 + 8 * MINUTE, 1, "B", T0),
        RangeEvent(JOB, T0, T0 + 7 * MINUTE, T0 + 8 * MINUTE, 1, "B", T0),
    ]

    async def body(ledger: Ledger) -> None:
        asked = {"since": T0, "until": T0 + 3 * MINUTE}
        assert await ledger.runs.occurrences(JOB, **asked, schedule_version=1) == {T0, T0 + MINUTE, T0 + 2 * MINUTE}
        assert await ledger.runs.occurrences(JOB, **asked, schedule_version=2) == {T0, T0 + MINUTE}
        assert await ledger.runs.occurrences(JOB, since=0, until=T0 + 1, schedule_version=1) == {T0}
        assert await ledger.jobs.pending_catch_ups(JOB, schedule_version=1) == [(T0 + 8 * MINUTE, T0 + 9 * MINUTE)]
        assert await ledger.jobs.pending_catch_ups(JOB, schedule_version=2) == []

    with_events(database_url, events, body)


def test_payloads_and_calendars_are_found_and_a_deleted_calendar_is_in_no_list(database_url: str) -> None:
    encode = msgspec.msgpack.encode
    named = ScheduleSpec(cron="0 2 * * *", timezone="UTC", exclude=["days"])
    events: list[Event] = [
        job("uses", schedule=named),
        job("done", schedule=named, state=JobState.COMPLETED),
        job("other"),
        PayloadEvent("r", encode({"a": 1})),
        CalendarEvent("default", "days", 1, T0, encode(["2026-12-25"])),
        CalendarEvent("default", "gone", 2, T0, b""),
    ]

    async def body(ledger: Ledger) -> None:
        assert (await ledger.runs.payload("r"), await ledger.runs.payload(RunId("s"))) == (encode({"a": 1}), None)
        found = await ledger.calendars.get([("default", "days"), ("default", "gone"), ("default", "none")])
        assert {k[1]: c.entries for k, c in found.items()} == {"days": ["2026-12-25"], "gone": None}
        assert [c.name for c in (await ledger.calendars.list("default"))[0]] == ["days"]
        assert [j.definition.name for j in await ledger.jobs.that_may_name("default", "days")] == ["uses"]

    with_events(database_url, events, body)


def test_a_name_pattern_stands_for_the_whole_name(database_url: str) -> None:
    async def body(ledger: Ledger) -> None:
        async def names(pattern: str) -> set[str | None]:
            return {j.definition.name for j in (await ledger.jobs.list(pattern=pattern))[0]}

        assert await names("night*") == {"nightly", "night_1"}
        assert await names("night") == set()
        assert await names("*_1") == {"night_1"}
        assert await names("n*y") == {"nightly"}

    with_events(database_url, [job("nightly"), job("night_1"), job("fortnight")], body)
