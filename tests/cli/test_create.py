from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rsched.core.jobs.model import JobSpec, Misfire, ScheduleSpec
from tests.cli.commands import FIELDS, rsched
from tests.client.fake_api import JOB, Reply, problem, serving

CALL = ("--function", "f")
POLICIES: dict[str, tuple[list[str], Any]] = {
    "misfire_policy": (["--misfire", "run_all"], "run_all"),
    "misfire": (["--grace", "5m", "--catchup-window", "3600"], {"grace": "5m", "catchup_window": 3600.0}),
    "overlap": (["--overlap", "queue_one"], "queue_one"),
}


def create(*args: str, reply: Reply | None = None) -> Any:
    with serving(reply or Reply(201, JOB)) as api:
        result = rsched("jobs", "create", *args, "--api", api.url)
    assert result.exit_code == 0, result.output
    return api.seen[0].body


@pytest.mark.parametrize("field", ScheduleSpec.__struct_fields__)
def test_each_field_of_a_schedule_has_an_option(field: str) -> None:
    args, value = FIELDS[field]
    rule = [] if field in ("cron", "every", "at", "delay") else ["--cron", "0 2 * * *"]
    assert create(*args, *rule, *CALL)["schedule"][field] == value


@pytest.mark.parametrize("field", POLICIES)
def test_each_policy_has_an_option(field: str) -> None:
    assert field in JobSpec.__struct_fields__
    args, value = POLICIES[field]
    assert create("--every", "5m", *args, *CALL)[field] == value


def test_both_fields_of_misfire_can_be_given() -> None:
    assert set(POLICIES["misfire"][1]) == set(Misfire.__struct_fields__)


def test_a_whole_schedule_or_several_come_as_json(tmp_path: Path) -> None:
    several = [{"cron": "0 9 * * *"}, {"every": "6h"}]
    (tmp_path / "s.json").write_text(json.dumps(several))
    one = create("--schedule", '{"every": "6h", "window": "5m"}', *CALL)
    assert (one["schedule"], "schedules" in one) == ({"every": "6h", "window": "5m"}, False)
    more = create("--schedule", f"@{tmp_path / 's.json'}", *CALL)
    assert (more["schedules"], "schedule" in more) == (several, False)


def test_ack_is_asked_for() -> None:
    with serving(Reply(201, JOB)) as api:
        assert rsched("jobs", "create", "--every", "5m", *CALL, "--ack", "redis", "--api", api.url).exit_code == 0
    assert api.seen[0].path == "/v1/jobs?ack=redis"


def test_a_job_is_replaced_by_its_name() -> None:
    args = ("--replace", "--name", "a b", "--team", "ops", "--if-match", "3", "--every", "5m", *CALL)
    with serving(Reply(200, JOB)) as api:
        result = rsched("jobs", "create", *args, "--api", api.url)
    assert result.exit_code == 0, result.output
    assert (api.seen[0].method, api.seen[0].path) == ("PUT", "/v1/jobs/a%20b?team=ops")
    assert api.seen[0].headers["if-match"] == '"3"'
    assert api.seen[0].body["schedule"] == {"every": "5m"}


@pytest.mark.parametrize(
    "args", [["--replace"], ["--if-match", "3"], ["--replace", "--name", "n", "--idempotency-key", "k"]]
)
def test_what_does_not_go_with_replace_ends_with_2(args: list[str]) -> None:
    result = rsched("jobs", "create", "--every", "5m", *CALL, *args)
    assert (result.exit_code, result.stdout) == (2, "")


def test_what_a_schedule_may_not_mean_is_said_on_standard_error() -> None:
    with serving(Reply(201, {**JOB, "warnings": ["runs 60 times\n"]})) as api:
        result = rsched("jobs", "create", "--cron", "* 0 * * *", *CALL, "--api", api.url, "--json")
    assert json.loads(result.stdout)["job_id"] == JOB["job_id"]
    assert result.stderr == "warning: runs 60 times \n"


