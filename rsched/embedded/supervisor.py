"""Keeps a table of processes and servers running, and ends all of them together."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

import anyio

from rsched.core.errors import Misconfigured, Unavailable
from rsched.embedded.children import spawn, sweep, write_private
from rsched.embedded.table import Entry
from rsched.runtime.clock import Clock

_LOOK_MS = 50
_FIRST_BACKOFF_MS = 200
_LAST_BACKOFF_MS = 10_000
_STEADY_MS = 30_000
# Together under the 10 s that a stop may take; a worker drains for 8 s unless told less.
_DRAIN_MS, _STOP_MS = 8_300, 700


class Server(Protocol):
    child: subprocess.Popen[bytes] | None

    def start(self) -> None: ...
    def stop(self) -> None: ...


class Supervisor:
    """say: takes one line for the person who watches."""

    def __init__(
        self,
        entries: Sequence[Entry],
        *,
        servers: Mapping[str, Server],
        env: Mapping[str, str],
        folder: Path,
        facts: Mapping[str, str],
        restart: bool,
        clock: Clock,
        say: Callable[[str], None],
    ) -> None:
        self._entries = {e.name: e for e in entries}
        self._servers, self._env, self._folder, self._facts = dict(servers), dict(env), folder, dict(facts)
        self._restart, self._clock, self._say = restart, clock, say
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self._since: dict[str, int] = {}
        self._failures: dict[str, int] = {}
        self._due: dict[str, int] = {}
        self._given_up: set[str] = set()

    async def run_first(self, entry: Entry, stop: anyio.Event) -> None:
        """Runs it to its end. Unavailable when it fails, with the end of its log."""
        process = self._spawn(entry)
        try:
            while process.poll() is None and not stop.is_set():
                await self._clock.sleep(_LOOK_MS)
        finally:
            sweep(process)
        if process.returncode != 0 and not stop.is_set():
            tail = "\n".join(self._log(entry.name).read_text(errors="replace").splitlines()[-5:])
            raise Unavailable(f"`{entry.name}` failed:\n{tail}\nall of it: {self._log(entry.name)}")

    async def watch(self, stop: anyio.Event) -> None:
        """Starts everything and keeps it running until stop is set."""
        for entry in self._entries.values():
            self._start(entry)
        self._publish()
        while not stop.is_set():
            self._look()
            await self._clock.sleep(_LOOK_MS)

    def _look(self) -> None:
        now = self._clock.boot_ms()
        for name, server in self._servers.items():
            process = server.child
            if process is not None and process.poll() is not None and name not in self._due:
                self._died(name, process.returncode, now)
        for name, process in list(self._running.items()):
            if process.poll() is not None:
                sweep(process)
                del self._running[name]
                self._died(name, process.returncode, now)
        for name, due_at in list(self._due.items()):
            if due_at <= now:
                self._again(name, now)

    def _died(self, name: str, code: int, now: int) -> None:
        how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
        if not self._restart:
            if name not in self._given_up:
                self._given_up.add(name)
                self._say(f"{name} ended ({how}); not started again")
                self._publish()
            return
        if now - self._since.get(name, now) >= _STEADY_MS:
            self._failures[name] = 0
        failed = self._failures.get(name, 0)
        self._failures[name] = failed + 1
        delay = min(_FIRST_BACKOFF_MS * 2 ** min(failed, 10), _LAST_BACKOFF_MS)
        self._due[name] = now + delay
        self._say(f"{name} ended ({how}); starting it again in {delay / 1000:g} s; log: {self._log(name)}")

    def _again(self, name: str, now: int) -> None:
        del self._due[name]
        entry = self._entries.get(name)
        if entry is not None:
            self._start(entry)
        else:
            self._since[name] = now
            try:
                self._servers[name].start()
            except (Misconfigured, Unavailable) as error:
                # Its process is dead, so the next look counts the failure and waits longer.
                self._say(f"{name}: {error}")
                return
        self._publish()
        self._say(f"{name} is started again")

    def _start(self, entry: Entry) -> None:
        self._running[entry.name] = self._spawn(entry)
        self._since[entry.name] = self._clock.boot_ms()

    def _spawn(self, entry: Entry) -> subprocess.Popen[bytes]:
        return spawn(entry.argv, log=self._log(entry.name), env=self._env)

    def _log(self, name: str) -> Path:
        return self._folder / "logs" / f"{name}.log"

    def _publish(self) -> None:
        processes = [{"name": n, "pid": p.pid} for n, p in self._running.items()]
        for name, server in self._servers.items():
            if server.child is not None and server.child.poll() is None:
                processes.append({"name": name, "pid": server.child.pid})
        write_private(self._folder / "processes.json", json.dumps({**self._facts, "processes": processes}, indent=1))

    async def stop(self) -> None:
        """Workers drain first, then the rest ends, the servers last; what does not end in time is killed."""
        first = [p for n, p in self._running.items() if self._entries[n].stop_first]
        rest = [p for n, p in self._running.items() if not self._entries[n].stop_first]
        await self._end(first, within_ms=_DRAIN_MS)
        await self._end(rest, within_ms=_STOP_MS)
        self._running.clear()
        (self._folder / "processes.json").unlink(missing_ok=True)

    async def _end(self, processes: Sequence[subprocess.Popen[bytes]], *, within_ms: int) -> None:
        for process in processes:
            if process.poll() is None:
                process.terminate()
        until = self._clock.boot_ms() + within_ms
        while any(p.poll() is None for p in processes) and self._clock.boot_ms() < until:
            await self._clock.sleep(20)
        for process in processes:
            sweep(process)
