from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rsched.core.cron import parser as cron
from rsched.core.instants import parse_instant
from rsched.core.jobs.model import DstPolicy, ScheduleSpec
from rsched.core.schedule.schedule import Draft, resolve
from rsched.core.schedule.words import describe, duration_words, warnings

NOW = parse_instant("2026-10-25T20:30:00Z")


def warned(*entries: dict[str, Any], now: int = NOW) -> list[str]:
    specs = [ScheduleSpec(**fields) for fields in entries]
    draft = Draft(specs[0]) if len(specs) == 1 else Draft(None, specs)
    found, _ = resolve(draft, now_ms=NOW)
    return warnings(Draft(found.schedule, found.schedules), now_ms=now)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("0 2 * * *", "at 02:00 every day"),
        ("@daily", "at 00:00 every day"),
        ("@weekly", "at 00:00 on Sunday"),
        ("@yearly", "at 00:00 on day 1 of January"),
        ("* * * * *", "every minute"),
        ("*/1 * * * *", "every minute"),
        ("*/15 * * * *", "every 15 minutes"),
        ("0,30 * * * *", "at minutes 0 and 30 past every hour"),
        ("5/15 * * * *", "every 15 minutes from minute 5 past every hour"),
        ("0 * * * *", "every hour, on the hour"),
        ("5 * * * *", "at minute 5 past every hour"),
        ("5,17,30 * * * *", "at minutes 5, 17 and 30 past every hour"),
        ("10-20 * * * *", "every minute from minute 10 to minute 20 past every hour"),
        ("*/7 * * * *", "every 7 minutes from minute 0 to minute 56 past every hour"),
        ("1-3,40 * * * *", "at minutes 1 to 3 and 40 past every hour"),
        ("* 0 * * *", "every minute from 00:00 to 00:59 every day"),
        ("* 2,14 * * *", "every minute from 02:00 to 02:59 and from 14:00 to 14:59 every day"),
        ("*/15 9-17 * * MON-FRI", "every 15 minutes from 09:00 to 17:45 on Monday to Friday"),
        ("5-20/5 3 * * *", "every 5 minutes from 03:05 to 03:20 every day"),
        ("0 9-17 * * *", "every hour from 09:00 to 17:00 every day"),
        ("0 */2 * * *", "every 2 hours from 00:00 to 22:00 every day"),
        ("0 0,12 * * *", "at 00:00 and 12:00 every day"),
        ("15,45 6,18 * * *", "at 06:15, 06:45, 18:15 and 18:45 every day"),
        ("5,17,30 9-17 * * *", "at minutes 5, 17 and 30 past every hour from 09 to 17 o'clock every day"),
        ("5,17 */3 * * *", "at minutes 5 and 17 past every 3rd hour from 00 to 21 o'clock every day"),
        ("3,9 1,2,5,6,9 * * *", "at minutes 3 and 9 past 01, 02, 05, 06 and 09 o'clock every day"),
        ("0,9 1-4,9,20 * * *", "at minutes 0 and 9 past 01 to 04, 09 and 20 o'clock every day"),
        ("0 0 L * *", "at 00:00 on the last day of every month"),
        ("0 0 L-1 * *", "at 00:00 on the 1st day before the last of every month"),
        ("0 0 15W * *", "at 00:00 on the weekday (Monday to Friday) nearest to day 15 of every month"),
        ("0 0 LW * *", "at 00:00 on the last weekday (Monday to Friday) of every month"),
        ("0 0 1,L * *", "at 00:00 on day 1 and the last day of every month"),
        ("0 12 * * FRI#3", "at 12:00 on the 3rd Friday of every month"),
        ("0 12 * * LFRI", "at 12:00 on the last Friday of every month"),
        ("0 12 * * TUE,FRI#1", "at 12:00 on the 1st Friday of the month or on Tuesday"),
        ("0 12 * 6 LFRI", "at 12:00 on the last Friday of June"),
        ("0 0 1,15 1,7 *", "at 00:00 on days 1 and 15 of January and July"),
        ("0 0 1-7 * *", "at 00:00 on days 1 to 7 of every month"),
        ("0 0 */2 * *", "at 00:00 on every 2nd day from day 1 to day 31 of every month"),
        ("0 0 * * SAT,SUN", "at 00:00 on Saturday and Sunday"),
        ("0 0 * * 5-7", "at 00:00 on Friday to Sunday"),
        ("0 0 * * 0-6", "at 00:00 every day"),
        ("0 0 * JUN-AUG *", "at 00:00 every day from June to August"),
        ("0 0 * 2,3,5 *", "at 00:00 every day in February, March and May"),
        ("0 0 1-31,L * *", "at 00:00 every day"),
        ("0 0 * * 0-6,FRI#2", "at 00:00 every day"),
        ("0 0 1 1-6 *", "at 00:00 on day 1 of every month from January to June"),
        ("0 0 * 1-6 MON", "at 00:00 on Monday from January to June"),
        ("* */3 * * *", "every minute in every 3rd hour from 00 to 21 o'clock every day"),
        ("2/10 */3 * * *", "every 10 minutes from minute 2 on in every 3rd hour from 00 to 21 o'clock every day"),
        ("*/5 * * 1 *", "every 5 minutes in January"),
        ("*/5 * * 1 MON", "every 5 minutes on Monday in January"),
        ("0 0 13 * FRI", "at 00:00 on day 13 of the month or on Friday"),
        ("0 0 1 JAN MON", "at 00:00 on day 1 of the month or on Monday, in January"),
    ],
)
def test_a_cron_expression_reads_as_ordinary_english(text: str, words: str) -> None:
    assert describe(ScheduleSpec(cron=text, timezone="Asia/Kolkata")) == f"{words}, in Asia/Kolkata"


