"""Start, end, max_runs and days off: which occurrences of a rule are left."""

import time
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rsched.core.instants import MAX_INSTANT_MS, format_utc
from rsched.core.jobs.model import ScheduleSpec
from rsched.core.schedule.exclusions import check_calendar
from rsched.core.schedule.schedule import Draft, calendar_names
from rsched.core.schedule.zones import zone_info
from tests.core.composite_schedules import (
    DAY,
    NOW,
    ZONES,
    Calendars,
    at,
    instants,
    one,
    refused,
    rules,
    stretches,
    utc,
)


def test_start_is_part_of_it_and_end_is_not() -> None:
    _, schedule = one(cron="0 0 * * *", start="2026-11-01T00:00:00Z", end="2026-11-03T00:00:00Z")
    assert (schedule.kind, len(schedule.arg)) == ("c", 16)
    assert utc(schedule, NOW, 9) == ["2026-11-01T00:00:00Z", "2026-11-02T00:00:00Z"]
    assert schedule.end_ms == at("2026-11-03T00:00:00Z")
    assert schedule.missed(0, 1 << 60).count == 2


def test_an_interval_with_a_start_counts_from_it() -> None:
    spec, schedule = one(every="1h", start="2026-11-01T00:30:00Z")
    assert spec.anchor == "2026-11-01T00:30:00Z"
    assert utc(schedule, NOW, 2) == ["2026-11-01T00:30:00Z", "2026-11-01T01:30:00Z"]
    assert schedule.kind == "c"


def test_max_runs_without_a_start_counts_from_now() -> None:
    spec, schedule = one(cron="0 2 * * *", max_runs=3)
    assert spec.start == "2026-10-25T20:30:00.123Z"
    assert utc(schedule, NOW, 9) == [f"2026-10-2{d}T02:00:00Z" for d in (6, 7, 8)]
    assert schedule.next_after(at("2026-10-28T02:00:00Z")) is None


@pytest.mark.parametrize("fields", [{"every": "5s"}, {"cron": "30 20 * * *"}])
def test_an_occurrence_of_this_very_instant_uses_up_no_run(fields: dict[str, Any]) -> None:
    now = at("2026-10-25T20:30:00Z")
    _, schedule = one(now=now, max_runs=3, **fields)
    assert len(schedule.upcoming(now, 9)) == 3


def test_occurrences_that_an_exclusion_takes_out_use_up_no_run() -> None:
    _, schedule = one(cron="0 2 * * *", max_runs=3, exclude=["2026-10-27", "2026-10-29/2026-10-30"])
    assert utc(schedule, NOW, 9) == [f"2026-10-{d}T02:00:00Z" for d in (26, 28, 31)]


def test_fewer_occurrences_than_max_runs_are_all_there_are() -> None:
    _, schedule = one(cron="0 0 * * *", max_runs=10_000, end="2026-10-28T00:00:00Z")
    assert schedule.missed(NOW, 1 << 60).count == 2


# Exclusions


def test_excluded_days_are_those_of_the_zone_and_a_range_has_both_its_ends() -> None:
    _, schedule = one(
        cron="0 */8 * * *", timezone="Asia/Kolkata", exclude="2026-10-27/2026-10-28", end="2026-10-30T00:00:00Z"
    )
    local = [datetime.fromtimestamp(t / 1000, zone_info("Asia/Kolkata")) for t in schedule.upcoming(NOW, 99)]
    assert [f"{t:%d %H}" for t in local] == ["26 08", "26 16", "29 00", "29 08", "29 16", "30 00"]


def test_an_interval_may_have_exclusions_in_a_zone() -> None:
    spec, schedule = one(
        every="12h",
        anchor="2026-10-26T06:00:00Z",
        exclude=["2026-10-27"],
        timezone="America/New_York",
        end="2026-10-29T00:00:00Z",
    )
    assert spec.timezone == "America/New_York"
    assert utc(schedule, NOW, 9) == [
        "2026-10-26T06:00:00Z", "2026-10-26T18:00:00Z", "2026-10-28T06:00:00Z", "2026-10-28T18:00:00Z",
    ]  # fmt: skip
    assert one(every="12h", exclude=["2026-10-27"])[0].timezone == "UTC"


def test_a_calendar_of_the_team_is_looked_up_and_its_content_makes_the_arg() -> None:
    fields: dict[str, Any] = {"cron": "0 0 * * *", "exclude": ["holidays", "2026-10-30"]}
    assert calendar_names(Draft(ScheduleSpec(**fields))) == {"holidays"}
    assert calendar_names(Draft(None, [ScheduleSpec(**fields), ScheduleSpec(cron="0 0 * * *", exclude="b")])) == {
        "holidays",
        "b",
    }
    first = one(calendars={"holidays": ["2026-10-27"], "other": ["2026-10-28"]}, **fields)[1]
    assert utc(first, NOW, 4) == [f"2026-10-{d}T00:00:00Z" for d in (26, 28, 29, 31)]
    assert one(calendars={"holidays": ["2026-10-27"]}, **fields)[1] is first
    assert one(calendars={"holidays": ["2026-10-27/2026-10-28"]}, **fields)[1].arg != first.arg
    spelt = one(cron="0 0 * * *", exclude=["2026-10-30/2026-10-30", "2026-10-27", "2026-10-27"])[1]
    assert spelt.arg == first.arg


def test_an_interval_keeps_its_kind_while_its_calendar_is_empty() -> None:
    empty = one(every="1d", anchor="2026-10-26T00:00:00Z", exclude="holidays", calendars={"holidays": []})[1]
    filled = one(every="1d", anchor="2026-10-26T00:00:00Z", exclude="holidays", calendars={"holidays": ["2026-10-26"]})[
        1
    ]
    assert (empty.kind, filled.kind) == ("c", "c")
    assert empty.upcoming(NOW, 2)[1:] == filled.upcoming(NOW, 1)
    unfilled = one(cron="0 0 * * *", exclude="holidays", calendars={"holidays": []})[1]
    assert unfilled.arg == one(cron="0 0 * * *")[1].arg


