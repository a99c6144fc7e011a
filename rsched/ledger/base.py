"""The pool of connections, and the small queries that every part of the ledger makes.

Authority: none of its own; Postgres decides. It trusts that a connection that answers is the same server for as long as it is
open: what a part remembers of a server (temporary tables, ids of dictionaries) it remembers by connection. Whatever fails in
a way that passes is raised as Unavailable, and nothing is tried again here.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager
from types import TracebackType
from typing import Any, Self

import psycopg
from psycopg import AsyncConnection
from psycopg_pool import AsyncConnectionPool

from rsched.ledger.failures import translated
from rsched.ledger.migrate import check_version, refuse_older, schema_version, version_of, works_with_of
from rsched.runtime.clock import Clock

Connection = AsyncConnection[tuple[Any, ...]]
Row = tuple[Any, ...]
Rows = list[Row]
_WAIT_S = 5.0
# A server that hangs (stopped, a dead disk, a lost packet filter) answers nothing, and its kernel still acknowledges.
DEADLINE_S = 10.0
_OPTIONS: dict[str, Any] = {
    "connect_timeout": 3,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 10_000,
}


class Database:
    """The pool of connections to one database, which all parts of a ledger share. An async context manager."""

    def __init__(self, url: str, *, pool_max: int, clock: Clock) -> None:
        """Connects to nothing yet.

        Args:
            url: The database's URL.
            pool_max: How many connections there may be at most.
            clock: The process' clock.
        """
        self.url, self.clock = url, clock
        self._busy: set[Connection] = set()
        self._pool: AsyncConnectionPool[Connection] = AsyncConnectionPool(
            url,
            kwargs=_OPTIONS,
            min_size=1,
            max_size=pool_max,
            timeout=_WAIT_S,
            open=False,
            name="rsched-ledger",
            # A connection that a failover killed is found out before it is handed to anyone.
            check=_checked,
            # Then the next caller makes it try again, rather than a pause that has grown to minutes.
            reconnect_timeout=2,
        )

    async def __aenter__(self) -> Self:
        """Opens the pool without waiting for the server: calls are Unavailable until it is there."""
        await self._pool.open(wait=False)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._pool.close()

    async def ping(self) -> None:
        """Asks the server for a sign of life.

        Raises:
            Unavailable: Postgres does not answer.
        """
        await self.row("SELECT 1", ())

    async def check_schema(self) -> None:
        """Checks that the schema is this release's, or a newer one that lets this release go on.

        Raises:
            Misconfigured: It is neither.
            Unavailable: Postgres is away.
        """
        async with self.connection() as connection:
            await refuse_older(connection)
            found, known = await version_of(connection), schema_version()
            works_with = await works_with_of(connection) if found > known else None
            check_version(found, known=known, works_with=works_with)

    @asynccontextmanager
    async def connection(self, *, within_s: float = DEADLINE_S) -> AsyncIterator[Connection]:
        """Lends a connection of the pool, and commits what was done with it at the end.

        Args:
            within_s: After how long (seconds) the connection is cut off.

        Yields:
            The connection.

        Raises:
            Unavailable: Postgres is away, or took longer.
        """
        # The deadline is over last: giving the connection back commits what it did.
        with translated(), ExitStack() as limits:
            async with self._pool.connection() as connection:
                limits.enter_context(deadline(connection, within_s))
                self._busy.add(connection)
                limits.callback(self._busy.discard, connection)
                yield connection

    def cut_off(self) -> None:
        """Ends whatever is being done now as Unavailable: for a server that hangs, whose answer nobody waits for any more."""
        for connection in tuple(self._busy):
            _cut(connection)

    async def row(self, query: str, params: Sequence[Any]) -> Row | None:
        """Returns the first row of a query, None where there is none. Raises Unavailable."""
        rows = await self.rows(query, params)
        return rows[0] if rows else None

    async def rows(self, query: str, params: Sequence[Any]) -> Rows:
        """Returns all rows of a query. Raises Unavailable."""
        async with self.connection() as connection:
            return await (await connection.execute(query.encode(), params)).fetchall()

    async def rows_by_index(self, query: str, params: Sequence[Any]) -> Rows:
        """Returns all rows of a query over days of runs, read by index.

        A day without statistics, as it has just begun, would be read from end to end otherwise. Raises Unavailable.
        """
        async with self.connection() as connection:
            await connection.execute(b"SET LOCAL enable_seqscan = off")
            return await (await connection.execute(query.encode(), params)).fetchall()

    async def execute(self, query: str, params: Sequence[Any]) -> int:
        """Executes a statement and returns how many rows it changed. Raises Unavailable."""
        async with self.connection() as connection:
            return (await connection.execute(query.encode(), params)).rowcount


@contextmanager
def deadline(connection: Connection, within_s: float = DEADLINE_S) -> Iterator[None]:
    """Cuts the connection off after within_s (seconds): whoever waits on it gets the driver's error for a server that is gone.

    Cancelling instead would have the driver ask the server, which hangs, to cancel, and wait for that.
    """
    handle = asyncio.get_running_loop().call_later(within_s, _cut, connection)
    try:
        yield
    finally:
        handle.cancel()


def _cut(connection: Connection) -> None:
    if not connection.closed:
        with socket.socket(fileno=os.dup(connection.fileno())) as s:
            s.shutdown(socket.SHUT_RDWR)


async def _checked(connection: Connection) -> None:
    with deadline(connection, _WAIT_S):
        await AsyncConnectionPool.check_connection(connection)


async def connect(url: str) -> Connection:
    """Opens a connection of one's own, in autocommit mode. Raises Unavailable."""
    with translated():
        return await psycopg.AsyncConnection.connect(url, autocommit=True, **_OPTIONS)
