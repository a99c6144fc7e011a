"""Runs `rsched up`: both servers and every process on this machine, from one command, in one data folder."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from typing import TextIO

import anyio
from rich.console import Console

from rsched.client import AsyncClient
from rsched.core.errors import Misconfigured, Unavailable
from rsched.core.settings import WorkerSettings, load
from rsched.embedded.children import alive, port_taken
from rsched.embedded.demo import run_demo
from rsched.embedded.process import free_port
from rsched.embedded.servers import Servers, folder_lock
from rsched.embedded.supervisor import Server, Supervisor
from rsched.embedded.table import Entry, UpOptions, child_env, metrics_ports, process_table
from rsched.ledger.databases import ensure_database
from rsched.ledger.migrate import migrate
from rsched.runtime.clock import Clock
from rsched.store.store import Store, shard_tags
from rsched.worker.app import load_app

__all__ = ["UpOptions", "run_up"]

_HOST = "127.0.0.1"
# The servers of an `rsched up` that was killed with -9 keep the folder locked until they have ended.
_LEFTOVERS_MS = 10_000
_CLOSE_S = 1.0


async def run_up(
    options: UpOptions,
    stop: anyio.Event,
    *,
    clock: Clock,
    env: Mapping[str, str] = os.environ,
    out: TextIO | None = None,
    table: Callable[[UpOptions], Sequence[Entry]] = process_table,
) -> None:
    """Runs until stop is set or exit_after is over; call it from the main thread.

    Args:
        options: The options of the command.
        stop: Set when the process is asked to stop.
        clock: This machine's clock.
        env: The environment variables.
        out: Where lines for people go; by default standard output.
        table: Says which processes run.

    Raises:
        Misconfigured: Something about this machine or the options keeps it from starting, with the fix.
        Unavailable: Postgres does not answer.
    """
    console = Console(file=out or sys.stdout, highlight=False, soft_wrap=True)
    if options.app is not None:
        # It is loaded here too, since workers that cannot load it would be started again and again.
        load_app(options.app)
    folder = _folder(options)
    with ExitStack() as stack:
        lock = await _lock_folder(folder, stack, clock=clock)
        _require_free_ports(options)
        (folder / "processes.json").unlink(missing_ok=True)
        options = options._replace(
            port=options.port or free_port(), restart=options.restart and env.get("RSCHED_UP_RESTART") != "0"
        )
        servers = Servers(
            folder,
            redis_url=env.get("RSCHED_REDIS_URL"),
            database_url=env.get("RSCHED_DATABASE_URL"),
            clock=clock,
            inherit=(lock,),
        )
        stack.callback(servers.stop)
        servers.start()
        await ensure_database(servers.database_url)
        await migrate(servers.database_url)
        api = f"http://{_HOST}:{options.port}"
        both: dict[str, Server | None] = {"redis": servers.redis, "postgres": servers.postgres}
        supervisor = Supervisor(
            table(options),
            servers={name: server for name, server in both.items() if server is not None},
            env=child_env(env, redis_url=servers.redis_url, postgres_url=servers.database_url, port=options.port),
            folder=folder,
            facts={"api": api, "redis_url": servers.redis_url, "postgres_url": servers.database_url},
            restart=options.restart,
            clock=clock,
            say=lambda line: _say(console, line, style="yellow"),
            last=partial(_close, servers, env, clock),
        )
        await _run(supervisor, stop, options=options, api=api, folder=folder, console=console, clock=clock)


def _require_free_ports(options: UpOptions) -> None:
    """Refuses ports that something else listens on."""
    for port, others in (*([(options.port, "another with --port")] if options.port else []),
                         *((port, "others with --metrics-port") for port in metrics_ports(options))):  # fmt: skip
        if port_taken(_HOST, port):
            raise Misconfigured(f"port {port} of {_HOST} is taken; stop what listens there, or choose {others}")


async def _run(
    supervisor: Supervisor,
    stop: anyio.Event,
    *,
    options: UpOptions,
    api: str,
    folder: Path,
    console: Console,
    clock: Clock,
) -> None:
    async def ready() -> None:
        async with AsyncClient(api, timeout_s=2, retry_for_s=0, clock=clock) as client:
            while not await client.is_ready():
                await clock.sleep(100)
        _say(console, f"rsched is ready at {api}; data and logs are in {folder}; Ctrl-C stops it", style="bold")
        if options.demo:
            await run_demo(api, folder=folder, console=console, clock=clock)

    async def end() -> None:
        await clock.sleep((options.exit_after or 0) * 1000)
        stop.set()

    async with anyio.create_task_group() as group:
        group.start_soon(ready)
        if options.exit_after is not None:
            group.start_soon(end)
        try:
            await supervisor.watch(stop)
        finally:
            # Whatever ends this block, nothing may be left behind; stop() is bounded by itself. The demo's target answers
            # meanwhile, so that the last runs succeed.
            with anyio.CancelScope(shield=True):
                _say(console, "stopping")
                await supervisor.stop()
                _say(console, "stopped")
            group.cancel_scope.cancel()


async def _close(servers: Servers, env: Mapping[str, str], clock: Clock) -> None:
    """Closes the shards of an embedded Redis, so that the next start knows it complete and waits for no worker."""
    if servers.redis is None:
        return
    inherited = {k: v for k, v in env.items() if not k.startswith("RSCHED_UP_")}
    settings = load(WorkerSettings, env=inherited, toml={}, options={"redis_url": servers.redis_url})
    for tag in shard_tags(settings.shards):
        store = Store.open(settings.redis_url, prefix=settings.prefix, shard=tag, clock=clock)
        try:
            # Without it the next start only waits one lease for what was due.
            with suppress(Unavailable), anyio.move_on_after(_CLOSE_S):
                await store.recovery.close()
        finally:
            await store.aclose()


def _folder(options: UpOptions) -> Path:
    folder = Path(options.data_dir).expanduser().resolve()
    try:
        (folder / "logs").mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Misconfigured(f"{folder}: {error.strerror}; choose another with --data-dir") from None
    return folder


async def _lock_folder(folder: Path, stack: ExitStack, *, clock: Clock) -> int:
    """Locks the folder, once the servers of a killed `rsched up` have ended. Misconfigured where one is running."""
    until = clock.boot_ms() + _LEFTOVERS_MS
    while True:
        try:
            return stack.enter_context(folder_lock(folder))
        except Misconfigured as error:
            if _owner_lives(folder) or clock.boot_ms() > until:
                raise Misconfigured(f"{error}{_its_api(folder)}") from None
        await clock.sleep(50)


def _owner_lives(folder: Path) -> bool:
    try:
        return alive(int((folder / "lock").read_text()))
    except (OSError, ValueError):
        return True


def _its_api(folder: Path) -> str:
    try:
        return f"; its API is at {json.loads((folder / 'processes.json').read_text())['api']}"
    except (OSError, ValueError, KeyError):
        return ""


def _say(console: Console, line: str, *, style: str | None = None) -> None:
    # A reader of the output that is gone must not keep this process from stopping what it started.
    with suppress(OSError):
        console.print(line, style=style, markup=False)
