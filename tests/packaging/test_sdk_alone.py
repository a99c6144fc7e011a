"""`pip install rsched`: what it brings, what works with it, and what says which extra is missing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import msgspec
import pytest

from tests.client.fake_api import JOB, Reply, serving

ROOT = Path(__file__).parents[2]
EXPECTED = {"rsched", "msgspec", "pyreqwest"}
MOST_MB = 20  # before there were extras: 30 packages with 117 MB

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

PROGRAM = """
import asyncio, sys
from datetime import date
from rsched import App, AsyncClient, Client, JobContext, NotFound, RschedError

app = App()

@app.function("reports.nightly", queue="reports")
def nightly(day: date, context: JobContext) -> None: ...

async def names(url):
    async with AsyncClient(url) as client:
        return (await client.get_job("nightly")).name

assert issubclass(NotFound, RschedError) and NotFound.code == "not_found" and not NotFound.retryable
with Client(sys.argv[1]) as client:
    assert client.create_job("nightly", cron="@daily", url="http://x/").job_id == "j_0123456789abc"
print(app.queues, asyncio.run(names(sys.argv[1])))
"""

SIZES = """
import json
from importlib.metadata import distributions

def size(distribution):
    files = (distribution.locate_file(f) for f in distribution.files or ())
    return sum(path.stat().st_size for path in files if path.is_file())

found = {d.name.lower(): size(d) for d in distributions()}
print(json.dumps({k: v for k, v in found.items() if k not in ("pip", "setuptools")}))
"""


class Installed(NamedTuple):
    """A virtual environment with the wheel and nothing else."""

    folder: Path

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        """Runs a program of the environment, away from the source tree."""
        argv = [str(self.folder / "bin" / command[0]), *command[1:]]
        env = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "RSCHED_"))}
        return subprocess.run(argv, cwd=self.folder, env=env, capture_output=True, text=True, timeout=120, check=False)


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    folder = tmp_path_factory.mktemp("sdk")
    pip = ["-m", "pip", "--quiet", "--disable-pip-version-check"]
    build = [sys.executable, *pip, "wheel", "--no-deps", "--no-build-isolation", "-w", str(folder), str(ROOT)]
    subprocess.run(build, check=True, capture_output=True)
    (wheel,) = folder.glob("rsched-*.whl")
    subprocess.run([sys.executable, "-m", "venv", str(folder / "venv")], check=True)
    install = [str(folder / "venv/bin/python"), *pip, "install", "-c", str(ROOT / "constraints.txt"), str(wheel)]
    subprocess.run(install, check=True, capture_output=True, cwd=folder)
    return Installed(folder / "venv")


def test_it_brings_two_packages_and_little_to_store(installed: Installed) -> None:
    sizes = msgspec.json.decode(installed.run("python", "-c", SIZES).stdout, type=dict[str, int])
    assert set(sizes) == EXPECTED
    assert sum(sizes.values()) / 1e6 < MOST_MB


def test_both_clients_errors_and_the_app_work_with_it(installed: Installed) -> None:
    with serving(Reply(200, JOB)) as api:
        done = installed.run("python", "-W", "error", "-c", PROGRAM, api.url)
    assert (done.stdout, done.stderr, done.returncode) == ("('reports',) nightly\n", "", 0)


def test_types_come_along(installed: Installed) -> None:
    assert list(installed.folder.glob("lib/python3*/site-packages/rsched/py.typed"))


@pytest.mark.parametrize("arguments", [["--help"], ["jobs", "list"]])
def test_the_command_says_what_to_install(installed: Installed, arguments: list[str]) -> None:
    done = installed.run("rsched", *arguments)
    assert done.stderr == "error: typer is not installed; pip install 'rsched[cli]'\n"
    assert done.returncode == 2
