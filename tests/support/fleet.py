"""Real processes of rsched on servers of their own, started, killed, stopped and measured by whoever drives a run."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from rsched.runtime.clock import Clock

ROOT = Path(__file__).parents[2]
_TICKS = os.sysconf("SC_CLK_TCK")


class Fleet:
    """Processes by name (`worker-1`). env: settings for all of them. Logs go to folder/<name>.log, appended."""

    def __init__(self, folder: Path, env: Mapping[str, str], *, clock: Clock) -> None:
        self._folder, self._clock = folder, clock
        self._env = {**{k: v for k, v in os.environ.items() if not k.startswith("RSCHED_")}, **env}
        self.processes: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, name: str, *options: str, env: Mapping[str, str] | None = None) -> int:
        """Starts `rsched <kind>`, the kind being what comes before the dash. Its pid."""
        kind = name.partition("-")[0]
        command = [sys.executable, "-m", "rsched", kind, *options]
        with (self._folder / f"{name}.log").open("ab") as log:
            process = subprocess.Popen(
                command, cwd=ROOT, env={**self._env, **(env or {})}, stdout=log, stderr=log, stdin=subprocess.DEVNULL
            )
        self.processes[name] = process
        return process.pid

    def run(self, *command: str) -> None:
        """Runs an rsched command to its end; RuntimeError with what it said where it fails."""
        done = subprocess.run(
            [sys.executable, "-m", "rsched", *command], cwd=ROOT, env=self._env, capture_output=True, text=True
        )
        if done.returncode:
            raise RuntimeError(f"rsched {' '.join(command)}: {done.stdout}{done.stderr}")

    def kill(self, name: str) -> int:
        """kill -9, and waits until it is dead. Its pid."""
        process = self.processes.pop(name)
        process.kill()
        process.wait()
        return process.pid

    def signal(self, name: str, number: signal.Signals) -> int:
        self.processes[name].send_signal(number)
        return self.processes[name].pid

    def stop(self, name: str, *, within_s: float = 15) -> int:
        """SIGTERM and its exit code. subprocess.TimeoutExpired where it goes on."""
        process = self.processes.pop(name)
        process.terminate()
        return process.wait(within_s)

    def stop_all(self) -> None:
        """SIGTERM to all, SIGKILL to those that don't listen within 12 s."""
        for process in self.processes.values():
            process.send_signal(signal.SIGCONT)
            process.terminate()
        for process in self.processes.values():
            try:
                process.wait(12)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self.processes.clear()

    def died(self) -> list[str]:
        """Those that ended though nobody asked them to."""
        return [name for name, process in self.processes.items() if process.poll() is not None]

    def log(self, name: str) -> str:
        path = self._folder / f"{name}.log"
        return path.read_text(errors="replace") if path.exists() else ""

    def cpu(self) -> dict[str, float]:
        """Seconds of CPU that each process has used."""
        return {name: cpu_s(process.pid) for name, process in self.processes.items()}

    async def until(self, condition: Callable[[], Awaitable[bool]], *, what: str, within_s: float) -> None:
        """Waits for a condition, asked every 20 ms. TimeoutError, with the tails of all logs; RuntimeError where one died."""
        deadline = self._clock.boot_ms() + within_s * 1000
        while not await condition():
            if died := self.died():
                raise RuntimeError(f"{died} ended while waiting for {what}:\n{self._tails()}")
            if self._clock.boot_ms() > deadline:
                raise TimeoutError(f"not within {within_s} s: {what}\n{self._tails()}")
            await self._clock.sleep(20)

    def _tails(self) -> str:
        return "\n".join(f"--- {f.name}\n{f.read_text(errors='replace')[-1500:]}" for f in self._folder.glob("*.log"))


@contextmanager
def running(fleet: Fleet) -> Iterator[Fleet]:
    """Nothing is left behind, whatever happens within."""
    try:
        yield fleet
    finally:
        fleet.stop_all()


def cpu_s(pid: int, *, children: bool = False) -> float:
    """Seconds of CPU of a process, with `children` of all that it started too, dead or alive. 0 where there is none."""
    total = 0.0
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        total = sum(map(int, fields[11:15] if children else fields[11:13])) / _TICKS
        if children:
            found = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
            total += sum(cpu_s(int(child), children=True) for child in found)
    except FileNotFoundError:
        pass
    return total
