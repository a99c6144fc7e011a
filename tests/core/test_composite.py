"""Bounds, exclusions, unions: each against stepping through the plain schedule."""

import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rsched.core.errors import Invalid
from rsched.core.instants import MAX_INSTANT_MS, format_utc, parse_instant
from rsched.core.jobs.model import DstPolicy, ScheduleSpec
from rsched.core.schedule.bounds import MAX_MERGED, Union
from rsched.core.schedule.exclusions import check_calendar
from rsched.core.schedule.schedule import Draft, Resolved, Schedule, calendar_names, load, resolve
from rsched.core.schedule.zones import zone_info

NOW = parse_instant("2026-10-25T20:30:00.123Z")
DAY = 86_400_000

Calendars = Mapping[str, Sequence[str]]


def at(text: str) -> int:
    return parse_instant(text)


def one(*, now: int = NOW, calendars: Calendars | None = None, **fields: Any) -> tuple[ScheduleSpec, Schedule]:
    found, schedule = resolve(Draft(ScheduleSpec(**fields)), now_ms=now, calendars=calendars)
    assert found.schedule is not None
    assert found.schedules == []
    assert load(Draft(found.schedule), calendars=calendars).arg == schedule.arg
    return found.schedule, schedule


def several(*entries: dict[str, Any], now: int = NOW, calendars: Calendars | None = None) -> tuple[Resolved, Schedule]:
    specs = [ScheduleSpec(**fields) for fields in entries]
    found, schedule = resolve(Draft(None, specs), now_ms=now, calendars=calendars)
    assert found.schedule is None
    again = load(Draft(None, found.schedules), calendars=calendars)
    assert (again.kind, again.arg, again.window_ms) == (schedule.kind, schedule.arg, schedule.window_ms)
    return found, schedule


def refused(*entries: dict[str, Any], calendars: Calendars | None = None) -> dict[str, str]:
    specs = [ScheduleSpec(**fields) for fields in entries]
    with pytest.raises(Invalid) as caught:
        resolve(Draft(specs[0]) if len(specs) == 1 else Draft(None, specs), now_ms=NOW, calendars=calendars)
    return dict(caught.value.errors)


def utc(schedule: Schedule, after: int, n: int) -> list[str]:
    return [format_utc(t, short=True) for t in schedule.upcoming(after, n)]


# Bounds


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
    assert "'christmas' is no date" in errors["schedule.exclude"]
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