def test_show_says_all_of_a_job() -> None:
    schedule = {
        "cron": "0 2 * * *", "timezone": "Europe/Berlin", "second": "30", "year": "2027", "dst": {"gap": "skip"},
        "exclude": ["holidays"], "start": "2027-01-01T00:00:00Z", "end": "2028-01-01T00:00:00Z", "max_runs": 3,
        "window": "5m",
    }  # fmt: skip
    job = {
        **JOB,
        "schedule": schedule,
        "target": {"type": "function", "function": "f", "kwargs": {"a": 1}},
        "misfire": {"grace": "60s", "catchup_window": "7d"},
        "state": "paused",
        "pause": {"note": "moving", "until": "2027-02-01T00:00:00Z", "missed": "run_all"},
        "skipped": {"misfire": 3, "overlap": 1},
    }
    with serving(Reply(200, job)) as api:
        result = rsched("jobs", "show", "n", "--api", api.url)
    fields = dict(line.split("  ", 1) for line in result.stdout.splitlines() if not line.startswith(" "))
    said = {name: value.strip() for name, value in fields.items()}
    assert said["schedule"] == (
        "cron 0 2 * * * second 30 year 2027 (Europe/Berlin), dst: gap skip, exclude holidays, "
        "start 2027-01-01T00:00:00Z, end 2028-01-01T00:00:00Z, max_runs 3, window 5m"
    )
    assert said["in words"].startswith("at 02:00:30 every day in 2027, in Europe/Berlin")
    assert said["misfire"] == "run_once when over 60s late, skip what was missed over 7d ago"
    assert said["pause"] == "until 2027-02-01T00:00:00Z, then run_all of what was missed"
    assert (said["note"], said["skipped"]) == ("moving", "3 misfire, 1 overlap")
    assert '  kwargs     {"a":1}' in result.stdout


def test_show_has_a_line_for_each_of_several_schedules() -> None:
    job = {
        **JOB,
        "schedules": [{"cron": "0 9 * * *", "timezone": "UTC"}, {"every": "6h", "anchor": "2027-01-01T00:00:00Z"}],
    }
    del job["schedule"]
    with serving(Reply(200, job)) as api:
        result = rsched("jobs", "show", "n", "--api", api.url)
    lines = [line.split("  ", 1)[1].strip() for line in result.stdout.splitlines() if line.startswith("schedule ")]
    assert lines == ["cron 0 9 * * * (UTC)", "every 6h, anchor 2027-01-01T00:00:00Z"]


@pytest.mark.parametrize("lines", [True, False])
def test_many_jobs_are_created_from_an_array_or_from_lines(lines: bool) -> None:
    specs = [{"schedule": {"every": "5m"}, "target": {"type": "function", "function": "f"}, "name": n} for n in "ab"]
    text = "\n\n".join(map(json.dumps, specs)) if lines else json.dumps(specs, indent=1)
    with serving(Reply(201, {"items": [JOB, {**JOB, "name": None}]})) as api:
        result = rsched("jobs", "apply", "-", "--idempotency-key", "k", "--api", api.url, text=text)
    assert result.exit_code == 0, result.output
    assert (api.seen[0].path, api.seen[0].body) == ("/v1/jobs:batch", {"jobs": specs})
    assert api.seen[0].headers["idempotency-key"] == "k"
    ids = [line.split("\t")[0] for line in result.stdout.splitlines()]
    assert ids == ["JOB", JOB["job_id"], JOB["job_id"]]


def test_of_many_errors_the_first_are_said_and_the_rest_counted() -> None:
    errors = [{"field": f"jobs[{i}].name", "message": "is taken"} for i in range(50)]
    with serving(problem(409, "conflict", errors=errors)) as api:
        result = rsched("jobs", "apply", "-", "--api", api.url, text='[{"name": "a"}]')
    said = result.stderr.splitlines()
    assert (said[0], said[-1], len(said)) == ("error: jobs[0].name: is taken", "error: and 30 more", 21)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "one or more JSON objects"),
        ("[]", "one or more"),
        ("[1]", "objects"),
        ('{"a": 1}\n{b}', "line 2 is not valid JSON"),
    ],
)
def test_a_file_without_jobs_is_refused(text: str, says: str) -> None:
    result = rsched("jobs", "apply", "-", text=text)
    assert (result.exit_code, result.stdout) == (2, "")
    assert says in " ".join(result.stderr.split())


@pytest.mark.parametrize(
    "args",
    [
        ["--schedule", "[]", "--tz", "UTC", *CALL],
        ["--schedule", "3", *CALL],
        ["--schedule", "{", *CALL],
        ["--tz", "UTC", *CALL],
        ["--schedule", "{}"],
        ["--file", "-", "--schedule", "{}"],
        ["--every", "5m", *CALL, "--ack", "disk"],
    ],
)
def test_a_schedule_that_is_said_in_no_way_or_in_two_ends_with_2(args: list[str]) -> None:
    result = rsched("jobs", "create", *args)
    assert (result.exit_code, result.stdout) == (2, "")