@pytest.mark.parametrize(
    ("text", "more", "words"),
    [
        ("* * * * *", {"second": "*"}, "every second"),
        ("* * * * *", {"second": "*/10"}, "every 10 seconds"),
        ("* * * * *", {"second": 30}, "at second 30 past every minute"),
        ("0 2 * * *", {"second": 30}, "at 02:00:30 every day"),
        ("0 2 * * *", {"second": "*/10"}, "at 02:00:00, 02:00:10, 02:00:20, 02:00:30, 02:00:40 and 02:00:50 every day"),
        ("0 2 * * *", {"second": "*/5"}, "every 5 seconds in the minute that begins at 02:00 every day"),
        (
            "*/15 9-17 * * *",
            {"second": "7,30"},
            "at seconds 7 and 30 in each of these minutes: every 15 minutes from 09:00 to 17:45 every day",
        ),
        ("0 2 * * *", {"year": 2027}, "at 02:00 every day in 2027"),
        ("0 2 * * *", {"year": "2027-2029"}, "at 02:00 every day from 2027 to 2029"),
        ("0 2 * * *", {"year": "2027,2029"}, "at 02:00 every day in 2027 and 2029"),
    ],
)
def test_seconds_and_years_are_said(text: str, more: dict[str, Any], words: str) -> None:
    assert describe(ScheduleSpec(cron=text, **more)) == f"{words}, in UTC"


def test_h_reads_as_what_it_is_for_this_job() -> None:
    h = ScheduleSpec(cron="H H * * *")
    e = cron.parse("H H * * *", team="a", name="x")
    assert describe(Draft(h, (), "a", "x")) == f"at {e.hours[0]:02}:{e.minutes[0]:02} every day, in UTC"


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"every": "90s"}, "every 90 seconds from its creation"),
        ({"every": "1h", "anchor": "2026-10-01T00:00:00.000Z"}, "every hour from 2026-10-01T00:00:00Z"),
        ({"every": "1h", "start": "2026-10-01T02:00:00+02:00"}, "every hour from 2026-10-01T00:00:00Z on"),
        (
            {"every": "1h", "anchor": "2026-10-01T00:00:00Z", "start": "2026-11-01T00:00:00Z"},
            "every hour as counted from 2026-10-01T00:00:00Z, from 2026-11-01T00:00:00Z on",
        ),
        ({"at": "2026-10-26T02:00:00+02:00"}, "once at 2026-10-26T00:00:00Z"),
        ({"delay": "15m"}, "once, 15 minutes after its creation"),
        ({"delay": 0}, "once, as soon as it is created"),
        ({"cron": "0 2 * * *", "exclude": "2026-12-25"}, "at 02:00 every day, in UTC, except on 2026-12-25"),
        (
            {"cron": "0 2 * * *", "exclude": ["2026-12-24/2026-12-26", "holidays"]},
            "at 02:00 every day, in UTC, except on 2026-12-24 to 2026-12-26 and the days of the calendar holidays",
        ),
        (
            {"cron": "0 2 * * *", "exclude": [f"2026-12-0{d}" for d in range(1, 8)]},
            "at 02:00 every day, in UTC, except on 7 dates and ranges",
        ),
        (
            {"every": "1h", "exclude": "2026-12-25", "timezone": "Asia/Tokyo"},
            "every hour from its creation, except on 2026-12-25 in Asia/Tokyo",
        ),
        (
            {"cron": "0 2 * * *", "start": "2026-11-01T00:00:00Z", "end": "2026-12-01T00:00:00Z", "max_runs": 5},
            "at 02:00 every day, in UTC, from 2026-11-01T00:00:00Z on, before 2026-12-01T00:00:00Z, 5 times at most",
        ),
        ({"cron": "0 2 * * *", "max_runs": 1}, "at 02:00 every day, in UTC, once at most"),
        (
            {"cron": "0 2 * * *", "window": "5m"},
            "at 02:00 every day, in UTC, each run starting at a fixed point of the 5 minutes after its time",
        ),
        (
            {"cron": "0 2 * * *", "dst": DstPolicy(gap="skip", overlap="both")},
            "at 02:00 every day, in UTC, with what the clock jumps over left out, with a time that comes twice run both times",
        ),
    ],
)
def test_other_kinds_and_what_limits_them_are_said(fields: dict[str, Any], words: str) -> None:
    assert describe(ScheduleSpec(**fields)) == words


