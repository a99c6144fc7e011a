"""Unions, what all kinds share, and what is refused: each against stepping through the plain schedule."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rsched.core.errors import Invalid
from rsched.core.instants import format_utc
from rsched.core.jobs.model import DstPolicy, ScheduleSpec
from rsched.core.schedule.bounds import MAX_MERGED, Union
from rsched.core.schedule.schedule import Draft, load, resolve
from tests.core.schedules import DAY, NOW, ZONES, at, instants, one, refused, rules, several, utc


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
        (CRON | {"window": "soon"}, "schedule.window", "is not a duration"),
        (CRON | {"start": "2026-11-01"}, "schedule.start", "RFC 3339"),
        (CRON | {"end": "2026-11-01T00:00:00"}, "schedule.end", "has no offset"),
        (CRON | {"start": "2026-11-01T00:00:00Z", "end": "2026-11-01T00:00:00Z"}, "schedule.end", "not after start"),
        (CRON | {"max_runs": 0}, "schedule.max_runs", "1 to 10000"),
        (CRON | {"max_runs": 10_001}, "schedule.max_runs", "1 to 10000"),
        (CRON | {"exclude": ["2026-02-30"]}, "schedule.exclude[0]", "write a date that exists"),
        (CRON | {"exclude": ["2026-10-26", "2026-10-27/2026-10-26"]}, "schedule.exclude[1]", "write '2026-10-26/2026-10-27'"),
        (CRON | {"exclude": "26.10.2026"}, "schedule.exclude", "is not a date"),
        (CRON | {"exclude": "2026-1-5"}, "schedule.exclude", "is not a date"),
        (CRON | {"exclude": ["Holidays"]}, "schedule.exclude[0]", "is not a date"),
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
