"""Cron in zones: the vectors, the rule by brute force over real minutes, and what holds for every expression."""

import json
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rsched.core.cron.days import NaiveCron
from rsched.core.cron.parser import parse
from rsched.core.cron.timetable import Gap, Missed, Overlap, Timetable
from rsched.core.instants import MAX_INSTANT_MS, MIN_INSTANT_MS, format_local, format_utc, parse_instant
from rsched.core.schedule.zones import FOREVER, Zone, load_zone, zone_info

VECTORS = json.loads(Path(__file__).with_name("cron_vectors.json").read_text())["vectors"]
EPOCH = datetime(1970, 1, 1)
ZONES = [
    "Europe/Berlin", "Africa/Casablanca", "Antarctica/Troll", "Australia/Lord_Howe", "America/New_York", "America/Nuuk",
    "Africa/Cairo", "Asia/Kolkata", "Europe/Dublin", "America/Havana", "Pacific/Apia", "Pacific/Kwajalein", "UTC",
]  # fmt: skip
EXPRESSIONS = [
    "0 2 * * *", "30 2 * * *", "*/15 2 * * *", "0 2,3 * * *", "*/15 1 * * *", "30 1 * * *", "45 1 * * *", "0 0 * * *",
    "30 23 * * *", "*/15 * * * *", "0 * * * *", "7 * * * *", "* * * * SUN", "0 */2 * * *", "0 3 * * SUN", "0 0 L * *",
    "30 1 25 10 *", "* * 29 2 *", "0 12 30 12 *", "0 0-22 * * *", "*/20 1-3 * * 6,0", "59 23 31 12 *",
]  # fmt: skip


def timetable(text: str, zone: str) -> Timetable:
    """A fresh one: no memo from elsewhere."""
    return Timetable(parse(text), load_zone(zone))


def chain(table: Timetable, t: int, n: int) -> list[int]:
    out: list[int] = []
    for _ in range(n):
        found = table.next_after(t)
        assert found is not None
        out.append(t := found)
    return out


@pytest.mark.parametrize("vector", VECTORS, ids=lambda v: f"{v['expr']} {v['tz']} {v['from']}")
def test_a_verified_vector_holds(vector: dict[str, Any]) -> None:
    found = chain(timetable(vector["expr"], vector["tz"]), parse_instant(vector["from"]), len(vector["next"]))
    assert [format_utc(t, short=True) for t in found] == vector["next"]
    assert [format_local(t, zone_info(vector["tz"])) for t in found] == vector["local"]


