"""What Python has better types for: instants, lengths, zones and days."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from rsched.client.bodies import job_body, patch_body, spec_body
from rsched.core.errors import Invalid
from rsched.core.jobs.model import FunctionTarget, JobSpec, ScheduleSpec
from tests.client.fake_api import JOB, Reply, serving

Connect = Callable[..., Any]
KOLKATA = ZoneInfo("Asia/Kolkata")


def test_instants_lengths_zones_and_days_are_written_as_the_api_reads_them() -> None:
    body = job_body(
        "n",
        None,
        {
            "cron": "0 9 * * *",
            "timezone": KOLKATA,
            "start": datetime(2026, 12, 1, 9, tzinfo=KOLKATA),
            "window": timedelta(minutes=5),
            "exclude": [date(2026, 12, 25), "holidays"],
            "url": "http://x/",
            "timeout_s": timedelta(minutes=2),
            "misfire": {"grace": timedelta(minutes=1)},
            "retry": {"base": timedelta(seconds=2)},
        },
    )
    assert body["schedule"] == {
        "cron": "0 9 * * *",
        "timezone": "Asia/Kolkata",
        "start": "2026-12-01T09:00:00+05:30",
        "window": 300.0,
        "exclude": ["2026-12-25", "holidays"],
    }
    assert (body["timeout_s"], body["misfire"], body["retry"]) == (120.0, {"grace": 60.0}, {"base": 2.0})


def test_they_may_stand_in_whole_definitions_too() -> None:
    spec = {
        "schedules": [{"every": timedelta(hours=1), "anchor": datetime(2026, 1, 1, tzinfo=UTC)}],
        "target": {"type": "function", "function": "f"},
    }
    assert spec_body(spec)["schedules"] == [{"every": 3600.0, "anchor": "2026-01-01T00:00:00+00:00"}]
    assert job_body("n", spec, {})["name"] == "n"


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"cron": "@daily", "start": datetime(2026, 1, 1)}, "schedule.start"),
        ({"schedule": {"at": datetime(2026, 1, 1)}}, "schedule.at"),
        ({"schedules": [{"at": datetime(2026, 1, 1)}]}, "schedules[0].at"),
    ],
)
def test_a_naive_datetime_is_refused_wherever_it_stands(options: dict[str, Any], field: str) -> None:
    with pytest.raises(Invalid, match="pass an aware datetime") as caught:
        job_body(None, None, {**options, "url": "http://x/"})
    assert caught.value.errors[0].field == field


def test_utc_has_a_name_and_a_bare_offset_has_none() -> None:
    assert job_body(None, None, {"cron": "@daily", "timezone": UTC, "url": "u"})["schedule"]["timezone"] == "UTC"
    with pytest.raises(Invalid, match=r"zoneinfo\.ZoneInfo"):
        job_body(None, None, {"cron": "@daily", "timezone": timezone(timedelta(hours=2)), "url": "u"})


def test_what_is_for_the_target_is_left_as_it_is() -> None:
    body = job_body(None, None, {"delay": 1, "function": "f", "kwargs": {"day": date(2026, 1, 2)}, "payload": None})
    assert body["target"]["kwargs"] == {"day": "2026-01-02"}
    assert "payload" not in body


def test_a_whole_definition_and_options_are_two_ways_to_say_one_thing() -> None:
    with pytest.raises(Invalid, match="put it into the spec"):
        job_body(None, JobSpec(target=FunctionTarget(function="f")), {"cron": "@daily"})


def test_every_method_that_takes_an_instant_takes_a_datetime(connect: Connect) -> None:
    at = datetime(2026, 12, 1, 9, tzinfo=KOLKATA)
    preview = {"occurrences": []}
    filled = {"job_id": "j", "occurrences": 0, "already": 0, "ranges": 0, "first": None, "last": None, "pace_per_s": 1}
    with serving(Reply(200, preview), Reply(202, {**filled, "dry_run": True})) as api, connect(api.url) as client:
        client.preview_schedule(ScheduleSpec(cron="@daily"), start=at)
        client.backfill_job("n", start=at, end=at + timedelta(days=1), dry_run=True)
    assert api.seen[0].body == {"schedule": {"cron": "@daily"}, "count": 10, "from": "2026-12-01T09:00:00+05:30"}
    assert api.seen[1].body == {
        "from": "2026-12-01T09:00:00+05:30",
        "to": "2026-12-02T09:00:00+05:30",
        "dry_run": True,
    }


def test_a_change_names_what_changes_and_takes_away_what_the_new_kind_cannot_have() -> None:
    assert patch_body({"timezone": KOLKATA}) == {"schedule": {"timezone": "Asia/Kolkata"}}
    assert patch_body({"tags": ["a"], "max_attempts": 5}) == {"tags": ["a"], "retry": {"max_attempts": 5}}
    assert patch_body({"every": "5m"}) == {
        "schedule": {"cron": None, "second": None, "year": None, "dst": None, "at": None, "delay": None, "every": "5m"},
        "schedules": None,
    }
    assert patch_body({"cron": "@daily", "window": None})["schedule"] == {
        "every": None, "anchor": None, "at": None, "delay": None, "cron": "@daily", "window": None,
    }  # fmt: skip
    assert set(patch_body({"at": "2027-01-01T00:00:00Z"})["schedule"]) == set(ScheduleSpec.__struct_fields__) - {
        "window"
    }
    assert patch_body({"function": "f"})["target"] == {
        "url": None, "method": None, "headers": None, "body": None, "type": "function", "function": "f",
    }  # fmt: skip
    assert patch_body({"schedules": [{"every": 60}]}) == {"schedule": None, "schedules": [{"every": 60}]}
    assert patch_body({"payload": None}) == {"payload": None}


def test_a_job_is_updated_by_a_merge_patch(connect: Connect) -> None:
    with serving(Reply(200, JOB)) as api, connect(api.url) as client:
        client.update_job("n", cron="0 3 * * *", team="ops", if_match=3)
        client.update_job("n", changes={"schedule": {"window": None, "end": datetime(2027, 1, 1, tzinfo=UTC)}})
        with pytest.raises(Invalid, match="one of the two ways"):
            client.update_job("n", changes={}, cron="@daily")
    assert [(s.method, s.path) for s in api.seen] == [("PATCH", "/v1/jobs/n?team=ops"), ("PATCH", "/v1/jobs/n")]
    assert api.seen[0].headers["if-match"] == '"3"'
    assert api.seen[0].body["schedule"]["cron"] == "0 3 * * *"
    assert api.seen[1].body == {"schedule": {"window": None, "end": "2027-01-01T00:00:00+00:00"}}
