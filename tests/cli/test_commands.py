from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from rsched import __version__
from rsched.cli.main import app
from tests.client.fake_api import JOB, RUN, Reply, problem, serving


def rsched(*args: str, env: dict[str, str] | None = None, text: str | None = None) -> Result:
    return CliRunner().invoke(app, list(args), env=env, input=text)


def test_a_job_is_created_from_options() -> None:
    with serving(Reply(201, JOB)) as api:
        result = rsched(
            *("jobs", "create", "--name", "nightly", "--team", "ops", "--cron", "0 2 * * *", "--tz", "Asia/Kolkata"),
            *("--url", "http://x/run", "--method", "put", "--header", "X-A: b: c", "--body", '{"a": 1}'),
            *("--timeout", "15m", "--max-attempts", "5", "--misfire", "skip", "--priority", "high"),
            *("--tag", "a", "--tag", "b", "--api", api.url, "--json"),
        )
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["job_id"] == JOB["job_id"]
    assert api.seen[0].body == {
        "name": "nightly",
        "team": "ops",
        "schedule": {"cron": "0 2 * * *", "timezone": "Asia/Kolkata"},
        "target": {
            "type": "http",
            "url": "http://x/run",
            "method": "PUT",
            "headers": {"X-A": "b: c"},
            "body": {"a": 1},
        },
        "timeout_s": 900.0,
        "retry": {"max_attempts": 5},
        "misfire_policy": "skip",
        "priority": "high",
        "tags": ["a", "b"],
    }


def test_a_function_job_takes_its_arguments_as_json_and_its_payload_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "p.json").write_text("[1, 2]")
    with serving(Reply(201, JOB)) as api:
        result = rsched(
            *("jobs", "create", "--delay", "90", "--function", "reports.nightly", "--queue", "reports"),
            *("--args", "[1]", "--kwargs", '{"k": "v"}', "--payload", f"@{tmp_path / 'p.json'}"),
            env={"RSCHED_URL": api.url},
        )
    assert result.exit_code == 0, result.output
    assert api.seen[0].body["schedule"] == {"delay": 90.0}
    assert api.seen[0].body["target"] == {
        "type": "function",
        "function": "reports.nightly",
        "queue": "reports",
        "args": [1],
        "kwargs": {"k": "v"},
    }
    assert api.seen[0].body["payload"] == [1, 2]


def test_a_whole_job_comes_from_a_file_or_standard_input(tmp_path: Path) -> None:
    spec: dict[str, Any] = {"schedule": {"every": "5m"}, "target": {"type": "http", "url": "http://x/"}}
    (tmp_path / "job.json").write_text(json.dumps(spec))
    with serving(Reply(201, JOB)) as api:
        one = rsched("jobs", "create", "--file", str(tmp_path / "job.json"), "--name", "n", "--api", api.url)
        two = rsched("jobs", "create", "--file", "-", "--api", api.url, text=json.dumps(spec))
    assert (one.exit_code, two.exit_code) == (0, 0), one.output + two.output
    assert [s.body for s in api.seen] == [{**spec, "name": "n"}, spec]


@pytest.mark.parametrize(
    "args",
    [
        ["jobs", "create", "--url", "http://x/"],
        ["jobs", "create", "--delay", "1s"],
        ["jobs", "create", "--delay", "1s", "--url", "http://x/", "--body", "{a: 1}"],
        ["jobs", "create", "--delay", "1s", "--url", "http://x/", "--header", "none"],
        ["jobs", "create", "--delay", "1s", "--url", "http://x/", "--timeout", "soon"],
        ["jobs", "create", "--file", "/nowhere.json"],
        ["jobs", "create", "--file", "-", "--cron", "@daily"],
        ["jobs", "show"],
        ["jobs", "list", "--limit", "0"],
        ["jobs", "fly"],
        ["next", "@daily", "-n", "0"],
        ["--no-such"],
    ],
)
def test_what_is_typed_wrongly_ends_with_2_and_says_so(args: list[str]) -> None:
    result = rsched(*args)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr


def test_a_refusal_ends_with_1_and_names_each_field_on_standard_error() -> None:
    fields = [{"field": "schedule.cron", "message": "six fields; write five"}, {"field": "name", "message": "is taken"}]
    with serving(problem(422, "invalid", errors=fields)) as api:
        result = rsched("jobs", "create", "--cron", "* * * * * *", "--url", "http://x/", "--api", api.url, "--json")
    assert result.exit_code == 1
    assert result.stdout == ""
    assert result.stderr == "error: schedule.cron: six fields; write five\nerror: name: is taken\n"


def test_what_does_not_exist_ends_with_1() -> None:
    with serving(problem(404, "not_found")) as api:
        result = rsched("jobs", "show", "nothing", "--url", api.url)
    assert (result.exit_code, result.stderr) == (1, "error: about not_found\n")