@pytest.mark.parametrize("calendars", [None, {}, {"other": []}])
def test_a_calendar_that_there_is_none_of_is_refused_with_the_fix(calendars: Calendars | None) -> None:
    errors = refused({"cron": "0 0 * * *", "exclude": "holidays"}, calendars=calendars)
    assert "PUT /v1/teams/{team}/calendars/holidays" in errors["schedule.exclude"]
    entry = {"cron": "0 0 * * *", "exclude": "holidays"}
    assert set(refused({"every": "1h"}, entry, calendars=calendars)) == {"schedules[1].exclude"}


def test_a_calendar_that_holds_no_date_is_named() -> None:
    errors = refused({"cron": "0 0 * * *", "exclude": "holidays"}, calendars={"holidays": ["christmas"]})
    assert "'christmas' is not a date" in errors["schedule.exclude"]
    assert [
        e.field for e in check_calendar(["2026-12-25", "2026-12-24/2027-01-02", "christmas", "2026-13-01"], "dates")
    ] == [
        "dates[2]",
        "dates[3]",
    ]


def test_an_exclusion_that_covers_everything_ends_at_once() -> None:
    _, schedule = one(cron="* * * * *", second="*", exclude="0001-01-01/9999-12-31")
    assert schedule.next_after(NOW) is None
    assert schedule.missed(0, 1 << 60).count == 0
    _, ended = one(every="1s", exclude=["2026-01-01/2026-12-31"], end="2027-01-01T00:00:00Z")
    assert ended.next_after(NOW) is None
    _, nothing = one(every="1s", max_runs=10_000, exclude="0001-01-01/9999-12-31")
    assert nothing.next_after(NOW) is None


def test_a_thousand_exclusions_before_the_next_occurrence_are_jumped_over() -> None:
    days = [datetime(2026, 10, 26, tzinfo=UTC) + timedelta(days=2 * i) for i in range(1000)]
    _, schedule = one(every="1s", exclude=[f"{d:%Y-%m-%d}/{d + timedelta(days=1):%Y-%m-%d}" for d in days])
    begin = time.process_time()
    after = schedule.next_after(at("2026-10-26T00:00:00Z"))
    assert after is not None
    assert format_utc(after, short=True).startswith("2032-04-17T00:00:0")
    assert time.process_time() - begin < 0.5


def test_a_day_that_comes_back_for_an_hour_is_excluded_to_its_last_minute() -> None:
    # Clocks went back from 00:01 to 23:01 of the day before.
    zone, begin = "America/St_Johns", at("2006-10-28T12:00:00Z")
    _, schedule = one(now=begin, cron="*/10 * * * *", timezone=zone, exclude="2006-10-28")
    local = [datetime.fromtimestamp(t / 1000, zone_info(zone)) for t in schedule.upcoming(begin, 20)]
    assert {t.day for t in local} == {29}
    assert [f"{t:%H:%M}" for t in local[:3]] == ["00:00", "00:00", "00:10"]


@settings(deadline=None, max_examples=150)
@given(
    rules, st.sampled_from(ZONES), st.lists(stretches, min_size=1, max_size=6), instants, st.none() | instants,
    st.none() | st.integers(1, 300), st.data(),
)  # fmt: skip
def test_bounds_and_exclusions_agree_with_stepping(
    rule: dict[str, Any],
    zone: str,
    exclude: list[str],
    start: int,
    end: int | None,
    most: int | None,
    data: st.DataObject,
) -> None:
    if end is not None and end <= start:
        start, end = end, start + 1000
    bounds = {"start": format_utc(start), "end": end and format_utc(end), "max_runs": most}
    _, schedule = one(**rule, timezone=zone, exclude=exclude, **bounds)
    # The long way: every occurrence of the rule alone, judged by its date on the wall.
    plain = one(**rule, **({"timezone": zone} if "cron" in rule else {}))[1]
    info, stop = zone_info(zone), at("2027-03-01T00:00:00Z") if end is None else end
    gone = [e.split("/") for e in exclude]
    want = []
    t = start - 1
    while (found := plain.next_after(t)) is not None and found < stop:
        t = found
        day = f"{datetime.fromtimestamp(t / 1000, info):%Y-%m-%d}"
        if not any(low <= day <= high for low, high in gone):
            want.append(t)
    want = want[:most]
    got = []
    t = at("2026-09-01T00:00:00Z")
    while (found := schedule.next_after(t)) is not None and found < stop:
        t = found
        got.append(t)
    assert got == want
    low = data.draw(st.integers(start - 10 * DAY, stop))
    high = data.draw(st.integers(low, stop - 1)) if low < stop else low
    inside = [t for t in want if low < t <= high]
    missed = schedule.missed(low, high)
    assert (missed.count, missed.first, missed.last) == (
        len(inside),
        *((inside[0], inside[-1]) if inside else (None, None)),
    )


@pytest.mark.parametrize("n", [1, 2, 999, 10_000])
@pytest.mark.parametrize("cron", ["* * * * *", "0 2 * * *", "0 0 29 2 *"])
def test_max_runs_holds_exactly_and_is_quick(cron: str, n: int) -> None:
    begin = time.process_time()
    _, schedule = one(cron=cron, timezone="Europe/Berlin", max_runs=n)
    assert time.process_time() - begin < 1
    total = schedule.missed(NOW, MAX_INSTANT_MS).count
    assert total == n or (total < n and cron == "0 0 29 2 *")


# Unions