def test_a_union_is_one_sentence() -> None:
    specs = [ScheduleSpec(cron="0 2 * * *", window="1h"), ScheduleSpec(every="1d", anchor="2026-10-01T00:00:00Z")]
    assert describe(specs) == (
        "at 02:00 every day, in UTC; and every day from 2026-10-01T00:00:00Z; "
        "each run starting at a fixed point of the hour after its time"
    )
    assert describe(Draft(None, specs)) == describe(specs)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("90s", "90 seconds"),
        (60, "1 minute"),
        ("90m", "90 minutes"),
        ("24h", "1 day"),
        ("14d", "2 weeks"),
        (1.5, "1.5 seconds"),
    ],
)
def test_a_duration_is_said_in_its_largest_whole_unit(value: str | float, words: str) -> None:
    assert duration_words(value) == words


@pytest.mark.parametrize(
    ("text", "warning"),
    [
        ("* 0 * * *", "runs 60 times, every minute from 00:00 to 00:59; write `0 0 * * *` for once at midnight"),
        ("* 5 * * MON", "runs 60 times, every minute from 05:00 to 05:59; write `0 5 * * MON` for once at 05:00"),
        (
            "* 9-17 * * *",
            "runs 540 times a day, every minute from 09:00 to 17:59; write `0 9-17 * * *` for once in each of these hours",
        ),
        (
            "0 0 31 * *",
            "some months lack a day that is named: day 31 in February, April, June, September and November; "
            "write `L` for the last day of every month",
        ),
        (
            "0 0 29 2 *",
            "some months lack a day that is named: day 29 in February of most years; "
            "write `L` for the last day of every month",
        ),
        (
            "0 0 13 * FRI",
            "both day fields are set, and either one is enough: it runs on day 13 of the month or on Friday; "
            "write '*' in the one not meant",
        ),
        (
            "*/40 * * * *",
            "`*/40` starts anew every hour: after minute 40 the next comes in 20 minutes, not 40; "
            'write "every": "40m" for an even interval',
        ),
        (
            "0 */5 * * *",
            "`*/5` starts anew every day: after hour 20 the next comes in 4 hours, not 5; "
            'write "every": "5h" for an even interval',
        ),
        (
            "0 0 * * MON#5",
            "few months have a fifth one of a weekday, the others have no run; write `L` before the day for the last one",
        ),
        ("0 0 L-30 * *", "`L-30` counts back past the first day of shorter months, which have no run then"),
    ],
)
def test_what_its_author_may_not_have_meant_is_warned_of(text: str, warning: str) -> None:
    assert warned({"cron": text}) == [warning]


@pytest.mark.parametrize(
    "text",
    [
        "0 0 * * *",
        "* * * * *",
        "*/5 9-17 * * *",
        "0 0 L * *",
        "0 0 31 1,3,5 *",
        "0 0 30 3-12 *",
        "0 0 */2 * *",
        "0 0 1-31 * *",
    ],
)
def test_what_is_plainly_meant_is_not_warned_of(text: str) -> None:
    assert warned({"cron": text}) == []


