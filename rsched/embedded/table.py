"""Says which processes `rsched up` runs, with their command lines and environment."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import NamedTuple

_COMMAND = (sys.executable, "-m", "rsched")
# Leaves time for the rest within the 10 s that a whole stop may take; a worker by itself drains for 8 s.
_DRAIN_S = "7"


class UpOptions(NamedTuple):
    """The options of `rsched up`.

    Attributes:
        port: The API's port; 0 for any.
        data_dir: Where both servers keep their data.
        workers: The number of worker processes.
        app: The Python functions, as package.module:app.
        exit_after: After how many seconds it stops by itself; None for never.
        demo: Whether the demo runs.
        restart: Whether what dies is started again.
        metrics_port: The port of the first process' /metrics; the others have the next ones, in the table's order. 0 for none.
    """

    port: int = 8080
    data_dir: str = "./.rsched"
    workers: int = 2
    app: str | None = None
    exit_after: float | None = None
    demo: bool = False
    restart: bool = True
    metrics_port: int = 0


class Entry(NamedTuple):
    """One process; a `first` one is asked to stop before the others, which it needs until its end."""

    name: str
    argv: tuple[str, ...]
    first: bool = False


def process_table(options: UpOptions) -> tuple[Entry, ...]:
    """Returns the processes in the order in which they are started."""
    entries = [
        Entry("api", (*_COMMAND, "api")),
        Entry("scheduler", (*_COMMAND, "scheduler"), first=True),
        Entry("recorder", (*_COMMAND, "recorder")),
    ]
    app = ("--app", options.app) if options.app else ()
    for n in range(1, options.workers + 1):
        entries.append(Entry(f"worker-{n}", (*_COMMAND, "worker", *app), first=True))
    if options.demo:
        demo = ("worker", "--app", "rsched.embedded.demo_app:app", "--queue", "demo")
        entries.append(Entry("worker-demo", (*_COMMAND, *demo), first=True))
    for place, port in enumerate(metrics_ports(options), start=1):
        entries[place] = entries[place]._replace(argv=(*entries[place].argv, "--metrics-port", str(port)))
    return tuple(entries)


def metrics_ports(options: UpOptions) -> range:
    """Returns the /metrics ports of all processes but the API, in the table's order."""
    first = options.metrics_port
    return range(first, first + 2 + options.workers + options.demo) if first else range(0)


def child_env(base: Mapping[str, str], *, redis_url: str, postgres_url: str, port: int) -> dict[str, str]:
    """Returns the environment variables of the processes.

    Args:
        base: The supervisor's own variables.
        redis_url: The URL of Redis.
        postgres_url: The URL of Postgres.
        port: The API's port.
    """
    set_here = {
        "RSCHED_REDIS_URL": redis_url,
        "RSCHED_DATABASE_URL": postgres_url,
        "RSCHED_API_HOST": "127.0.0.1",
        "RSCHED_API_PORT": str(port),
    }
    # RSCHED_UP_* is for the supervisor; the processes refuse variables that they do not know.
    inherited = {k: v for k, v in base.items() if not k.startswith("RSCHED_UP_")}
    return {"RSCHED_WORKER_DRAIN_S": _DRAIN_S} | inherited | set_here
