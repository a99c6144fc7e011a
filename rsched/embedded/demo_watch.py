"""Prints the runs of some jobs, a line as each starts and a line as it ends."""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime

from rich.console import Console
from rich.text import Text

from rsched.client import AsyncClient
from rsched.core.answers import RunView
from rsched.core.errors import RschedError
from rsched.core.instants import parse_instant
from rsched.embedded.demo_target import Arrival
from rsched.runtime.clock import Clock
from rsched.runtime.loop import Wake

_ENDED = {"SUCCEEDED": "green", "DEAD": "red", "CANCELLED": "yellow"}
_SOON_MS, _IDLE_MS = 50, 500
_PATIENCE_MS = 120_000
_PAGE = 10


class Watch:
    """Learns of a start from the target at once and of an end from the API; of function runs it learns all from the API."""

    def __init__(self, client: AsyncClient, console: Console, *, clock: Clock) -> None:
        self._client, self._console, self._clock = client, console, clock
        self._names: dict[str, str] = {}
        self._polled: set[str] = set()
        self._open: dict[str, tuple[str, int]] = {}  # run -> its job, and the last instant (ms, boot clock) of news
        self._said: set[tuple[str, int, str]] = set()
        self._wake = Wake()

    async def add(self, job_id: str, name: str, *, polled: bool) -> None:
        """Watches a job from now on; runs that have ended before are not printed.

        Args:
            job_id: The job's id.
            name: The name that its lines show.
            polled: Whether its starts are asked from the API, since they do not arrive at the demo's target.
        """
        self._names[job_id] = name
        if polled:
            self._polled.add(job_id)
            for run in (await self._client.list_runs_page(job_id, limit=_PAGE)).items:
                if run.status in _ENDED:
                    self._said |= {(run.run_id, run.attempt, "started"), (run.run_id, run.attempt, run.status)}

    def arrived(self, arrival: Arrival) -> None:
        """Prints that a run has started, and asks about its end from now on."""
        name = self._names.get(arrival.job_id)
        if name is None:
            return
        late = ""
        if arrival.attempt == 1 and arrival.scheduled_at:
            late = f"{max(0, arrival.at_ms - parse_instant(arrival.scheduled_at))} ms late"
        self._open[arrival.run_id] = (arrival.job_id, self._clock.boot_ms())
        self._started(arrival.run_id, arrival.attempt, name=name, at_ms=arrival.at_ms, late=late)
        self._wake.set()

    async def forever(self) -> None:
        """Asks the API and prints until it is cancelled."""
        while True:
            now = self._clock.boot_ms()
            # A run whose worker died comes back by itself; one that does not is no longer asked about.
            self._open = {run: entry for run, entry in self._open.items() if now - entry[1] < _PATIENCE_MS}
            for job_id in {job for job, _ in self._open.values()} | self._polled:
                # While the API is away the supervisor says so.
                with suppress(RschedError):
                    for run in reversed((await self._client.list_runs_page(job_id, limit=_PAGE)).items):
                        self._print_news(self._names[job_id], run)
            if self._open:
                await self._clock.sleep(_SOON_MS)
            else:
                await self._wake.wait(_IDLE_MS)

    def _print_news(self, name: str, run: RunView) -> None:
        polled = run.job_id in self._polled
        if run.started_at is None or not (polled or run.run_id in self._open):
            return
        if polled:
            late = "" if run.lateness_ms is None else f"{run.lateness_ms} ms late"
            at_ms = parse_instant(run.started_at)
            self._started(run.run_id, run.attempt, name=name, at_ms=at_ms, late=late)
        key = (run.run_id, run.attempt, run.status)
        if run.status not in (*_ENDED, "RETRYING") or key in self._said:
            return
        self._said.add(key)
        took = "" if run.duration_s is None else f"took {run.duration_s * 1000:.0f} ms"
        if run.status == "RETRYING":
            self._line(self._clock.wall_ms(), name, "failed", "yellow", f"{run.error or ''}, to be tried again")
            return
        self._open.pop(run.run_id, None)
        at_ms = parse_instant(run.finished_at) if run.finished_at else self._clock.wall_ms()
        about = took if run.status == "SUCCEEDED" else f"{took}  {run.error or ''}"
        self._line(at_ms, name, run.status.lower(), _ENDED[run.status], about)

    def _started(self, run_id: str, attempt: int, *, name: str, at_ms: int, late: str) -> None:
        key = (run_id, attempt, "started")
        if key not in self._said:
            self._said.add(key)
            self._line(at_ms, name, "started", "cyan", late if attempt == 1 else f"attempt {attempt}")

    def _line(self, at_ms: int, name: str, what: str, style: str, about: str) -> None:
        at = datetime.fromtimestamp(at_ms / 1000).strftime("%H:%M:%S.%f")[:-3]
        text = Text.assemble((at, "dim"), f"  {name:18} ", (f"{what:10}", style), f" {about}")
        text.rstrip()
        # The reader of the output may be gone.
        with suppress(OSError):
            self._console.print(text)