@lru_cache(maxsize=4)
def walls(zone_name: str, first: int, last: int) -> list[tuple[int, int]]:
    """Each real minute as (instant, second on the wall), by the standard library's zones."""
    zone, out = zone_info(zone_name), []
    for t in range(first, last, 60):
        wall = (EPOCH + timedelta(seconds=t)).replace(tzinfo=UTC).astimezone(zone).replace(tzinfo=None)
        out.append((t, (wall - EPOCH) // timedelta(seconds=1)))
    return out


def brute(text: str, zone_name: str, start: str, hours: int) -> list[int]:
    """The rule as a clock-watcher follows it: look at the wall each real minute."""
    expression = parse(text)
    cron = NaiveCron(expression)
    t0 = parse_instant(start) // 1000
    fired: list[int] = []
    seen: int | None = None
    for t, wall in walls(zone_name, t0 - 6 * 3600, t0 + hours * 3600):
        low = wall if seen is None or expression.every_hour else seen + 1
        seen = wall if seen is None else max(seen, wall)
        if t > t0 and wall >= low and cron.count(low, wall + 1):
            fired.append(t * 1000)
    return fired


CHANGES = [
    ("Europe/Berlin", "2026-03-28T12:00:00Z"), ("Europe/Berlin", "2026-10-24T12:00:00Z"),
    ("Africa/Casablanca", "2026-02-14T12:00:00Z"), ("Africa/Casablanca", "2026-03-21T12:00:00Z"),
    ("Antarctica/Troll", "2026-03-28T12:00:00Z"), ("Antarctica/Troll", "2026-10-24T12:00:00Z"),
    ("Australia/Lord_Howe", "2026-04-04T00:00:00Z"), ("Australia/Lord_Howe", "2026-10-03T00:00:00Z"),
    ("America/New_York", "2026-11-01T00:00:00Z"), ("America/Nuuk", "2026-03-28T00:00:00Z"),
    ("Africa/Cairo", "2026-04-23T12:00:00Z"), ("Pacific/Apia", "2011-12-29T12:00:00Z"),
    ("Europe/Berlin", "2150-10-24T12:00:00Z"), ("Europe/Dublin", "9000-03-29T12:00:00Z"),
    ("America/Sao_Paulo", "2018-11-03T12:00:00Z"), ("America/Havana", "2026-11-01T00:00:00Z"),
]  # fmt: skip


@pytest.mark.parametrize(("zone", "start"), CHANGES)
@pytest.mark.parametrize("text", EXPRESSIONS)
def test_around_a_change_the_rule_holds_for_each_real_minute(text: str, zone: str, start: str) -> None:
    want = brute(text, zone, start, 40)
    table, t = timetable(text, zone), parse_instant(start)
    end = t + 40 * 3_600_000 - 60_000
    got: list[int] = []
    at = table.next_after(t)
    while at is not None and at <= end:
        got.append(at)
        at = table.next_after(at)
    assert got == want
    assert table.missed(t, end) == Missed(len(want), want[0] if want else None, want[-1] if want else None)


expressions, zones = st.sampled_from(EXPRESSIONS), st.sampled_from(ZONES)
instants = st.integers(parse_instant("1950-01-01T00:00:00Z"), parse_instant("2400-01-01T00:00:00Z"))


@settings(max_examples=400, deadline=None)
@given(expressions, zones, instants, st.floats(0, 1, exclude_max=True))
def test_next_is_strictly_after_and_the_same_from_any_instant_before_it(
    text: str, zone: str, t: int, part: float
) -> None:
    found = timetable(text, zone).next_after(t)
    assert found is not None
    assert found > t
    between = t + int((found - t) * part)
    assert timetable(text, zone).next_after(between) == found
    assert timetable(text, zone).next_after(found - 1) == found


@settings(max_examples=200, deadline=None)
@given(expressions, zones, st.lists(instants, min_size=2, max_size=8))
def test_next_is_monotone_and_the_memo_changes_no_answer(text: str, zone: str, ts: list[int]) -> None:
    shared = timetable(text, zone)
    answers = []
    for t in [*ts, *sorted(ts), *ts]:
        found = shared.next_after(t)
        assert found == timetable(text, zone).next_after(t)
        if found is not None:
            assert shared.next_after(found - 1) == found
            answers.append((t, found))
    assert [f for _, f in sorted(answers)] == sorted(f for _, f in answers)


@settings(max_examples=200, deadline=None)
@given(expressions, zones, instants, st.integers(0, 60 * 86_400_000))
def test_missed_counts_what_stepping_would_meet(text: str, zone: str, low: int, width: int) -> None:
    table, found = timetable(text, zone), []
    at = table.next_after(low)
    while at is not None and at <= low + width and len(found) < 2000:
        found.append(at)
        at = table.next_after(at)
    high = found[-1] if len(found) == 2000 else low + width
    assert table.missed(low, high) == Missed(len(found), found[0] if found else None, found[-1] if found else None)


def test_a_century_of_minutes_is_counted_without_stepping() -> None:
    missed = timetable("* * * * *", "Europe/Berlin").missed(0, parse_instant("2070-01-01T00:00:00Z"))
    assert missed.count == parse_instant("2070-01-01T00:00:00Z") // 60_000


FAR_ZONES = ("UTC", "Pacific/Kiritimati", "Pacific/Pago_Pago", "Europe/Berlin")
# What the wall shows when the schedule is due next after 9990-06-15T00:00:00Z (offsets +0, +14, -11 and +2 h).
NEXT_IN_9990 = {
    text: dict(zip(FAR_ZONES, walls, strict=True))
    for text, walls in {
        "* * * * *": ("9990-06-15T00:01:00", "9990-06-15T14:01:00", "9990-06-14T13:01:00", "9990-06-15T02:01:00"),
        "0 12 * * *": ("9990-06-15T12:00:00", "9990-06-16T12:00:00", "9990-06-15T12:00:00", "9990-06-15T12:00:00"),
        "0 0 29 2 *": ("9992-02-29T00:00:00",) * 4,
        "59 23 31 12 *": ("9990-12-31T23:59:00",) * 4,
    }.items()
}


@pytest.mark.parametrize("zone", FAR_ZONES)
@pytest.mark.parametrize("text", NEXT_IN_9990)
def test_after_the_year_9999_there_is_none_and_nothing_is_raised(text: str, zone: str) -> None:
    table = timetable(text, zone)
    assert table.next_after(MAX_INSTANT_MS) is None
    assert table.next_after(1 << 62) is None
    late = table.next_after(parse_instant("9990-06-15T00:00:00Z"))
    assert late is not None
    assert format_local(late, zone_info(zone))[:19] == NEXT_IN_9990[text][zone]
    early = table.next_after(-(1 << 62))
    assert early is not None
    assert early >= MIN_INSTANT_MS
    to_the_end = table.missed(late - 1, 1 << 62)
    assert to_the_end == table.missed(late - 1, MAX_INSTANT_MS)
    assert (to_the_end.first, to_the_end.count >= 2) == (late, True)
    assert table.missed(MAX_INSTANT_MS - 1, 1 << 62) == Missed(0, None, None)
    assert table.missed(-(1 << 62), 1 << 62).count > 1000


def test_2038_is_a_year_like_any_other() -> None:
    assert chain(timetable("14 3 19 1 *", "UTC"), parse_instant("2037-06-01T00:00:00Z"), 1) == [2_147_483_640_000]
    found = chain(timetable("0 12 * * *", "Europe/Berlin"), parse_instant("2050-07-01T00:00:00Z"), 1)
    assert format_utc(found[0], short=True) == "2050-07-01T10:00:00Z"


def test_daily_at_noon_keeps_its_wall_time_over_a_year() -> None:
    for t in chain(timetable("0 11 * * *", "Europe/Berlin"), parse_instant("2026-01-01T00:00:00Z"), 400):
        assert "T11:00:00" in format_local(t, zone_info("Europe/Berlin"))


def utc(text: str) -> int:
    return parse_instant(text)


def test_a_year_ends_the_schedule_on_the_wall() -> None:
    table = Timetable(parse("*/30 * * * *", year=2026), load_zone("Asia/Kathmandu"))
    assert table.next_after(utc("2025-12-01T00:00:00Z")) == utc("2025-12-31T18:15:00Z")
    assert table.next_after(utc("2026-12-31T17:15:00Z")) == utc("2026-12-31T17:45:00Z")
    assert table.next_after(utc("2026-12-31T17:45:00Z")) is None
    assert table.next_after(utc("9999-12-31T00:00:00Z")) is None
    assert table.missed(0, MAX_INSTANT_MS) == Missed(365 * 48, utc("2025-12-31T18:15:00Z"), utc("2026-12-31T17:45:00Z"))


@pytest.mark.parametrize(
    ("overlap", "last", "count"), [("both", "2026-12-31T23:45:00Z", 6), ("first", "2026-12-31T22:45:00Z", 2)]
)
def test_a_wall_put_back_over_new_year_shows_the_last_year_again(overlap: Overlap, last: str, count: int) -> None:
    change = utc("2026-12-31T23:00:00Z") // 1000
    zone = Zone("X", changes=[(-FOREVER, 3600), (change, 0)], base=FOREVER)
    table = Timetable(parse("*/15 * * * *", year=2026), zone, overlap=overlap)
    found, t = [], utc("2026-12-31T22:15:00Z")
    while (at := table.next_after(t)) is not None:
        found.append(t := at)
    assert (len(found), found[-1]) == (count, utc(last))
    assert table.missed(utc("2026-12-31T22:15:00Z"), MAX_INSTANT_MS).count == count


def test_seconds_are_counted_without_stepping() -> None:
    table = Timetable(parse("* * * * *", second="*"), load_zone("Europe/Berlin"))
    assert table.missed(0, utc("2070-01-01T00:00:00Z")).count == utc("2070-01-01T00:00:00Z") // 1000
    assert table.next_after(utc("2026-10-25T00:59:59Z")) == utc("2026-10-25T01:00:00Z")


NOTES = [
    ("30 2 * * *", "0", "Europe/Berlin", "2026-03-29T01:00:00Z", None,
     "02:30 does not exist that day (clocks go forward 02:00 -> 03:00); runs at the first instant after"),
    ("30 2 * * *", "15", "Europe/Berlin", "2026-03-29T01:00:00Z", None,
     "02:30:15 does not exist that day (clocks go forward 02:00 -> 03:00); runs at the first instant after"),
    ("*/15 2,3 * * *", "0", "Europe/Berlin", "2026-03-29T01:00:00Z", None,
     "02:00 to 02:45 (4 occurrences) do not exist that day (clocks go forward 02:00 -> 03:00); "
     "one run for all at the first instant after"),
    ("15 2 * * *", "0", "Australia/Lord_Howe", "2026-10-03T15:30:00Z", None,
     "02:15 does not exist that day (clocks go forward 02:00 -> 02:30); runs at the first instant after"),
    ("0 12 * * *", "0", "Pacific/Apia", "2011-12-30T10:00:00Z", None,
     "2011-12-30 12:00 does not exist (clocks go forward 2011-12-30 00:00 -> 2011-12-31 00:00); "
     "runs at the first instant after"),
    ("30 23 * * *", "0", "America/Nuuk", "2026-03-29T01:00:00Z", None,
     "2026-03-28 23:30 does not exist (clocks go forward 23:00 -> 00:00); runs at the first instant after"),
    ("30 2 * * *", "0", "Europe/Berlin", "2026-03-29T01:00:00Z", "skip", None),
    ("0 3 * * *", "0", "Europe/Berlin", "2026-03-29T01:00:00Z", None, None),
    ("30 * * * *", "0", "Europe/Berlin", "2026-03-29T01:30:00Z", None, None),
    ("30 2 * * *", "0", "Europe/Berlin", "2026-03-30T00:30:00Z", None, None),
    ("30 2 * * *", "0", "Europe/Berlin", "2026-10-25T00:30:00Z", None,
     "02:30 comes twice that day; this is the first pass"),
    ("0 3 * * *", "0", "Europe/Berlin", "2026-10-25T02:00:00Z", None, None),
    ("0 2 * * *", "0", "Europe/Berlin", "2026-10-25T00:00:00Z", None,
     "02:00 comes twice that day; this is the first pass"),
    ("30 * * * *", "0", "Europe/Berlin", "2026-10-25T00:30:00Z", None,
     "02:30 comes twice that day; this is the first pass"),
    ("30 * * * *", "0", "Europe/Berlin", "2026-10-25T01:30:00Z", None,
     "02:30 comes twice that day; this is the second pass"),
    ("30 * * * *", "0", "Europe/Berlin", "2026-10-25T02:30:00Z", None, None),
    ("30 2 * * *", "0", "UTC", "2026-10-25T02:30:00Z", None, None),
]  # fmt: skip


@pytest.mark.parametrize(("text", "second", "zone", "at", "gap", "note"), NOTES)
def test_a_note_says_what_a_change_did_to_an_occurrence(
    text: str, second: str, zone: str, at: str, gap: Gap | None, note: str | None
) -> None:
    table = Timetable(parse(text, second=second), load_zone(zone), gap=gap)
    assert table.note(utc(at)) == note


def test_what_is_no_occurrence_has_no_note() -> None:
    table = timetable("30 2 * * *", "Europe/Berlin")
    assert table.note(utc("2026-10-25T01:30:00Z")) is None  # the second pass, of which this job takes none
    assert table.note(utc("2026-10-25T00:31:00Z")) is None
    assert table.note(utc("2026-10-25T00:30:00.001Z")) is None
    assert table.note(-(1 << 60)) is None
    assert table.note(1 << 60) is None
