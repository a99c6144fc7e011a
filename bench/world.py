"""A deployment of its own in a temporary folder: embedded servers, a migrated ledger, a fleet and a store."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from bench.fleet import Fleet, cpu_s, running
from bench.ledger import make_database
from rsched.embedded.servers import Servers
from rsched.ledger.migrate import migrate
from rsched.runtime.clock import Clock
from rsched.store.store import Store, shard_tags

PREFIX = "bench"


class World:
    """What a run is driven through. folder: logs and whatever the targets write."""

    def __init__(self, folder: Path, servers: Servers, fleet: Fleet, store: Store, *, clock: Clock) -> None:
        self.folder, self.servers, self.fleet, self.store, self.clock = folder, servers, fleet, store, clock

    @property
    def database_url(self) -> str:
        return self.servers.database_url

    async def until_open(self) -> None:
        """Until the recorder has opened the shard: nothing can be put before."""
        await self.fleet.until(self.store.recovery.is_open, what="an open shard", within_s=20)
        await self.store.clock.read()

    def cpu(self) -> dict[str, float]:
        """Seconds of CPU used so far, by process and server."""
        servers = {name: cpu_s(pid, children=True) for name, pid in self.servers.processes}
        return {**servers, **self.fleet.cpu()}

    async def redis_cpu_s(self) -> float:
        info = await self.store.connection.client.info("cpu")
        return float(info["used_cpu_user"]) + float(info["used_cpu_sys"])


def temporary_folder() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="rsched-bench-"))
    # A server that must not run as root has to reach its data.
    folder.chmod(0o755)
    return folder


@asynccontextmanager
async def world(env: Mapping[str, str], *, clock: Clock) -> AsyncIterator[World]:
    """Servers are up, the ledger is migrated, no process runs yet; all is stopped and removed at the end.

    env: settings for the processes, beside the servers' addresses.
    """
    folder = temporary_folder()
    servers = Servers(folder, redis_url=None, database_url=None, clock=clock)
    try:
        servers.start()
        await make_database(servers.database_url)
        await migrate(servers.database_url)
        addresses = {
            "RSCHED_REDIS_URL": servers.redis_url,
            "RSCHED_DATABASE_URL": servers.database_url,
            "RSCHED_PREFIX": PREFIX,
        }
        store = Store.open(servers.redis_url, prefix=PREFIX, shard=shard_tags(1)[0], clock=clock)
        try:
            with running(Fleet(folder, {**addresses, **env}, clock=clock)) as fleet:
                yield World(folder, servers, fleet, store, clock=clock)
        finally:
            await store.aclose()
    finally:
        servers.stop()
        shutil.rmtree(folder, ignore_errors=True)
