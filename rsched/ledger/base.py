"""The pool of connections, and the small queries every part of the ledger makes."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager
from types import TracebackType
from typing import Any, Self

import psycopg
from psycopg_pool import AsyncConnectionPool

from rsched.ledger.failures import translated
from rsched.ledger.migrate import check_version, schema_version, version_of, works_with_of
from rsched.ledger.upserts import Connection
from rsched.runtime.clock import Clock

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


class Base:
    def __init__(self, url: str, *, pool_max: int, clock: Clock) -> None:
        self._url, self._clock = url, clock
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
        """Does not wait for the server: calls are Unavailable until it is there."""
        await self._pool.open(wait=False)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._pool.close()

    async def ping(self) -> None:
        """Unavailable where Postgres does not answer."""
        await self._one("SELECT 1", ())

    async def check_schema(self) -> None:
        """Misconfigured unless the schema is this release's, or a newer one that lets it go on. Unavailable."""
        async with self._connection() as c:
            found, known = await version_of(c), schema_version()
            check_version(found, known=known, works_with=await works_with_of(c) if found > known else None)

    @asynccontextmanager
    async def _connection(self, *, within_s: float = DEADLINE_S) -> AsyncIterator[Connection]:
        """A connection of the pool; cut off where what is done with it takes longer than within_s. Unavailable."""
        # The deadline is over last: giving the connection back commits what it did.
        with translated(), ExitStack() as limits:
            async with self._pool.connection() as c:
                limits.enter_context(deadline(c, within_s))
                self._busy.add(c)
                limits.callback(self._busy.discard, c)
                yield c

    def cut_off(self) -> None:
        """Ends whatever is being done now as Unavailable: for a server that hangs, whose answer nobody waits for any more."""
        for c in tuple(self._busy):
            _cut(c)

    async def _one(self, query: str, params: Sequence[Any]) -> tuple[Any, ...] | None:
        rows = await self._all(query, params)
        return rows[0] if rows else None

    async def _all(self, query: str, params: Sequence[Any]) -> list[tuple[Any, ...]]:
        async with self._connection() as c:
            return await (await c.execute(query.encode(), params)).fetchall()

    async def _by_index(self, query: str, params: Sequence[Any]) -> list[tuple[Any, ...]]:
        """_all of a query over days of runs: one without statistics, as it has just begun, would be read from end to end."""
        async with self._connection() as c:
            await c.execute(b"SET LOCAL enable_seqscan = off")
            return await (await c.execute(query.encode(), params)).fetchall()

    async def _do(self, query: str, params: Sequence[Any]) -> int:
        async with self._connection() as c:
            return (await c.execute(query.encode(), params)).rowcount


@contextmanager
def deadline(c: Connection, within_s: float = DEADLINE_S) -> Iterator[None]:
    """Cuts the connection off after within_s: whoever waits on it gets the driver's error for a server that is gone.

    Cancelling instead would have the driver ask the server, which hangs, to cancel, and wait for that.
    """
    handle = asyncio.get_running_loop().call_later(within_s, _cut, c)
    try:
        yield
    finally:
        handle.cancel()


def _cut(c: Connection) -> None:
    if not c.closed:
        with socket.socket(fileno=os.dup(c.fileno())) as s:
            s.shutdown(socket.SHUT_RDWR)


async def _checked(c: Connection) -> None:
    with deadline(c, _WAIT_S):
        await AsyncConnectionPool.check_connection(c)


async def connect(url: str) -> Connection:
    """A connection of one's own, in autocommit mode. Unavailable."""
    with translated():
        return await psycopg.AsyncConnection.connect(url, autocommit=True, **_OPTIONS)