def test_lists_are_tab_separated_where_they_are_piped() -> None:
    with serving(Reply(200, {"items": [{**JOB, "name": "a\tb\x1b[2J"}], "next_cursor": "c1"})) as api:
        result = rsched("jobs", "list", "--team", "ops", "--limit", "1", "--url", api.url)
    lines = result.stdout.splitlines()
    assert lines[0].split("\t")[:3] == ["JOB", "NAME", "TEAM"]
    assert lines[1].split("\t")[:3] == [JOB["job_id"], "a b [2J", "default"]
    assert "--cursor c1" in result.stderr
    assert api.seen[0].path == "/v1/jobs?team=ops&limit=1"


@pytest.mark.parametrize("flags", [[], ["--json"]])
@pytest.mark.parametrize(
    ("args", "reply", "path"),
    [
        (["jobs", "show", "n", "--team", "t"], JOB, "/v1/jobs/n?team=t"),
        (["jobs", "pause", "n"], {**JOB, "state": "paused"}, "/v1/jobs/n/pause"),
        (["jobs", "resume", "n"], JOB, "/v1/jobs/n/resume"),
        (["jobs", "trigger", "n"], RUN, "/v1/jobs/n/trigger"),
        (["jobs", "runs", "n"], {"items": [RUN], "next_cursor": None}, "/v1/jobs/n/runs?limit=20"),
        (["jobs", "delete", "n"], None, "/v1/jobs/n"),
        (["runs", "show", RUN["run_id"]], RUN, f"/v1/runs/{RUN['run_id']}"),
        (["runs", "cancel", RUN["run_id"]], RUN, f"/v1/runs/{RUN['run_id']}/cancel"),
    ],
)
def test_each_verb_reaches_its_path_and_prints_what_came(
    args: list[str], reply: Any, path: str, flags: list[str]
) -> None:
    with serving(Reply(204 if reply is None else 200, reply)) as api:
        result = rsched(*args, "--url", api.url, *flags)
    assert result.exit_code == 0, result.output
    assert api.seen[0].path == path
    assert result.stderr == ""
    if flags:
        json.loads(result.stdout)
    else:
        assert "j_0123456789abc" in result.stdout or "deleted n" in result.stdout


def test_a_run_shows_its_attempts() -> None:
    attempt = {
        "attempt": 1,
        "fence": 7,
        "worker": "w_1",
        "status": "RETRYING",
        "started_at": None,
        "finished_at": None,
        "duration_s": 0.5,
        "lateness_ms": 1,
        "error": "HTTP 500",
    }
    with serving(Reply(200, {**RUN, "attempts": [attempt]})) as api:
        result = rsched("runs", "show", RUN["run_id"], "--url", api.url)
    assert "1\tRETRYING\t7\tw_1\t-\t0.5\tHTTP 500" in result.stdout


def test_cancelling_a_running_attempt_says_that_it_is_asked_to_stop() -> None:
    with serving(Reply(200, {**RUN, "status": "RUNNING"}), Reply(200, {**RUN, "status": "CANCELLED"})) as api:
        running = rsched("runs", "cancel", RUN["run_id"], "--api", api.url)
        waiting = rsched("runs", "cancel", RUN["run_id"], "--api", api.url)
    assert running.stdout == f"{RUN['run_id']} is RUNNING and asked to stop\n"
    assert waiting.stdout == f"{RUN['run_id']} is CANCELLED\n"


def test_next_is_computed_without_a_server() -> None:
    result = rsched("next", "0 2 * * *", "--tz", "Asia/Kolkata", "--from", "2026-10-25T00:00:00Z", "-n", "1", "--json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["occurrences"] == [
        {"utc": "2026-10-25T20:30:00Z", "local": "2026-10-26T02:00:00+05:30", "note": None}
    ]
    plain = rsched("next", "@hourly", "--from", "2026-10-25T00:00:00Z", "-n", "2")
    # The first line says the schedule in words.
    assert [line.split("\t")[0] for line in plain.stdout.splitlines()][1:] == [
        "UTC",
        "2026-10-25T01:00:00Z",
        "2026-10-25T02:00:00Z",
    ]


@pytest.mark.parametrize(
    ("args", "field"),
    [
        (["next", "61 * * * *"], "schedule.cron"),
        (["next", "@daily", "--tz", "Asia/Kolkatta"], "schedule.timezone"),
        (["next", "@daily", "--from", "2026-10-25T00:00:00"], "--from"),
    ],
)
def test_next_refuses_with_the_field_and_the_fix(args: list[str], field: str) -> None:
    result = rsched(*args)
    assert result.exit_code == 1
    assert result.stderr.startswith(f"error: {field}: ")


def test_help_loads_neither_servers_clients_nor_rich() -> None:
    code = (
        "import sys; from rsched.cli.main import app; "
        "heavy = {'redis', 'psycopg', 'rich', 'starlette', 'uvicorn', 'asyncio', 'pycurl'} & set(sys.modules); "
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=30)


def test_the_module_runs_as_the_command() -> None:
    done = subprocess.run([sys.executable, "-m", "rsched", "--version"], capture_output=True, text=True, timeout=30)
    assert done.stdout == f"rsched {__version__}\n"
