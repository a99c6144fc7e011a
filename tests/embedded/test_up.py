"""`rsched up` as it is typed, with everything real: it starts, goes on, refuses a second one, and leaves nothing."""

from __future__ import annotations

import json
import os
import pwd
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from rsched.client import Client
from rsched.embedded.children import alive
from rsched.embedded.process import free_port
from rsched.runtime.clock import SystemClock

_CLOCK = SystemClock()
_PROCESSES = {"api", "scheduler", "recorder", "worker-1", "redis", "postgres"}


def until(condition: Callable[[], Any], *, within_ms: int = 30_000) -> Any:
    end = _CLOCK.boot_ms() + within_ms
    while not (found := condition()):
        assert _CLOCK.boot_ms() < end, "it did not happen in time"
        _CLOCK.sleep_sync(20)
    return found


class Up:
    """One `rsched up` with one worker; its output goes to a file beside the data folder."""

    def __init__(self, folder: Path, *options: str, env: dict[str, str] | None = None, **popen: Any) -> None:
        self.folder, self.port = folder, free_port()
        self._output = folder.with_name(f"output-{self.port}")
        given = {k: v for k, v in os.environ.items() if not k.startswith("RSCHED_")} | (env or {})
        arguments = ["up", "--data-dir", str(folder), "--port", str(self.port), "--workers", "1", *options]
        with self._output.open("wb") as output:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "rsched", *arguments], stdout=output, stderr=output, env=given, **popen
            )

    def said(self) -> str:
        return self._output.read_text()

    def pids(self) -> dict[str, int]:
        try:
            found = json.loads((self.folder / "processes.json").read_text())
        except FileNotFoundError:
            return {}
        return {p["name"]: p["pid"] for p in found["processes"]}

    def ready(self) -> dict[str, int]:
        def look() -> bool:
            assert self.process.poll() is None, self.said()
            return "rsched is ready" in self.said()

        until(look)
        return self.pids()

    def client(self) -> Client:
        return Client(f"http://127.0.0.1:{self.port}", retry_for_s=20)

    def end(self) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        self.process.wait(timeout=12)


@pytest.fixture
def start() -> Iterator[Callable[..., Up]]:
    """Starts one in a fresh folder of the test, whatever user it is for."""
    base = Path(tempfile.mkdtemp(prefix="rsched-"))
    base.chmod(0o755)
    all_: list[Up] = []

    def begin(*options: str, **popen: Any) -> Up:
        all_.append(Up(base / "data", *options, **popen))
        return all_[-1]

    yield begin
    for up in all_:
        up.end()
    shutil.rmtree(base, ignore_errors=True)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_no_process_is_left_behind(start: Callable[..., Up], number: int) -> None:
    up = start()
    pids = up.ready()
    assert set(pids) == _PROCESSES
    up.process.send_signal(number)
    up.process.wait(timeout=10)
    until(lambda: not any(alive(p) for p in pids.values()), within_ms=0 if number != signal.SIGKILL else 10_000)
    assert number == signal.SIGKILL or up.process.returncode == 0


def test_after_a_kill_it_goes_on_with_the_same_jobs_at_once(start: Callable[..., Up]) -> None:
    first = start()
    first.ready()
    with first.client() as client:
        job = client.create_job("nightly", cron="0 2 * * *", url="http://127.0.0.1:9/")
    first.process.kill()
    first.process.wait()
    second = start()
    second.ready()
    with second.client() as client:
        assert client.get_job("nightly").job_id == job.job_id


def test_what_dies_is_started_again_and_works(start: Callable[..., Up]) -> None:
    up = start()
    pids = up.ready()
    for name in ("redis", "postgres", "recorder"):
        os.kill(pids[name], signal.SIGKILL)
    for name in ("redis", "postgres", "recorder"):
        until(lambda name=name: up.pids().get(name, pids[name]) != pids[name])
        assert f"{name} ended with code -9, starting it again in 0.5 s" in up.said()
    with up.client() as client:
        assert until(client.is_ready)


