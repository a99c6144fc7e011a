"""Which processes `rsched up` runs, with their command lines and environment."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import NamedTuple

_COMMAND = (sys.executable, "-m", "rsched")
# Leaves time for the rest within the 10 s that a whole stop may take; a worker by itself drains for 8 s.
_DRAIN_S = "7"


class UpOptions(NamedTuple):
    """exit_after in seconds; port of the API, 0 for any; restart: whether what dies is started again.

    metrics_port: of the first process' /metrics, the others have the ports after it, in the table's order; 0 for none.
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
    """One process. first: it is asked to stop before the others, which it needs until its end."""

    name: str
    argv: tuple[str, ...]
    first: bool = False


def process_table(options: UpOptions) -> tuple[Entry, ...]:
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
    """Of all processes but the API, in the table's order."""
    first = options.metrics_port
    return range(first, first + 2 + options.workers + options.demo) if first else range(0)


def child_env(base: Mapping[str, str], *, redis_url: str, postgres_url: str, port: int) -> dict[str, str]:
    own = {
        "RSCHED_REDIS_URL": redis_url,
        "RSCHED_DATABASE_URL": postgres_url,
        "RSCHED_API_HOST": "127.0.0.1",
        "RSCHED_API_PORT": str(port),
    }
    # RSCHED_UP_* is about the supervisor; the processes refuse variables that they do not know.
    theirs = {k: v for k, v in base.items() if not k.startswith("RSCHED_UP_")}
    return {"RSCHED_WORKER_DRAIN_S": _DRAIN_S} | theirs | own
