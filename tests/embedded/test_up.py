"""`rsched up` with processes of no meaning: what it starts it keeps running, and ends."""

from __future__ import annotations

import contextlib
import json
import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from rsched.embedded.process import free_port
from rsched.runtime.clock import SystemClock

_CLOCK = SystemClock()
_PROGRAM = """
import sys
from rsched.core.errors import RschedError
from rsched.embedded.table import Entry, Table
from rsched.embedded.up import UpOptions, run_up
from rsched.runtime.clock import SystemClock
from rsched.runtime.service import run

sleeper = (sys.executable, "-c", "import signal; signal.pause()")
table = Table(Entry("first", (sys.executable, "-c", "print('once')")),
              (Entry("api", sleeper), Entry("worker-1", sleeper, stop_first=True)))
options = UpOptions(port=int(sys.argv[2]), data_dir=sys.argv[1])
try:
    run(lambda stop: run_up(options, stop, clock=SystemClock(), table=lambda _: table))
except RschedError as error:
    print(error)
    sys.exit(1)
"""


def until(condition: Callable[[], Any], *, within_ms: int = 20_000) -> Any:
    end = _CLOCK.boot_ms() + within_ms
    while not (found := condition()):
        assert _CLOCK.boot_ms() < end, "it did not happen in time"
        _CLOCK.sleep_sync(20)
    return found


class Up:
    def __init__(self, folder: Path, **popen: Any) -> None:
        self.folder, self.port = folder, free_port()
        env = {k: v for k, v in os.environ.items() if not k.startswith("RSCHED_")}
        self.process = subprocess.Popen(
            [sys.executable, "-c", _PROGRAM, str(folder), str(self.port)],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=env,
            **popen,
        )

    def pids(self) -> dict[str, int]:
        try:
            found = json.loads((self.folder / "processes.json").read_text())
        except FileNotFoundError:
            return {}
        return {p["name"]: p["pid"] for p in found["processes"]}

    def started(self) -> dict[str, int]:
        def look() -> dict[str, int]:
            assert self.process.poll() is None, self.process.communicate()
            return self.pids()

        return until(look)

    def end(self) -> str:
        self.process.send_signal(signal.SIGTERM)
        return self.process.communicate(timeout=15)[0]


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


@pytest.fixture
def folder() -> Iterator[Path]:
    base = Path(tempfile.mkdtemp(prefix="rsched-"))
    yield base / "data"
    shutil.rmtree(base, ignore_errors=True)


@pytest.fixture
def up(folder: Path) -> Iterator[Up]:
    started = Up(folder)
    yield started
    if started.process.poll() is None:
        with contextlib.suppress(ProcessLookupError):
            started.end()
    assert started.process.stdout is not None
    started.process.stdout.close()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_no_process_is_left_behind(up: Up, number: int) -> None:
    pids = up.started()
    assert set(pids) == {"api", "worker-1", "redis", "postgres"}
    up.process.send_signal(number)
    up.process.wait(timeout=10)
    until(lambda: not any(alive(p) for p in pids.values()), within_ms=10_000)


def test_it_starts_again_after_a_kill(up: Up, folder: Path) -> None:
    up.started()
    up.process.kill()
    up.process.wait()
    (folder / "processes.json").unlink()
    again = Up(folder)
    assert set(again.started()) == {"api", "worker-1", "redis", "postgres"}
    again.end()


@pytest.mark.parametrize("name", ["api", "redis", "postgres"])
def test_what_dies_is_started_again_and_said_so(up: Up, name: str) -> None:
    pid = up.started()[name]
    os.kill(pid, signal.SIGKILL)
    until(lambda: up.pids().get(name) not in (None, pid))
    said = up.end()
    assert f"{name} ended (signal SIGKILL)" in said
    assert f"{name} is started again" in said


def test_a_second_one_on_the_folder_says_so(up: Up, folder: Path) -> None:
    up.started()
    second = Up(folder)
    said = second.process.communicate(timeout=10)[0]
    assert second.process.returncode == 1
    assert "is running on" in said


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_another_user_runs_it_too(folder: Path) -> None:
    nobody = pwd.getpwnam("nobody")
    interpreter = Path(sys.executable).resolve()
    if not all(p.stat().st_mode & 1 for p in (*interpreter.parents, *Path(__file__).parents)):
        pytest.skip("that user cannot enter the folders of this interpreter")
    os.chown(folder.parent, nobody.pw_uid, nobody.pw_gid)
    other = Up(folder, user=nobody.pw_uid, group=nobody.pw_gid, extra_groups=[])
    assert set(other.started()) == {"api", "worker-1", "redis", "postgres"}
    other.end()