def test_with_restart_off_what_dies_stays_away(start: Callable[..., Up]) -> None:
    up = start(env={"RSCHED_UP_RESTART": "0"})
    os.kill(up.ready()["scheduler"], signal.SIGKILL)
    until(lambda: "scheduler ended with code -9, and is not started again" in up.said())
    until(lambda: set(up.pids()) == _PROCESSES - {"scheduler"})


def test_a_second_one_on_the_folder_says_where_the_first_is_and_ends(start: Callable[..., Up]) -> None:
    first = start()
    first.ready()
    second = start()
    assert second.process.wait(timeout=10) == 1
    assert f"(pid {first.process.pid}) is running on" in second.said()
    assert f"its API is at http://127.0.0.1:{first.port}" in second.said()
    assert first.process.poll() is None


def test_a_port_that_is_taken_is_said_with_the_fix(start: Callable[..., Up]) -> None:
    first = start()
    first.ready()
    other = start("--port", str(first.port), "--data-dir", str(first.folder.with_name("other")))
    assert other.process.wait(timeout=10) == 1
    assert "is taken" in other.said()
    assert "--port" in other.said()


def test_an_app_that_cannot_be_loaded_is_refused_before_anything_starts(start: Callable[..., Up]) -> None:
    up = start("--app", "nope:app")
    assert up.process.wait(timeout=10) == 1
    assert "no module 'nope'" in up.said()
    assert not (up.folder / "processes.json").exists()


def test_the_demo_shows_its_runs_and_ends_by_itself(start: Callable[..., Up]) -> None:
    first = start("--demo", "--exit-after", "20")
    assert first.process.wait(timeout=40) == 0, first.said()
    said = first.said()
    for name in ("demo-once", "demo-delayed", "demo-every-5s", "demo-function"):
        assert re.search(rf"^\d\d:\d\d:\d\d\.\d\d\d  {name} +started +\d+ ms late$", said, re.M), said
        assert re.search(rf"{name} +succeeded +took \d+ ms$", said, re.M), said
    assert re.search(r"demo-delayed +failed +HTTP 500", said), said
    assert f"The API is at http://127.0.0.1:{first.port}" in said
    again = start("--demo")
    again.ready()
    until(lambda: all(re.search(rf"{name} +succeeded", again.said()) for name in ("demo-once", "demo-delayed")))
    with again.client() as client:
        assert len(list(client.list_jobs())) == 5


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_another_user_runs_it_too(start: Callable[..., Up]) -> None:
    nobody = pwd.getpwnam("nobody")
    interpreter = Path(sys.executable).resolve()
    if not all(p.stat().st_mode & 1 for p in (*interpreter.parents, *Path(__file__).parents)):
        pytest.skip("that user cannot enter the folders of this interpreter")
    folder = Path(tempfile.mkdtemp(prefix="rsched-"))
    os.chown(folder, nobody.pw_uid, nobody.pw_gid)
    up = start("--data-dir", str(folder), user=nobody.pw_uid, group=nobody.pw_gid, extra_groups=[])
    up.folder = folder
    try:
        assert set(up.ready()) == _PROCESSES
        up.end()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def test_after_a_stop_what_came_due_meanwhile_waits_for_nobody(start: Callable[..., Up]) -> None:
    first = start()
    first.ready()
    with first.client() as client:
        client.create_job("soon", delay="4s", url="http://127.0.0.1:9/", max_attempts=1)
    due = _CLOCK.boot_ms() + 4000
    first.process.terminate()
    first.process.wait(timeout=15)
    until(lambda: _CLOCK.boot_ms() > due)
    second = start()
    second.ready()
    with second.client() as client:
        # Held for workers that may be at it, it would be for a lease of 60 s.
        assert until(lambda: client.list_runs_page("soon", status="DEAD").items, within_ms=20_000)
