"""The demo of `rsched up --demo`: five jobs, a small target, and a line for each run as it starts and ends."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import anyio
from anyio.abc import SocketStream
from rich.console import Console

from rsched.client import AsyncClient
from rsched.core.errors import RschedError
from rsched.core.model import RunView
from rsched.runtime.clock import Clock

_ENDED = {"SUCCEEDED": "green", "DEAD": "red", "CANCELLED": "yellow"}
_ANSWER = b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n"
_LOOK_MS = 500
_TEN = 10


async def run_demo(api: str, console: Console, clock: Clock) -> None:
    """Runs until cancelled."""
    async with AsyncClient(api, clock=clock) as client, anyio.create_task_group() as group:
        while not await client.ready():
            await clock.sleep(200)
        listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
        group.start_soon(listener.serve, _answer)
        port = listener.extra(anyio.abc.SocketAttribute.local_port)
        names = {}
        for name, spec in _jobs(f"http://127.0.0.1:{port}/", clock).items():
            names[(await client.put_spec(name, spec)).job_id] = name
        console.print(f"{len(names)} jobs are there; each run as it starts and ends:")
        _say_commands(api, console)
        await _Watch(client, names, console).forever(clock)


def _jobs(url: str, clock: Clock) -> dict[str, dict[str, Any]]:
    at = datetime.fromtimestamp((clock.wall_ms() + 2000) / 1000, UTC).isoformat(timespec="milliseconds")
    http = {"type": "http", "url": url}
    return {
        "demo-once": {"schedule": {"at": at}, "target": http},
        "demo-delayed": {"schedule": {"delay": "4s"}, "target": http},
        "demo-every-5s": {"schedule": {"every": "5s"}, "target": http},
        "demo-cron": {"schedule": {"cron": "* * * * *"}, "target": http},
        "demo-function": {
            "schedule": {"every": "10s"},
            "target": {"type": "function", "queue": "demo", "function": "demo.greet", "args": ["you"]},
        },
    }


async def _answer(stream: SocketStream) -> None:
    async with stream:
        head = b""
        while b"\r\n\r\n" not in head:
            head += await stream.receive(65536)
        await stream.send(_ANSWER)


class _Watch:
    """Says what is new about the runs of some jobs. Of what was before its first look, it says nothing."""

    def __init__(self, client: AsyncClient, names: dict[str, str], console: Console) -> None:
        self._client, self._names, self._console = client, names, console
        self._said: dict[str, str] = {}

    async def forever(self, clock: Clock) -> None:
        while True:
            for job_id, name in self._names.items():
                try:
                    page = await self._client.runs_page(job_id, limit=_TEN)
                except RschedError:
                    continue  # The API is away; the supervisor says so.
                for run in reversed(page.items):
                    self._look(name, run)
            await clock.sleep(_LOOK_MS)

    def _look(self, name: str, run: RunView) -> None:
        status = str(getattr(run.status, "value", run.status))
        before = self._said.get(run.run_id)
        if status == before or run.started_at is None:
            return
        self._said[run.run_id] = status
        late = "" if run.lateness_ms is None else f"{run.lateness_ms:g} ms late"
        if before is None:
            self._console.print(f"  [cyan]started[/cyan]    {name:14} {run.scheduled_at}  {late}")
        if status in _ENDED:
            took = "" if run.duration_s is None else f"took {run.duration_s * 1000:.0f} ms"
            self._console.print(f"  [{_ENDED[status]}]{status:10}[/] {name:14} {run.scheduled_at}  {late}  {took}")


def _say_commands(api: str, console: Console) -> None:
    console.print(f"the API: [bold]{api}[/bold]; three commands to try:")
    for command in (
        f"curl -s '{api}/v1/jobs?limit=5'",
        f"rsched --url {api} jobs list",
        f"rsched --url {api} jobs trigger demo-cron",
    ):
        console.print(f"  {command}", markup=False)
