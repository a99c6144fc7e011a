"""Builds each kind of process from its settings (`rsched api|scheduler|worker|recorder|migrate|up`)."""

from __future__ import annotations

import importlib
import os
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from rsched.cli.group import expected
from rsched.cli.options import ConfigFile, Json, read_toml
from rsched.cli.output import print_json

if TYPE_CHECKING:
    import anyio

    from rsched.core.settings import Settings
    from rsched.runtime.clock import Clock

S = TypeVar("S", bound="Settings")

# By import string: the API is above nothing but this, and no process loads another one's code.
_HOMES = {
    "api": "rsched_api.main:run_api",
    "scheduler": "rsched.scheduler.main:run_scheduler",
    "worker": "rsched.worker.main:run_worker",
    "recorder": "rsched.recorder.main:run_recorder",
}
MetricsPort = Annotated[
    int | None,
    typer.Option(min=0, max=65535, help="The port of /metrics; by default none is served.", show_default=False),
]
# Only these speak to Postgres.
_WITH_LEDGER = ("api", "recorder")


def add_to(app: typer.Typer) -> None:
    """Adds these commands to `rsched`."""
    for command in (api, scheduler, worker, recorder, migrate, up):
        app.command()(command)


def api(
    host: Annotated[str | None, typer.Option(help="The address to listen on.", show_default=False)] = None,
    port: Annotated[
        int | None, typer.Option(help="The port to listen on, by default 8080.", show_default=False)
    ] = None,
    config: ConfigFile = None,
) -> None:
    """Serve the HTTP API."""
    _serve("api", config, {"host": host, "port": port})


def scheduler(metrics_port: MetricsPort = None, config: ConfigFile = None) -> None:
    """Turn due jobs into runs, on time."""
    _serve("scheduler", config, {"metrics_port": metrics_port})


def worker(
    app: Annotated[
        str | None,
        typer.Option("--app", help="The app with the Python functions, as package.module:app.", show_default=False),
    ] = None,
    queue: Annotated[
        list[str] | None,
        typer.Option("--queue", help="A queue to serve; may be given several times.", show_default=False),
    ] = None,
    concurrency: Annotated[
        int | None, typer.Option(help="How many attempts run at once, by default 100.", show_default=False)
    ] = None,
    metrics_port: MetricsPort = None,
    config: ConfigFile = None,
) -> None:
    """Fetch runs and call their targets; without --app, only HTTP targets."""
    options = {"app": app, "queues": tuple(queue) if queue else None, "concurrency": concurrency}
    _serve("worker", config, {**options, "metrics_port": metrics_port})


def recorder(metrics_port: MetricsPort = None, config: ConfigFile = None) -> None:
    """Record what happens in Redis to Postgres, and restore Redis from it."""
    _serve("recorder", config, {"metrics_port": metrics_port})


def migrate(config: ConfigFile = None, as_json: Json = False) -> None:
    """Bring the database to this release's schema."""
    import asyncio

    from rsched.core.settings import Settings, load, mask
    from rsched.ledger.migrate import migrate as apply
    from rsched.ledger.migrate import schema_version

    settings = load(Settings, env=os.environ, toml=read_toml(config))
    applied = asyncio.run(apply(settings.database_url))
    version = schema_version()
    if as_json:
        print_json({"applied": applied, "version": version})
        return
    for name in applied:
        typer.echo(f"applied {name}")
    typer.echo(f"{mask(settings.database_url)} has schema version {version}")


def up(
    demo: Annotated[bool, typer.Option("--demo", help="Create a few jobs and print each run as it happens.")] = False,
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port of the API; 0 takes a free one.")] = 8080,
    data_dir: Annotated[str, typer.Option(help="Where both servers keep their data.")] = "./.rsched",
    workers: Annotated[int, typer.Option(min=0, max=64, help="The number of worker processes.")] = 2,
    app: Annotated[
        str | None,
        typer.Option("--app", help="The app with the Python functions, as package.module:app.", show_default=False),
    ] = None,
    metrics_port: Annotated[
        int,
        typer.Option(
            min=0,
            max=65000,
            help="The port of the first process' /metrics, which the others follow; 0 serves none but the API's.",
        ),
    ] = 0,
    exit_after: Annotated[
        float | None,
        typer.Option(min=0, metavar="SECONDS", help="Stop by itself after so many seconds.", show_default=False),
    ] = None,
) -> None:
    """Start everything on this machine: both servers, the API, a scheduler, a recorder and workers."""
    from rsched.embedded.up import UpOptions, run_up
    from rsched.runtime.clock import SystemClock
    from rsched.runtime.service import run

    options = UpOptions(
        demo=demo,
        port=port,
        data_dir=data_dir,
        workers=workers,
        app=app,
        exit_after=exit_after,
        metrics_port=metrics_port,
    )

    async def main(stop: anyio.Event) -> None:
        await run_up(options, stop, clock=SystemClock())

    run(main)


def _serve(kind: str, config: str | None, options: dict[str, Any]) -> None:
    """Runs one process from start to end; errors go to its log, and the exit code is 1."""
    from rsched.core.errors import RschedError
    from rsched.core.settings import KINDS, load
    from rsched.runtime.clock import SystemClock
    from rsched.runtime.log import get_logger, setup_logging
    from rsched.runtime.service import run

    settings = load(KINDS[kind], env=os.environ, toml=read_toml(config), options=options)
    setup_logging(kind, settings.log_format, settings.log_level)
    clock = SystemClock()

    async def main(stop: anyio.Event) -> None:
        if await _servers_ready(kind, settings, stop, clock=clock):
            await _runner(kind)(settings, stop, clock=clock)

    try:
        run(main)
    except (RschedError, BaseExceptionGroup) as raised:
        # The error goes into the log, in its format, since a fleet's collector reads nothing else.
        log, errors = get_logger(f"rsched.{kind}"), expected(raised)
        for error in errors:
            log.error("%s", error)
        if not errors:
            log.critical("the process ends because of a bug", exc_info=raised)
        raise typer.Exit(1) from None


def _runner(kind: str) -> Callable[..., Awaitable[None]]:
    module, _, name = _HOMES[kind].partition(":")
    runner: Callable[..., Awaitable[None]] = getattr(importlib.import_module(module), name)
    return runner


async def _servers_ready(kind: str, settings: Settings, stop: anyio.Event, *, clock: Clock) -> bool:
    """Waits for the servers, which may start after this process, and checks them; False when stopped meanwhile."""
    from rsched.cli.checks import refuse_broken
    from rsched.cli.servers import ask_postgres, ask_redis
    from rsched.core.errors import Unavailable
    from rsched.runtime.log import get_logger
    from rsched.runtime.loop import Outage

    log = get_logger(f"rsched.{kind}")
    outage = Outage("servers", log)
    while not stop.is_set():
        try:
            checks = await ask_redis(settings, clock=clock)
            if kind in _WITH_LEDGER:
                checks += await ask_postgres(settings)
        except Unavailable as error:
            await _sleep_unless(stop, outage.failed(error), clock=clock)
            continue
        outage.over()
        refuse_broken(checks)
        for check in checks:
            if check.status == "warn":
                log.warning("%s: %s: %s", check.name, check.message, check.fix)
        return True
    return False


async def _sleep_unless(stop: anyio.Event, ms: float, *, clock: Clock) -> None:
    """Sleeps for so many ms, or until a stop."""
    import anyio

    async with anyio.create_task_group() as group:

        async def wake() -> None:
            await stop.wait()
            group.cancel_scope.cancel()

        group.start_soon(wake)
        await clock.sleep(ms)
        group.cancel_scope.cancel()
