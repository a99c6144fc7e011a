"""Which processes `rsched up` runs, with their command lines and environment."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import NamedTuple

_COMMAND = (sys.executable, "-m", "rsched")  # what rsched.cli.main does


class UpOptions(NamedTuple):
    """exit_after in seconds; port of the API; restart: whether what dies is started again."""

    port: int = 8080
    data_dir: str = "./.rsched"
    workers: int = 2
    app: str | None = None
    exit_after: float | None = None
    demo: bool = False
    restart: bool = os.environ.get("RSCHED_UP_RESTART", "1") != "0"


class Entry(NamedTuple):
    """One process. stop_first: it drains before the others are stopped."""

    name: str
    argv: tuple[str, ...]
    stop_first: bool = False


class Table(NamedTuple):
    """first runs once, to its end, before all else; None: nothing to do first."""

    first: Entry | None
    entries: tuple[Entry, ...]


def process_table(options: UpOptions) -> Table:
    entries = [
        Entry("api", (*_COMMAND, "api")),
        Entry("scheduler", (*_COMMAND, "scheduler")),
        Entry("recorder", (*_COMMAND, "recorder")),
    ]
    app = ("--app", options.app) if options.app else ()
    for n in range(1, options.workers + 1):
        entries.append(Entry(f"worker-{n}", (*_COMMAND, "worker", *app), stop_first=True))
    if options.demo:
        demo = ("worker", "--app", "rsched.embedded.demo_app:worker", "--queue", "demo")
        entries.append(Entry("worker-demo", (*_COMMAND, *demo), stop_first=True))
    return Table(Entry("migrate", (*_COMMAND, "migrate")), tuple(entries))


def child_env(base: Mapping[str, str], *, redis_url: str, postgres_url: str, port: int) -> dict[str, str]:
    own = {
        "RSCHED_REDIS_URL": redis_url,
        "RSCHED_DATABASE_URL": postgres_url,
        "RSCHED_API_HOST": "127.0.0.1",
        "RSCHED_API_PORT": str(port),
    }
    # RSCHED_UP_* is about the supervisor; the processes refuse variables that they do not know.
    return {k: v for k, v in base.items() if not k.startswith("RSCHED_UP_")} | own