ZONES = (
    "UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata", "Africa/Casablanca",
    "Africa/Cairo", "Asia/Beirut", "America/Havana", "America/Santiago",  # where the clocks change at midnight
)  # fmt: skip
days = st.integers(0, 120).map(lambda n: datetime(2026, 9, 15, tzinfo=UTC) + timedelta(days=n))
stretches = st.tuples(days, st.integers(0, 9)).map(lambda p: f"{p[0]:%Y-%m-%d}/{p[0] + timedelta(days=p[1]):%Y-%m-%d}")
instants = st.integers(at("2026-09-10T00:00:00Z") // 1000, at("2027-01-30T00:00:00Z") // 1000).map(lambda s: s * 1000)
rules = st.sampled_from(
    [
        {"cron": "0 2 * * *"}, {"cron": "*/30 * * * *"}, {"cron": "15 1,2,23 * * *"}, {"cron": "0 0 L * *"},
        {"cron": "*/20 0,1,2 * * *", "second": "0,30", "dst": DstPolicy(gap="skip", overlap="both")},
        {"every": "7h", "anchor": "2026-01-01T00:00:00Z"}, {"every": "90m", "anchor": "2026-01-01T00:00:01Z"},
    ]
)  # fmt: skip


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


def test_a_union_has_one_occurrence_an_instant() -> None:
    found, schedule = several(
        {"cron": "0 */6 * * *"}, {"cron": "0 0,1 * * *"}, {"every": "1d", "anchor": "2026-10-26T00:00:00Z"}
    )
    assert schedule.kind == "c"
    assert utc(schedule, NOW, 5) == [f"2026-10-26T{h:02}:00:00Z" for h in (0, 1, 6, 12, 18)]
    assert schedule.missed(NOW, NOW + DAY).count == 5
    assert len(found.schedules) == 3


def test_a_union_takes_every_kind_and_a_delay_becomes_an_instant() -> None:
    found, schedule = several({"delay": "1h"}, {"at": "2026-10-26T00:00:00Z"}, {"cron": "0 0 1 * *"})
    assert [s.at for s in found.schedules] == ["2026-10-25T21:30:00.123Z", "2026-10-26T00:00:00Z", None]
    assert utc(schedule, NOW, 3) == ["2026-10-25T21:30:00Z", "2026-10-26T00:00:00Z", "2026-11-01T00:00:00Z"]


def test_a_delay_of_zero_in_a_union_is_not_lost() -> None:
    _, schedule = several({"delay": 0}, {"cron": "0 0 1 * *"})
    assert schedule.upcoming(NOW, 1) == [NOW + 1]
    assert "is past" in refused({"at": format_utc(NOW)}, {"cron": "0 0 1 * *"})["schedules[0].at"]


def test_entries_of_one_meaning_are_one() -> None:
    found, schedule = several(
        {"cron": "0 0 * * *"}, {"cron": "00 0 * * *", "timezone": "UTC", "window": "5m"}, {"cron": "@daily"}
    )
    assert found.schedules == [ScheduleSpec(cron="0 0 * * *", timezone="UTC", window="5m")]
    assert schedule.window_ms == 300_000
    found, schedule = several(
        {"every": "1h", "anchor": "2026-10-26T00:00:00Z"}, {"every": 3600, "anchor": "2020-01-01T05:00:00Z"}
    )
    assert (schedule.kind, len(found.schedules)) == ("e", 1)


def test_a_union_is_the_same_in_whatever_order() -> None:
    a, b = {"cron": "0 0 * * *"}, {"cron": "0 1 * * *", "exclude": ["2026-11-01"]}
    assert several(a, b)[1].arg == several(b, a)[1].arg != several(a, {"cron": "0 1 * * *"})[1].arg


def test_the_end_of_a_union_is_its_last_one() -> None:
    a = {"cron": "0 0 * * *", "end": "2026-11-01T00:00:00Z"}
    assert several(a, {"cron": "0 1 * * *", "end": "2026-12-01T00:00:00Z"})[1].end_ms == at("2026-12-01T00:00:00Z")
    assert several(a, {"cron": "0 1 * * *"})[1].end_ms is None


@settings(deadline=None, max_examples=60)
@given(st.lists(st.tuples(rules, st.sampled_from(ZONES)), min_size=1, max_size=4), instants, st.integers(0, 40 * DAY))
def test_a_union_agrees_with_the_set_of_its_parts(
    parts: list[tuple[dict[str, Any], str]], low: int, width: int
) -> None:
    entries = [rule | ({"timezone": zone} if "cron" in rule else {}) for rule, zone in parts]
    _, schedule = several(*entries)
    want = set()
    for fields in entries:
        plain = one(**fields)[1]
        t = low
        while (found := plain.next_after(t)) is not None and found <= low + width:
            want.add(t := found)
    inside = sorted(want)
    assert schedule.upcoming(low, len(inside)) == inside
    missed = schedule.missed(low, low + width)
    assert (missed.count, missed.first, missed.last) == (
        len(inside),
        *((inside[0], inside[-1]) if inside else (None, None)),
    )


def test_a_union_counts_exactly_up_to_its_limit_and_never_too_many_beyond() -> None:
    a, b = {"every": "2s", "anchor": "2026-10-26T00:00:00Z"}, {"every": "3s", "anchor": "2026-10-26T00:00:00Z"}
    _, schedule = several(a, b)
    low = at("2026-10-26T00:00:00Z")
    exact = 6000 * (MAX_MERGED // 4)  # four instants in six seconds
    assert schedule.missed(low, low + exact).count == MAX_MERGED
    beyond = schedule.missed(low, low + 10 * exact)
    assert 0.7 * 10 * MAX_MERGED < beyond.count <= 10 * MAX_MERGED
    assert beyond.last == low + 10 * exact


def test_entries_that_have_ended_leave_the_others() -> None:
    _, schedule = several({"cron": "0 0 * * *", "end": "2026-10-20T00:00:00Z"}, {"at": "2026-10-26T12:00:00Z"})
    assert isinstance(schedule, Union)
    assert schedule.upcoming(NOW, 5) == [at("2026-10-26T12:00:00Z")]


# Windows, and what the shard keeps


@pytest.mark.parametrize(
    ("fields", "kind"),
    [
        ({"at": "2026-10-26T00:00:00Z"}, "o"), ({"delay": 5}, "o"), ({"every": "5m"}, "e"), ({"cron": "0 0 * * *"}, "c"),
        ({"every": "5m", "max_runs": 3}, "c"),
    ],
)  # fmt: skip
def test_a_window_goes_with_every_kind_and_changes_no_occurrence(fields: dict[str, Any], kind: str) -> None:
    plain, windowed = one(**fields)[1], one(**fields, window="5m")[1]
    assert (plain.kind, plain.window_ms) == (kind, 0)
    assert (windowed.kind, windowed.arg, windowed.window_ms) == (kind, plain.arg, 300_000)


def test_jobs_of_one_meaning_share_one_object() -> None:
    fields: dict[str, Any] = {
        "cron": "0 5 * * *",
        "exclude": ["2026-12-25"],
        "start": "2026-10-26T00:00:00Z",
        "max_runs": 5,
    }
    spec = one(**fields)[0]
    assert load(Draft(spec, (), "a", "x")) is load(Draft(spec, (), "b", "y"))


def test_the_default_dst_policy_is_no_other_meaning() -> None:
    daily: dict[str, Any] = {"cron": "0 2 * * *", "timezone": "Europe/Berlin"}
    plain = one(**daily)[1].arg
    assert one(**daily, dst=DstPolicy(gap="shift", overlap="first"))[1].arg == plain
    assert one(**daily, dst=DstPolicy(gap="shift"))[1].arg == plain
    assert one(**daily, dst=DstPolicy(gap="skip"))[1].arg != plain


# Refusals

CRON: dict[str, Any] = {"cron": "0 2 * * *"}


@pytest.mark.parametrize(
    ("fields", "field", "words"),
    [
        (CRON | {"window": "500ms"}, "schedule.window", "'1s' or more"),
        (CRON | {"window": "25h"}, "schedule.window", "at most '24h'"),
        (CRON | {"window": "soon"}, "schedule.window", "is no duration"),
        (CRON | {"start": "2026-11-01"}, "schedule.start", "RFC 3339"),
        (CRON | {"end": "2026-11-01T00:00:00"}, "schedule.end", "has no offset"),
        (CRON | {"start": "2026-11-01T00:00:00Z", "end": "2026-11-01T00:00:00Z"}, "schedule.end", "not after start"),
        (CRON | {"max_runs": 0}, "schedule.max_runs", "1 to 10000"),
        (CRON | {"max_runs": 10_001}, "schedule.max_runs", "1 to 10000"),
        (CRON | {"exclude": ["2026-02-30"]}, "schedule.exclude[0]", "write a date that exists"),
        (CRON | {"exclude": ["2026-10-26", "2026-10-27/2026-10-26"]}, "schedule.exclude[1]", "write '2026-10-26/2026-10-27'"),
        (CRON | {"exclude": "26.10.2026"}, "schedule.exclude", "is no date"),
        (CRON | {"exclude": "2026-1-5"}, "schedule.exclude", "is no date"),
        (CRON | {"exclude": ["Holidays"]}, "schedule.exclude[0]", "is no date"),
        (CRON | {"exclude": [f"2026-10-{d % 30 + 1:02}" for d in range(1001)]}, "schedule.exclude", "keep to 1000"),
        ({"at": "2026-11-01T00:00:00Z", "exclude": ["2026-10-26"]}, "schedule.exclude", "'at' has one occurrence"),
        ({"delay": 5, "max_runs": 1}, "schedule.max_runs", "'delay' has one occurrence"),
        ({"at": "2026-11-01T00:00:00Z", "start": "2026-11-01T00:00:00Z"}, "schedule.start", "goes with cron and every only"),
        ({"at": "2026-11-01T00:00:00Z", "end": "2026-11-02T00:00:00Z"}, "schedule.end", "goes with cron and every only"),
        ({"every": "5m", "dst": DstPolicy(gap="skip")}, "schedule.dst", "goes with cron only"),
        ({"every": "5m", "second": 5}, "schedule.second", "goes with cron only"),
        ({"every": "5m", "year": 2027}, "schedule.year", "goes with cron only"),
        (CRON | {"second": 61}, "schedule.second", "61"),
        (CRON | {"year": "soon"}, "schedule.year", "soon"),
    ],
)  # fmt: skip
def test_bad_input_names_its_field_and_the_fix(fields: dict[str, Any], field: str, words: str) -> None:
    assert list(refused(fields)) == [field]
    assert words in refused(fields)[field]


def test_every_wrong_field_of_every_entry_is_named() -> None:
    errors = refused(
        CRON | {"window": 0, "max_runs": 0}, {"cron": "61 * * * *", "timezone": "Mars/Base"}, {"at": "x", "every": 5}
    )
    assert list(errors) == [
        "schedules[0].window", "schedules[0].max_runs", "schedules[1].cron", "schedules[1].timezone", "schedules[2]",
        "schedules[2].at",
    ]  # fmt: skip


def test_windows_of_one_job_say_the_same() -> None:
    several(CRON | {"window": "5m"}, {"every": "1h"}, {"every": "2h", "window": 300})
    errors = refused(CRON | {"window": "5m"}, {"every": "1h", "window": "6m"})
    assert "a job has one window" in errors["schedules[1].window"]


def test_one_of_schedule_and_schedules_is_given() -> None:
    spec = ScheduleSpec(**CRON)
    for draft, field, words in (
        (Draft(None), "schedule", "is required"),
        (Draft(spec, [spec]), "schedules", "write one of them"),
        (Draft(None, [spec] * 33), "schedules", "keep to 32"),
    ):
        for call in (lambda d=draft: resolve(d, now_ms=NOW), lambda d=draft: load(d)):
            with pytest.raises(Invalid) as caught:
                call()
            assert [e.field for e in caught.value.errors] == [field]
            assert words in caught.value.errors[0].message


@pytest.mark.parametrize(
    "entries",
    [
        [CRON | {"exclude": "2026-12-25", "max_runs": 5, "window": "1m"}],
        [{"every": "1h", "max_runs": 2, "exclude": ["2026-12-25/2026-12-26"]}],
        [{"delay": 5}, CRON, {"every": "90s", "start": "2026-10-26T00:00:00Z"}],
    ],
)
def test_a_resolved_schedule_resolves_to_itself(entries: list[dict[str, Any]]) -> None:
    specs = [ScheduleSpec(**fields) for fields in entries]
    draft = Draft(specs[0]) if len(specs) == 1 else Draft(None, specs)
    found, schedule = resolve(draft, now_ms=NOW)
    again, same = resolve(Draft(found.schedule, found.schedules), now_ms=NOW + 2000)
    assert again == found
    assert (same.kind, same.arg) == (schedule.kind, schedule.arg)


def test_with_a_window_entries_that_end_at_different_times_are_refused() -> None:
    end, later = "2027-01-01T00:00:00Z", "2027-02-01T00:00:00Z"
    entries: tuple[dict[str, Any], ...] = (CRON | {"window": "5m", "end": end}, {"every": "7h"})
    with pytest.raises(Invalid) as caught:
        several(*entries)
    assert [e.field for e in caught.value.errors] == ["schedules[0].end"]
    with pytest.raises(Invalid, match="the same end, or none"):
        several(entries[0], {"every": "7h", "end": later})
    assert several(entries[0], {"every": "7h", "end": end}, {"at": later})[1].window_ms == 300_000
    assert several(CRON | {"end": end}, {"every": "7h", "end": later})[1].window_ms == 0
