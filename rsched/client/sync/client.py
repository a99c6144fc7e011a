# Generated from rsched/client/aio/client.py by tools/sync_client.py (`make docs`); do not edit.
"""Client: the API as methods."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import TracebackType

from rsched.client.request import get
from rsched.client.server import Server, address
from rsched.client.sync.connection import Connection
from rsched.client.sync.control import Control
from rsched.client.sync.jobs import Jobs
from rsched.client.sync.runs import Runs
from rsched.client.sync.schedules import Schedules
from rsched.core.errors import RschedError
from rsched.runtime.clock import Clock, SystemClock


class Client(Jobs, Control, Runs, Schedules):
    """The API as methods. It keeps its connections and may be used by any number of threads, so make one and share it.

    A job is named by its job_id, or by its name and `team`. Every method raises the classes of rsched.errors: Invalid (with
    `errors`, one a field), NotFound, Conflict, VersionConflict and TooLarge, which another try does not help, and Unavailable
    when retry_for_s is over. A success is durable: it survives the loss of Redis, unless ack="redis" asked for less.

    After a fork make a new client in the child: connections and the threads that serve them stay with the parent.

    Args:
        base_url: Where the API is.
        timeout_s: Seconds to connect, and seconds without a byte of the answer, before a try has failed.
        retry_for_s: Seconds to go on trying what may pass; 0 for a single try.
        headers: Sent with every request.
        ca_file: A file of PEM certificates that are trusted beside the system's.
        max_connections: Open at once; more calls wait for one.
        clock: For tests.

    Raises:
        Misconfigured: base_url is no URL, or ca_file cannot be read.
    """

    def __init__(
        self,
        base_url: str = "http://127.0.0.1:8080",
        *,
        timeout_s: float = 10,
        retry_for_s: float = 30,
        headers: Mapping[str, str] | None = None,
        ca_file: str | Path | None = None,
        max_connections: int = 100,
        clock: Clock | None = None,
    ) -> None:
        server = Server(address(base_url), timeout_s, headers or {}, ca_file, max_connections)
        self._connection = Connection(server, retry_for_s=retry_for_s, clock=clock or SystemClock())

    def __enter__(self) -> Client:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Closes all connections. The client cannot be used after that."""
        self._connection.close()

    def is_ready(self) -> bool:
        """Tells whether the whole deployment can take and run jobs."""
        try:
            self._connection.send(get("/readyz"))
        except RschedError:
            return False
        return True
