"""What a command says where an extra is missing, and that each extra has what its part imports."""

from __future__ import annotations

import subprocess
import sys

import pytest

# As if these were not installed.
WITHOUT = """
import sys

class Gone:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {gone!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Gone())
sys.argv = ["rsched", *{arguments!r}]
from rsched.cli.entry import main
main()
"""
CLI = ("typer", "rich")
SERVER = (
    "redis", "hiredis", "anyio", "psycopg", "psycopg_pool", "pycurl", "starlette", "uvicorn", "uvloop", "prometheus_client",
)  # fmt: skip


def command(gone: tuple[str, ...], *arguments: str) -> subprocess.CompletedProcess[str]:
    code = WITHOUT.format(gone=gone, arguments=arguments)
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)


def test_without_the_cli_extra_nothing_but_the_hint_is_printed() -> None:
    done = command((*CLI, *SERVER), "jobs", "list")
    assert (done.stdout, done.stderr) == ("", "error: typer is not installed; pip install 'rsched[cli]'\n")
    assert done.returncode == 2


@pytest.mark.parametrize(
    "arguments",
    [
        ["api"],
        ["scheduler"],
        ["worker"],
        ["recorder"],
        ["migrate"],
        ["up"],
        ["doctor"],
        ["reconcile"],
        ["tz", "refresh"],
    ],
)
def test_processes_name_the_server_extra(arguments: list[str]) -> None:
    done = command(SERVER, *arguments)
    assert "is not installed; pip install 'rsched[server]'" in done.stderr
    assert "Traceback" not in done.stderr
    assert done.returncode == 2


def test_the_commands_over_http_need_no_server() -> None:
    done = command(SERVER, "next", "0 2 * * *", "--tz", "Europe/Berlin", "--from", "2027-03-26T00:00:00Z", "-n", "1")
    assert "2027-03-26T02:00:00+01:00" in done.stdout
    assert done.returncode == 0
    for arguments in (["--help"], ["jobs", "--help"], ["calendars", "--help"], ["--version"]):
        assert command(SERVER, *arguments).returncode == 0
    refused = command(SERVER, "jobs", "list", "--api", "http://127.0.0.1:1")
    assert "is `rsched api` or `rsched up` running?" in refused.stderr
