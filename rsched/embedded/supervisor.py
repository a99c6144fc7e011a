"""Keeps a table of processes and servers running, and ends all of them together."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

import anyio

from rsched.core.errors import Misconfigured, Unavailable
from rsched.embedded.children import spawn, sweep, write_private
from rsched.embedded.table import Entry
from rsched.runtime.clock import Clock

_CHECK_MS = 50
_FIRST_BACKOFF_MS = 500
_LAST_BACKOFF_MS = 10_000
_STEADY_MS = 30_000
# Together under the 10 s that a stop may take; `rsched up` lets its workers drain for 7 s.
_DRAIN_MS, _STOP_MS, _SERVERS_MS = 7_600, 700, 1_000

Process = subprocess.Popen[bytes]


class Server(Protocol):
    """A server that the supervisor starts again when it dies."""

    child: Process | None

    def start(self) -> None:
        """Blocks until it answers, on the same port as before."""


class Supervisor:
    """Starts processes and servers again when they die, and says in processes.json what runs.

    Args:
        entries: The processes.
        servers: The servers, by name; they run already.
        env: The environment variables of the processes.
        folder: The data folder, with its logs.
        facts: What processes.json says beside the processes.
        restart: Whether what dies is started again.
        clock: This machine's clock.
        say: Takes one line for the person who watches.
        last: Awaited at a stop, when all but the servers have ended.
    """

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
        last: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self._entries = {e.name: e for e in entries}
        self._servers, self._env, self._folder, self._facts = dict(servers), dict(env), folder, dict(facts)
        self._restart, self._clock, self._say, self._last = restart, clock, say, last
        self._running: dict[str, Process] = {}
        self._since = dict.fromkeys(servers, clock.boot_ms())
        self._failures: dict[str, int] = {}
        self._due: dict[str, int] = {}
        self._gone: set[str] = set()

    async def watch(self, stop: anyio.Event) -> None:
        """Starts all processes and keeps everything running until stop is set."""
        self.publish()
        for name in self._entries if not stop.is_set() else ():
            self._start(name)
        self.publish()
        while not stop.is_set():
            self._check()
            await self._clock.sleep(_CHECK_MS)

    def publish(self) -> None:
        """Writes to processes.json what runs now."""
        servers = {n: s.child for n, s in self._servers.items() if s.child is not None and s.child.poll() is None}
        processes = [{"name": n, "pid": p.pid} for n, p in (self._running | servers).items()]
        write_private(self._folder / "processes.json", json.dumps({**self._facts, "processes": processes}, indent=1))

    def _check(self) -> None:
        now = self._clock.boot_ms()
        children = {n: s.child for n, s in self._servers.items() if s.child is not None} | self._running
        for name, process in children.items():
            if process.poll() is not None and name not in self._due and name not in self._gone:
                self._running.pop(name, None)
                sweep(process)
                self._died(name, process.returncode, now)
        for name in [n for n, due_at in self._due.items() if due_at <= now]:
            del self._due[name]
            self._start_again(name)

    def _died(self, name: str, code: int, now: int) -> None:
        if not self._restart:
            self._gone.add(name)
            self._say(f"{name} ended with code {code}, and is not started again; its log: {self._log(name)}")
        else:
            if now - self._since[name] >= _STEADY_MS:
                self._failures[name] = 0
            failed = self._failures.get(name, 0)
            self._failures[name] = failed + 1
            delay = min(_FIRST_BACKOFF_MS * 2 ** min(failed, 10), _LAST_BACKOFF_MS)
            self._due[name] = now + delay
            self._say(
                f"{name} ended with code {code}, starting it again in {delay / 1000:g} s; its log: {self._log(name)}"
            )
        self.publish()

    def _start_again(self, name: str) -> None:
        try:
            self._start(name)
        except (Misconfigured, Unavailable) as error:
            # A server that did not come up is dead, so that the next check counts it and waits longer.
            self._say(f"{name}: {error}")
            return
        self.publish()
        self._say(f"{name} is started again")

    def _start(self, name: str) -> None:
        self._since[name] = self._clock.boot_ms()
        if name in self._servers:
            self._servers[name].start()
        else:
            self._running[name] = spawn(self._entries[name].argv, log=self._log(name), env=self._env)

    def _log(self, name: str) -> Path:
        return self._folder / "logs" / f"{name}.log"

    async def stop(self) -> None:
        """Ends workers and the scheduler first, then recorder and API, the servers last; kills what is too slow."""
        first = [p for n, p in self._running.items() if self._entries[n].first]
        rest = [p for n, p in self._running.items() if not self._entries[n].first]
        servers = [s.child for s in self._servers.values() if s.child is not None]
        await self._end(first, signal.SIGTERM, within_ms=_DRAIN_MS)
        await self._end(rest, signal.SIGTERM, within_ms=_STOP_MS)
        if self._last is not None:
            await self._last()
        # On SIGINT both servers end at once and keep everything; on SIGTERM Postgres would wait for its clients.
        await self._end(servers, signal.SIGINT, within_ms=_SERVERS_MS)
        self._running.clear()
        (self._folder / "processes.json").unlink(missing_ok=True)

    async def _end(self, processes: Sequence[Process], number: signal.Signals, *, within_ms: int) -> None:
        for process in processes:
            if process.poll() is None:
                process.send_signal(number)
        until = self._clock.boot_ms() + within_ms
        while any(p.poll() is None for p in processes) and self._clock.boot_ms() < until:
            await self._clock.sleep(20)
        for process in processes:
            sweep(process)