def test_the_last_day_beside_a_weekday_takes_a_schedule_of_its_own() -> None:
    both, lacking = warned({"cron": "0 0 31 * FRI"})
    assert "either one is enough" in both
    assert lacking.endswith("; add a schedule with `L` for the last day of every month")


def test_every_second_of_a_minute_that_may_have_been_meant_for_once_is_warned_of() -> None:
    (text,) = warned({"cron": "0 2 * * *", "second": "*"})
    assert text == 'runs 60 times in each of its minutes, every second; write "second": 0 for once'
    assert warned({"cron": "* * * * *", "second": "*"}) == []


def test_a_schedule_that_has_ended_before_it_began_is_warned_of() -> None:
    (text,) = warned({"every": "1h", "start": "2026-01-01T00:00:00Z", "end": "2026-02-01T00:00:00Z"})
    assert text.startswith("has no occurrence from 2026-10-25T20:30:00Z on: it ended at 2026-02-01T00:00:00Z")
    (text,) = warned({"cron": "0 0 * * *", "end": "2026-10-25T23:00:00Z"})
    assert "ruled out by end" in text
    (text,) = warned({"cron": "0 0 * * *", "exclude": "0001-01-01/9999-12-31"})
    assert "ruled out by exclude" in text


def test_a_window_longer_than_the_gap_between_occurrences_is_warned_of() -> None:
    (text,) = warned({"cron": "0,10 * * * *", "window": "15m"})
    assert text.startswith("the window of 15m is longer than the 10m between two occurrences")
    assert warned({"cron": "0 * * * *", "window": "1h"}) == []
    (text,) = warned({"cron": "0 0 * * *", "window": "15m"}, {"cron": "5 0 * * *"})
    assert "longer than the 5m" in text


def test_a_warning_about_one_of_several_schedules_names_it() -> None:
    (text,) = warned({"cron": "0 0 * * *"}, {"cron": "* 1 * * *"})
    assert text.startswith("schedules[1]: runs 60 times")
    same = [ScheduleSpec(cron="0 0 * * *"), ScheduleSpec(cron="00 0 * * *", timezone="UTC")]
    assert "the same as schedules[0]" in warnings(Draft(None, same), now_ms=NOW)[0]


def lists(low: int, high: int) -> st.SearchStrategy[str]:
    value = st.integers(low, high)
    pair = st.tuples(value, value).filter(lambda p: p[0] < p[1])
    spread = st.tuples(pair, st.integers(1, high - low)).map(lambda p: f"{p[0][0]}-{p[0][1]}/{p[1]}")
    item = st.one_of(value.map(str), pair.map(lambda p: f"{p[0]}-{p[1]}"), spread, st.just("H"))
    return st.one_of(
        st.just("*"),
        st.integers(1, high - low).map(lambda n: f"*/{n}"),
        st.lists(item, min_size=1, max_size=5).map(",".join),
    )


monthdays = st.one_of(
    lists(1, 31),
    st.lists(st.sampled_from(["L", "LW", "L-3", "L-30", "15W", "31W", "1", "7-9"]), min_size=1, max_size=4).map(
        ",".join
    ),
)
weekdays = st.one_of(
    lists(0, 7),
    st.lists(st.sampled_from(["FRI#3", "LMON", "0#5", "L7", "TUE", "SAT-SUN"]), min_size=1, max_size=4).map(",".join),
)
seconds = st.none() | lists(0, 59) | st.integers(0, 59)
years = st.none() | st.sampled_from(["*", "2027", "2028-2031", "2027,2032", "2028/4"])


@settings(deadline=None, max_examples=300)
@given(st.tuples(lists(0, 59), lists(0, 23), monthdays, lists(1, 12), weekdays).map(" ".join), seconds, years)
def test_every_accepted_expression_has_words_and_warnings(
    text: str, second: str | int | None, year: str | None
) -> None:
    draft = Draft(ScheduleSpec(cron=text, second=second, year=year), name="job")
    try:
        cron.parse(text, second=second, year=year, team="default", name="job")
    except cron.CronError:
        return
    words = describe(draft)
    assert words.endswith(", in UTC")
    assert not {"None", "[", "  ", "()"} & {words, *words.split(" ")}
    assert "  " not in words
    assert all(warnings(draft, now_ms=NOW))
