from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import anyio
import psycopg
import pytest
from typer.testing import CliRunner, Result

from rsched.cli.group import expected
from rsched.cli.main import app
from rsched.core.errors import Misconfigured, Unavailable
from rsched.ledger.migrate import schema_version


def rsched(*args: str, **env: str) -> Result:
    return CliRunner().invoke(app, list(args), env={"COLUMNS": "200", **env})


@pytest.fixture
def nowhere() -> str:
    """The address of a server that is not there."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return f"127.0.0.1:{listener.getsockname()[1]}"


def test_doctor_passes_on_servers_that_can_keep_the_promises(redis_url: str, database_url: str) -> None:
    result = rsched("doctor", "--json", RSCHED_REDIS_URL=redis_url, RSCHED_DATABASE_URL=database_url)
    found = json.loads(result.stdout)
    assert {c["name"]: c for c in found["checks"] if c["status"] == "fail"} == {}
    assert (found["ok"], result.exit_code) == (True, 0)
    assert found["settings"]["all"]["redis_url"]["source"] == "RSCHED_REDIS_URL"
    assert {"api", "scheduler", "worker", "recorder"} < found["settings"].keys()
    plain = rsched("doctor", RSCHED_REDIS_URL=redis_url, RSCHED_DATABASE_URL=database_url)
    assert "redis maxmemory\tok" in plain.stdout


def test_doctor_says_what_to_do_with_a_database_of_before_the_first_release(redis_url: str, database_url: str) -> None:
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute("CREATE TABLE schema_version (version integer)")
    result = rsched("doctor", "--json", RSCHED_REDIS_URL=redis_url, RSCHED_DATABASE_URL=database_url)
    assert result.exit_code == 1
    (check,) = [c for c in json.loads(result.stdout)["checks"] if c["name"] == "postgres"]
    assert check["status"] == "fail"
    assert "create a new, empty database" in check["fix"]


def test_doctor_fails_with_the_fix_where_no_server_is(nowhere: str) -> None:
    env = {
        "RSCHED_REDIS_URL": f"redis://:secret@{nowhere}/0",
        "RSCHED_DATABASE_URL": f"postgresql://u:secret@{nowhere}/x",
    }
    result = rsched("doctor", "--json", **env, RSCHED_WORKR_APP="x")
    checks = {c["name"]: c for c in json.loads(result.stdout)["checks"]}
    assert result.exit_code == 1
    assert checks["redis"]["status"] == checks["postgres"]["status"] == "fail"
    assert "RSCHED_REDIS_URL" in checks["redis"]["fix"]
    assert checks["settings"]["status"] == "warn"
    assert "secret" not in result.output


def test_migrate_says_what_it_applied_and_is_repeatable(database_url: str) -> None:
    result = rsched("migrate", "--json", RSCHED_DATABASE_URL=database_url)
    assert json.loads(result.stdout) == {"applied": [], "version": schema_version()}


@pytest.mark.parametrize(
    ("args", "env", "says"),
    [
        (["api", "--host", "0.0.0.0"], {}, "RSCHED_API_ALLOW_INSECURE_BIND=true"),
        (["worker", "--app", "jobs"], {}, "package.module:app"),
        (["worker", "--queue", "A b"], {}, "RSCHED_WORKER_QUEUES"),
        (["scheduler"], {"RSCHED_SCHEDULER_PARTITION_RENEW_MS": "2000"}, "at most a third"),
        (["recorder"], {"RSCHED_RECORDER_BATCH": "many"}, "RSCHED_RECORDER_BATCH"),
        (["migrate", "--config", "/nowhere.toml"], {}, "/nowhere.toml: No such file"),
    ],
)
def test_a_process_refuses_a_setting_that_breaks_a_promise(args: list[str], env: dict[str, str], says: str) -> None:
    result = rsched(*args, **env)
    assert result.exit_code == 1
    assert result.stderr.startswith("error: ")
    assert says in result.stderr


def test_a_settings_file_with_an_unknown_key_is_refused_by_name(tmp_path: Path) -> None:
    file = tmp_path / "rsched.toml"
    file.write_text("[worker]\nconcurency = 3\n")
    result = rsched("worker", RSCHED_CONFIG=str(file))
    assert result.exit_code == 1
    assert "[worker] concurency: unknown setting (did you mean concurrency?)" in result.stderr
    file.write_text("[worker\n")
    assert "is not valid TOML" in rsched("worker", "--config", str(file)).stderr


@pytest.mark.parametrize("kind", ["scheduler", "recorder"])
def test_a_process_waits_for_servers_that_are_not_up_and_stops_when_told(kind: str, nowhere: str) -> None:
    env = {**os.environ, "RSCHED_REDIS_URL": f"redis://{nowhere}/0", "RSCHED_LOG_FORMAT": "json"}
    with subprocess.Popen(
        [sys.executable, "-m", "rsched", kind], env=env, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        line = json.loads(process.stderr.readline())
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=10) == 0
    assert line["level"] == "warning"
    assert line["message"].startswith("servers: waiting: ")


def test_an_unmigrated_database_is_refused_with_the_command_to_run(redis_url: str, postgres_admin: str) -> None:
    env = {**os.environ, "RSCHED_REDIS_URL": redis_url, "RSCHED_DATABASE_URL": postgres_admin}
    done = subprocess.run(
        [sys.executable, "-m", "rsched", "recorder"], env=env, capture_output=True, text=True, timeout=30
    )
    assert done.returncode == 1
    assert "run `rsched migrate`" in done.stderr
    assert "Traceback" not in done.stderr


def test_known_errors_come_out_of_task_groups_and_bugs_keep_their_traceback() -> None:
    nested = BaseExceptionGroup(
        "a", [Unavailable("x"), BaseExceptionGroup("b", [Misconfigured("y"), Unavailable("x")])]
    )
    assert [str(e) for e in expected(nested)] == ["x", "y"]
    assert expected(BaseExceptionGroup("a", [Unavailable("x"), ValueError("bug")])) == []
    assert expected(ValueError("bug")) == []


def test_waiting_ends_at_once_when_a_stop_is_asked_for() -> None:
    from rsched.cli.processes import _sleep_unless
    from rsched.runtime.clock import SystemClock

    async def scenario() -> None:
        stop = anyio.Event()
        stop.set()
        with anyio.fail_after(5):
            await _sleep_unless(stop, 60_000, clock=SystemClock())

    anyio.run(scenario)
