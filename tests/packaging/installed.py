"""Builds the wheel and the sdist, installs one of them into an environment of its own, and runs what is installed there."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tarfile
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from rsched.core.states import RunState
from rsched.runtime.clock import SystemClock

ROOT = Path(__file__).parents[2]
_CLOCK = SystemClock()
_INSTALL_S = 300
_COMMAND_S = 60

T = TypeVar("T")


def until(look: Callable[[], T | None], *, what: str, within_s: float) -> T:
    """Looks until there is something to see. AssertionError with what it waited for when the time is up."""
    end = _CLOCK.boot_ms() + within_s * 1000
    while (seen := look()) is None:
        assert _CLOCK.boot_ms() < end, f"{what}: not within {within_s} s"
        _CLOCK.sleep_sync(50)
    return seen


def environment() -> dict[str, str]:
    """Returns our own environment without what would lead a command back to the checkout or to other servers."""
    return {k: v for k, v in os.environ.items() if not k.startswith(("RSCHED_", "PYTHON", "VIRTUAL_ENV"))}


def build(source: Path, target: Path, *, kind: str) -> Path:
    """Builds a `wheel` or an `sdist` of the source folder with the build backend that constraints.txt pins."""
    before = set(target.iterdir()) if target.exists() else set()
    _run([sys.executable, "-m", "hatchling", "build", "--target", kind, "--directory", str(target)], cwd=source)
    (built,) = set(target.iterdir()) - before
    return built


def build_from_sdist(sdist: Path, folder: Path) -> Path:
    """Builds a wheel from nothing but what the sdist contains."""
    with tarfile.open(sdist) as archive:
        archive.extractall(folder, filter="data")
    (source,) = folder.iterdir()
    return build(source, folder.with_name(f"{folder.name}-wheel"), kind="wheel")


class Installed:
    """An environment that has the wheel with one extra, and nothing of the checkout."""

    def __init__(self, folder: Path, wheel: Path, *, extra: str) -> None:
        self.bin = folder / "bin"
        _run([sys.executable, "-m", "venv", "--without-pip", str(folder)], cwd=folder.parent)
        pip = (sys.executable, "-m", "pip", "--python", str(self.bin / "python"))
        options = ("--quiet", "--disable-pip-version-check", "--prefer-binary", "-c", str(ROOT / "constraints.txt"))
        _run([*pip, "install", *options, f"{wheel}[{extra}]"], cwd=folder.parent, within_s=_INSTALL_S)

    def run(self, *arguments: str, cwd: Path) -> str:
        """Returns what the command `rsched` printed. AssertionError unless it exits with 0."""
        return _run([str(self.bin / "rsched"), *arguments], cwd=cwd)

    def python(self, code: str, *, cwd: Path) -> str:
        """Returns what the code printed."""
        return _run([str(self.bin / "python"), "-c", code], cwd=cwd)


class Up:
    """`rsched up` of an installed wheel, in a folder that has nothing in it."""

    def __init__(self, installed: Installed, folder: Path) -> None:
        self._folder = folder
        self._output = folder.with_name(f"{folder.name}.log")
        with self._output.open("wb") as output:
            self._process = subprocess.Popen(
                [str(installed.bin / "rsched"), "up", "--port", "0", "--workers", "1"],
                cwd=folder, env=environment(), stdout=output, stderr=output,
            )  # fmt: skip

    def wait_ready(self) -> dict[str, Any]:
        """Returns processes.json, once the whole of it can take and run jobs."""

        def look() -> dict[str, Any] | None:
            assert self._process.poll() is None, self._output.read_text()
            if "rsched is ready" not in self._output.read_text():
                return None
            said: dict[str, Any] = json.loads((self._folder / ".rsched" / "processes.json").read_text())
            return said

        return until(look, what="rsched up is ready", within_s=60)

    def stop(self) -> int:
        """Asks it to stop as Ctrl-C does. Returns its exit code."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)
        try:
            return self._process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            raise


def call(method: str, url: str, body: Any = None) -> Any:
    """Returns the JSON of an answer to a request without the SDK."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"}, method=method)
    with urllib.request.urlopen(request, timeout=10) as answer:
        return json.load(answer)


def run_once(api: str) -> str:
    """Creates a job that is due at once and calls the API's own /healthz. Returns the status that its run ends with."""
    target = {"type": "http", "url": f"{api}/healthz", "method": "GET"}
    job = call("POST", f"{api}/v1/jobs", {"schedule": {"delay": "200ms"}, "target": target})

    def ended() -> str | None:
        runs = call("GET", f"{api}/v1/jobs/{job['job_id']}/runs")["items"]
        return runs[0]["status"] if runs and RunState(runs[0]["status"]).final else None

    return until(ended, what="the run has ended", within_s=20)


def _run(argv: list[str], *, cwd: Path, within_s: float = _COMMAND_S) -> str:
    done = subprocess.run(argv, cwd=cwd, env=environment(), capture_output=True, text=True, timeout=within_s)
    assert done.returncode == 0, f"{argv}\n{done.stdout}\n{done.stderr}"
    return done.stdout
