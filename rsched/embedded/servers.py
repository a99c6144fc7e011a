"""Runs both servers of one data folder; a URL that is given takes the place of an embedded server."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rsched.core.errors import Misconfigured
from rsched.embedded.postgres_server import PostgresServer
from rsched.embedded.redis_server import RedisServer
from rsched.runtime.clock import Clock


@contextmanager
def folder_lock(folder: Path) -> Iterator[int]:
    """Locks the data folder for this process, and for servers that inherit the handle.

    Yields:
        The handle of the lock.

    Raises:
        Misconfigured: Another process has locked it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    handle = os.open(folder / "lock", os.O_RDWR | os.O_CREAT, 0o644)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            pid = os.read(handle, 32).decode(errors="replace").strip()
            raise Misconfigured(
                f"another `rsched up` (pid {pid or 'unknown'}) is running on {folder}; stop it, or use another --data-dir"
            ) from None
        os.ftruncate(handle, 0)
        os.write(handle, str(os.getpid()).encode())
        yield handle
    finally:
        os.close(handle)


class Servers:
    """Redis and Postgres of a data folder; lock the folder before, and call it from the main thread.

    Args:
        folder: The data folder.
        redis_url: The Redis to use; None or "" for an embedded one.
        database_url: The Postgres to use; None or "" for an embedded one.
        clock: This machine's clock.
        inherit: File handles that both servers keep open; with the lock's, the folder stays locked until both have ended.
    """

    def __init__(
        self,
        folder: Path,
        *,
        redis_url: str | None,
        database_url: str | None,
        clock: Clock,
        inherit: tuple[int, ...] = (),
    ) -> None:
        logs = folder / "logs"
        self._given = (redis_url, database_url)
        self.redis, self.postgres = None, None
        if not redis_url:
            self.redis = RedisServer(folder / "redis", log=logs / "redis.log", clock=clock, inherit=inherit)
        if not database_url:
            self.postgres = PostgresServer(folder / "postgres", log=logs / "postgres.log", clock=clock, inherit=inherit)

    def start(self) -> None:
        """Starts the embedded ones, and blocks until they answer.

        Raises:
            Misconfigured: One of them did not start; then neither runs.
        """
        try:
            if self.redis is not None:
                self.redis.start()
            if self.postgres is not None:
                self.postgres.start()
        except BaseException:
            self.stop()
            raise

    @property
    def redis_url(self) -> str:
        """The URL of Redis."""
        return self.redis.url if self.redis is not None else self._given[0] or ""

    @property
    def database_url(self) -> str:
        """The URL of Postgres, whose database ensure_database of rsched.ledger.databases may have to make."""
        return self.postgres.url() if self.postgres is not None else self._given[1] or ""

    @property
    def processes(self) -> list[tuple[str, int]]:
        """(name, pid) of each server that was started."""
        both = (("redis", self.redis), ("postgres", self.postgres))
        return [(name, s.child.pid) for name, s in both if s is not None and s.child is not None]

    def stop(self) -> None:
        """Stops the embedded ones."""
        for server in (self.redis, self.postgres):
            if server is not None:
                server.stop()
