from __future__ import annotations

import json

import pytest

from rsched.core.jobs.model import ScheduleSpec
from tests.cli.commands import FIELDS, rsched

FROM = ("--from", "2026-10-25T00:00:00Z")


def instants(*args: str) -> list[str]:
    result = rsched("next", *args, *FROM, "--json")
    assert result.exit_code == 0, result.output
    return [o["utc"] for o in json.loads(result.stdout)["occurrences"]]


@pytest.mark.parametrize("field", sorted(set(ScheduleSpec.__struct_fields__) - {"cron", "at", "delay"}))
def test_next_takes_each_option_of_a_recurring_schedule_as_create_does(field: str) -> None:
    args = [a for a in FIELDS[field][0] if a != "holidays"][: 2 if field == "exclude" else None]
    rule = {"every": [], "anchor": ["--every", "6h"]}.get(field, ["0 2 * * *"])
    result = rsched("next", *rule, *args, *FROM, "-n", "1")
    assert result.exit_code == 0, result.output


def test_bounds_and_anchor_count() -> None:
    assert instants("--every", "6h", "--anchor", "2026-10-25T01:00:00Z", "--max-runs", "2") == [
        "2026-10-25T01:00:00Z",
        "2026-10-25T07:00:00Z",
    ]
    assert instants("0 0 * * *", "--start", "2026-10-27T00:00:00Z", "--end", "2026-10-28T00:00:00Z") == [
        "2026-10-27T00:00:00Z"
    ]


def test_several_schedules_are_united() -> None:
    both = '[{"cron": "0 9 * * *"}, {"cron": "0 9,10 * * *"}]'
    assert instants("--schedule", both, "-n", "2") == ["2026-10-25T09:00:00Z", "2026-10-25T10:00:00Z"]


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["0 2 * * *", "--gap", "sft"], "error: schedule.dst.gap: "),
        (["--schedule", '[{"every": "6h"}, {"evry": "1h"}]'], "error: schedules[1].evry: "),
        (
            ["0 2 * * *", "--exclude", "holidays"],
            "error: schedule.exclude: names the calendar 'holidays', which only the API",
        ),
        ([], "error: EXPR: is missing"),
    ],
)
def test_an_error_names_the_field_as_the_api_does(args: list[str], says: str) -> None:
    result = rsched("next", *args, *FROM)
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith(says)
