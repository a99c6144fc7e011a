"""`rsched up`: both servers and every process on this machine, from one command, in one data folder."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TextIO

import anyio
from rich.console import Console

from rsched.core.errors import Misconfigured
from rsched.embedded.children import port_taken
from rsched.embedded.demo import run_demo
from rsched.embedded.process import free_port
from rsched.embedded.servers import Servers, folder_lock
from rsched.embedded.supervisor import Server, Supervisor
from rsched.embedded.table import Table, UpOptions, child_env, process_table
from rsched.ledger.databases import ensure_database
from rsched.runtime.clock import Clock

__all__ = ["UpOptions", "run_up"]


async def run_up(
    options: UpOptions,
    stop: anyio.Event,
    *,
    clock: Clock,
    out: TextIO | None = None,
    table: Callable[[UpOptions], Table] = process_table,
) -> None:
    """Runs until stop is set or exit_after is over. Misconfigured when it cannot, with the mend; Unavailable."""
    console = Console(file=out or sys.stdout, highlight=False, soft_wrap=True)
    folder = _folder(options)

    with folder_lock(folder):
        if options.port and port_taken("127.0.0.1", options.port):
            raise Misconfigured(f"port {options.port} is taken; stop what listens there, or choose another --port")
        options = options._replace(port=options.port or free_port())
        await _run(options, stop, folder=folder, clock=clock, console=console, table=table(options))


async def _run(
    options: UpOptions, stop: anyio.Event, *, folder: Path, clock: Clock, console: Console, table: Table
) -> None:
    servers = Servers(
        folder,
        redis_url=os.environ.get("RSCHED_REDIS_URL"),
        database_url=os.environ.get("RSCHED_DATABASE_URL"),
        clock=clock,
    )
    try:
        servers.start()
        redis_url, postgres_url = servers.redis_url, servers.database_url
        await ensure_database(postgres_url)
        both: dict[str, Server | None] = {"redis": servers.redis, "postgres": servers.postgres}
        api = f"http://127.0.0.1:{options.port}"
        supervisor = Supervisor(
            table.entries,
            servers={name: server for name, server in both.items() if server is not None},
            env=child_env(os.environ, redis_url=redis_url, postgres_url=postgres_url, port=options.port),
            folder=folder,
            facts={"api": api, "redis_url": redis_url, "postgres_url": postgres_url},
            restart=options.restart,
            clock=clock,
            say=lambda line: console.print(line, style="yellow", markup=False),
        )
        if table.first is not None:
            await supervisor.run_first(table.first, stop)
        if stop.is_set():
            return
        console.print(f"rsched runs at [bold]{api}[/bold]; data and logs in {folder}")
        try:
            async with anyio.create_task_group() as group:
                if options.exit_after is not None:
                    group.start_soon(_set_after, stop, options.exit_after * 1000, clock)
                if options.demo:
                    group.start_soon(run_demo, api, console, clock)
                await supervisor.watch(stop)
                group.cancel_scope.cancel()
        finally:
            with anyio.CancelScope(shield=True):
                console.print("stopping")
                await supervisor.stop()
    finally:
        servers.stop()


async def _set_after(stop: anyio.Event, ms: float, clock: Clock) -> None:
    await clock.sleep(ms)
    stop.set()


def _folder(options: UpOptions) -> Path:
    folder = Path(options.data_dir).resolve()
    (folder / "logs").mkdir(parents=True, exist_ok=True)
    return folder
