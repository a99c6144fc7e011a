"""Fault runs below `rsched up`: what is killed there is started again by its supervisor, or is not, as it is told."""

from __future__ import annotations

import json
import os
import shutil
import signal
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from rsched.embedded.children import alive
from rsched.embedded.servers import Servers
from rsched.runtime.clock import SystemClock
from rsched.store.store import Store, shard_tags
from tests.faults.fault_run import SETTINGS, Run
from tests.support.deployment import Deployment, temporary_folder
from tests.support.fleet import Fleet, running


class Supervised(Run):
    """A run whose processes belong to `rsched up`; spares beside them are the fleet's."""

    def __init__(self, w: Deployment, seen: Path, *, data: Path) -> None:
        super().__init__(w, seen)
        self._data = data

    def pids(self) -> dict[str, int]:
        """What `rsched up` says that it runs now; nothing before it does."""
        try:
            said = json.loads((self._data / "processes.json").read_text())
        except FileNotFoundError:
            return {}
        return {p["name"]: p["pid"] for p in said["processes"]}

    async def kill_supervised(self, name: str) -> int:
        """kill -9, noted for the checker, once it is dead. Its pid."""
        pid = self.pids()[name]
        os.kill(pid, signal.SIGKILL)
        await self.until(lambda: not alive(pid), f"the end of {name}")
        self._note("killed", pid)
        return pid

    async def until_started_again(self, name: str, old: int) -> None:
        await self.until(lambda: self.pids().get(name, old) != old, f"{name} started again", within_s=5)


@asynccontextmanager
async def supervised_run(*, restart: bool, spares: Sequence[str] = ()) -> AsyncIterator[Supervised]:
    """spares: processes outside of the supervisor, for what it does not start again."""
    clock = SystemClock()
    folder = temporary_folder()
    data, seen = folder / "data", folder / "seen.jsonl"
    env = {**SETTINGS, "FAULTS_SEEN": str(seen)}
    fleet = Fleet(folder, env, clock=clock)
    try:
        with running(fleet):
            fleet.start("up", "--port", "0", "--data-dir", str(data), env={} if restart else {"RSCHED_UP_RESTART": "0"})

            async def said() -> bool:
                return (data / "processes.json").exists()

            await fleet.until(said, what="processes.json", within_s=20)
            urls = json.loads((data / "processes.json").read_text())
            redis_url, database_url = urls["redis_url"], urls["postgres_url"]
            store = Store.open(redis_url, prefix="rs", shard=shard_tags(1)[0], clock=clock)
            try:
                servers = Servers(folder, redis_url=redis_url, database_url=database_url, clock=clock)
                w = Deployment(folder, servers, fleet, store, clock=clock)
                await w.until_open()
                addresses = {"RSCHED_REDIS_URL": redis_url, "RSCHED_DATABASE_URL": database_url}
                for name in spares:
                    fleet.start(name, env=addresses)
                run = Supervised(w, seen, data=data)
                await run.until_owned(1 + sum(name.startswith("scheduler") for name in spares))
                await run.until_workers(2)
                yield run
            finally:
                await store.aclose()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
