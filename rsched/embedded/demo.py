"""Runs the demo of `rsched up --demo`: five jobs, a small target, and a line for each run as it starts and ends."""

from __future__ import annotations

import os
import shutil
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio
from rich.console import Console

from rsched.client import AsyncClient
from rsched.core.instants import format_utc
from rsched.embedded.demo_target import listen, serve
from rsched.embedded.demo_watch import Watch
from rsched.runtime.clock import Clock

_ANCHOR = "2026-01-01T00:00:00Z"  # any fixed one, so that a second start changes nothing about the jobs
_FIRST_SECONDS_MS = 8_000


async def run_demo(api: str, *, folder: Path, console: Console, clock: Clock) -> None:
    """Runs the demo until it is cancelled, beside a deployment that is ready.

    Args:
        api: The URL of the API.
        folder: The data folder, where the target's port is remembered.
        console: Where the lines are printed.
        clock: This machine's clock.
    """
    listener, port = await listen(folder)
    async with AsyncClient(api, clock=clock) as client, listener, anyio.create_task_group() as group:
        watch = Watch(client, console, clock=clock)
        group.start_soon(lambda: serve(listener, watch.arrived, clock=clock))
        for name, spec in demo_jobs(f"http://127.0.0.1:{port}", clock=clock).items():
            job = await client.replace_job(name, spec=spec)
            await watch.add(job.job_id, name, polled=spec["target"]["type"] == "function")
        group.start_soon(watch.forever)
        await clock.sleep(_FIRST_SECONDS_MS)
        say_commands(api, console)


def demo_jobs(target: str, *, clock: Clock) -> dict[str, dict[str, Any]]:
    """Returns the definitions by name, to be put at each start: the one-offs then run again, the others go on."""
    hello = {"type": "http", "url": f"{target}/hello"}
    flaky = {"type": "http", "url": f"{target}/flaky"}
    greet = {"type": "function", "queue": "demo", "function": "demo.greet", "args": ["you"]}
    now = clock.wall_ms()
    # Without something new in it, putting the same delay again would count as a repeat of the last request.
    fresh_payload = {"demo_started_at": format_utc(now)}
    return {
        "demo-once": {"schedule": {"at": format_utc(now + 2000)}, "target": hello},
        "demo-delayed": {
            "schedule": {"delay": "4s"},
            "target": flaky,
            "retry": {"base": "500ms", "jitter": "none"},
            "payload": fresh_payload,
        },
        # Occurrences that passed while nothing ran are skipped; otherwise each start would print runs that are minutes late.
        "demo-every-5s": {"schedule": {"every": "5s", "anchor": _ANCHOR}, "target": hello, "misfire_policy": "skip"},
        "demo-every-minute": {"schedule": {"cron": "* * * * *"}, "target": hello, "misfire_policy": "skip"},
        "demo-function": {"schedule": {"every": "10s", "anchor": _ANCHOR}, "target": greet, "misfire_policy": "skip"},
    }


def say_commands(api: str, console: Console) -> None:
    """Prints three commands to try."""
    command = "rsched" if shutil.which("rsched") else _here(Path(sys.executable).with_name("rsched"))
    where = "" if api.endswith(":8080") else f" --api {api}"
    lines = [
        "",
        f"The API is at {api}. Three commands to try in another terminal:",
        f"  {command} jobs list{where}",
        f"  {command} jobs trigger demo-every-5s{where}",
        f"  curl -s '{api}/v1/jobs/demo-every-5s/runs?limit=3'",
        "",
    ]
    with suppress(OSError):
        console.print("\n".join(lines), style="bold", markup=False)


def _here(path: Path) -> str:
    """Returns the command as it is typed in this folder."""
    if not path.exists():
        return f"{sys.executable} -m rsched"
    relative = os.path.relpath(path)
    return str(path) if relative.startswith("..") else relative
