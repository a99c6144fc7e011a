"""The supervisor alone, with processes of no meaning: what dies comes back, and all of it ends."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from rsched.embedded.children import alive, write_private
from rsched.embedded.supervisor import Supervisor
from rsched.embedded.table import Entry, UpOptions, child_env, process_table
from rsched.runtime.clock import SystemClock

pytestmark = pytest.mark.anyio

_CLOCK = SystemClock()
_SLEEPS = (sys.executable, "-c", "import signal; signal.pause()")
_DEAF = (
    sys.executable,
    "-c",
    "import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nprint('deaf', flush=True)\nwhile True: signal.pause()",
)
_FAILS = (sys.executable, "-c", "raise SystemExit(3)")


class World:
    """A supervisor in a folder, watched from beside it."""

    def __init__(self, folder: Path, *entries: Entry, restart: bool = True) -> None:
        (folder / "logs").mkdir()
        self.folder, self.said, self.stop = folder, list[str](), anyio.Event()
        self.supervisor = Supervisor(
            entries,
            servers={},
            env=os.environ,
            folder=folder,
            facts={"api": "http://127.0.0.1:1"},
            restart=restart,
            clock=_CLOCK,
            say=self.said.append,
        )

    def pid(self, name: str) -> int | None:
        path = self.folder / "processes.json"
        found = json.loads(path.read_text())["processes"] if path.exists() else []
        return next((p["pid"] for p in found if p["name"] == name), None)

    async def until(self, condition: Callable[[], Any]) -> Any:
        with anyio.fail_after(15):
            while not (found := condition()):
                await _CLOCK.sleep(10)
        return found

    async def run(self, body: Callable[[], Any]) -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(self.supervisor.watch, self.stop)
            try:
                await body()
            finally:
                self.stop.set()
                with anyio.CancelScope(shield=True):
                    await self.supervisor.stop()


async def test_what_is_killed_is_started_again_and_said_so(tmp_path: Path) -> None:
    world = World(tmp_path, Entry("worker-1", _SLEEPS))

    async def body() -> None:
        first = await world.until(lambda: world.pid("worker-1"))
        os.kill(first, signal.SIGKILL)
        second = await world.until(lambda: (p := world.pid("worker-1")) != first and p)
        assert alive(second)
        assert "worker-1 ended with code -9, starting it again in 0.5 s" in world.said[0]
        await world.until(lambda: "worker-1 is started again" in world.said)

    await world.run(body)


async def test_what_keeps_failing_is_started_again_ever_later(tmp_path: Path) -> None:
    world = World(tmp_path, Entry("api", _FAILS))

    async def body() -> None:
        await world.until(lambda: sum("ended with code 3" in line for line in world.said) == 3)
        pauses = [line.partition(" again in ")[2].partition(" s")[0] for line in world.said if "ended" in line]
        assert pauses == ["0.5", "1", "2"]

    await world.run(body)


async def test_with_restart_off_what_is_killed_stays_away(tmp_path: Path) -> None:
    world = World(tmp_path, Entry("worker-1", _SLEEPS), Entry("worker-2", _SLEEPS), restart=False)

    async def body() -> None:
        os.kill(await world.until(lambda: world.pid("worker-1")), signal.SIGKILL)
        await world.until(lambda: world.said)
        assert "worker-1 ended with code -9, and is not started again" in world.said[0]
        assert world.pid("worker-1") is None
        assert alive(world.pid("worker-2") or 0)
        await _CLOCK.sleep(700)  # longer than the first pause would have been
        assert len(world.said) == 1

    await world.run(body)


async def test_who_does_not_listen_is_killed(tmp_path: Path) -> None:
    world = World(tmp_path, Entry("api", _DEAF), Entry("worker-1", _SLEEPS, first=True))
    pids: list[int] = []

    async def body() -> None:
        pids.extend([await world.until(lambda: world.pid("api")), await world.until(lambda: world.pid("worker-1"))])
        await world.until(lambda: (tmp_path / "logs" / "api.log").read_text() == "deaf\n")

    began = _CLOCK.boot_ms()
    await world.run(body)
    assert not any(alive(pid) for pid in pids)
    assert _CLOCK.boot_ms() - began < 5000
    assert not (tmp_path / "processes.json").exists()


async def test_children_of_children_end_too(tmp_path: Path) -> None:
    code = (
        "import subprocess, sys\nprint(subprocess.Popen(sys.argv[1:]).pid, flush=True)\nimport signal; signal.pause()"
    )
    world = World(tmp_path, Entry("worker-1", (sys.executable, "-c", code, *_SLEEPS)))
    log = tmp_path / "logs" / "worker-1.log"
    pids: list[int] = []

    async def body() -> None:
        pids.append(int(await world.until(lambda: log.exists() and log.read_text().strip())))

    await world.run(body)
    await world.until(lambda: not alive(pids[0]))


def test_the_table_has_each_process_and_the_app() -> None:
    entries = process_table(UpOptions(workers=3, app="shop.jobs:app", demo=True))
    assert [e.name for e in entries] == [
        "api", "scheduler", "recorder", "worker-1", "worker-2", "worker-3", "worker-demo",
    ]  # fmt: skip
    assert entries[3].argv[-3:] == ("worker", "--app", "shop.jobs:app")
    assert [e.name for e in entries if e.first] == ["scheduler", "worker-1", "worker-2", "worker-3", "worker-demo"]


def test_children_get_the_addresses_and_nothing_of_the_supervisors() -> None:
    base = {"RSCHED_UP_RESTART": "0", "RSCHED_PREFIX": "x", "RSCHED_API_HOST": "0.0.0.0", "RSCHED_WORKER_DRAIN_S": "1"}
    assert child_env(base, redis_url="redis://r", postgres_url="postgresql://p", port=9) == {
        "RSCHED_PREFIX": "x",
        "RSCHED_API_HOST": "127.0.0.1",
        "RSCHED_API_PORT": "9",
        "RSCHED_REDIS_URL": "redis://r",
        "RSCHED_DATABASE_URL": "postgresql://p",
        "RSCHED_WORKER_DRAIN_S": "1",
    }


def test_a_private_file_is_replaced_whole_and_for_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "processes.json"
    write_private(path, "one")
    write_private(path, "two")
    assert path.read_text() == "two"
    assert path.stat().st_mode & 0o777 == 0o600
    assert os.listdir(tmp_path) == ["processes.json"]
