"""Bounds, exclusions and unions that cannot be: each wrong field is named, with how to fix it."""

from typing import Any

import pytest

from rsched.core.errors import Invalid
from rsched.core.jobs.model import DstPolicy, ScheduleSpec
from rsched.core.schedule.schedule import Draft, load, resolve
from tests.core.composite_schedules import NOW, refused, several

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
