"""The pool of connections, and the small queries every part of the ledger makes."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import Any, Self

import psycopg
from psycopg_pool import AsyncConnectionPool

from rsched.ledger.failures import translated
from rsched.ledger.migrate import check_version, schema_version, version_of
from rsched.ledger.upserts import Connection
from rsched.runtime.clock import Clock

_WAIT_S = 5.0


class Base:
    def __init__(self, url: str, *, pool_max: int, clock: Clock) -> None:
        self._url, self._clock = url, clock
        self._pool: AsyncConnectionPool[Connection] = AsyncConnectionPool(
            url,
            min_size=1,
            max_size=pool_max,
            timeout=_WAIT_S,
            open=False,
            name="rsched-ledger",
            # A connection that a failover killed is found out before it is handed to anyone.
            check=AsyncConnectionPool.check_connection,
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
        """Misconfigured unless the schema is this release's. Unavailable."""
        with translated():
            async with self._pool.connection() as c:
                check_version(await version_of(c), known=schema_version())

    async def _one(self, query: str, params: Sequence[Any]) -> tuple[Any, ...] | None:
        rows = await self._all(query, params)
        return rows[0] if rows else None

    async def _all(self, query: str, params: Sequence[Any]) -> list[tuple[Any, ...]]:
        with translated():
            async with self._pool.connection() as c:
                return await (await c.execute(query.encode(), params)).fetchall()

    async def _do(self, query: str, params: Sequence[Any]) -> int:
        with translated():
            async with self._pool.connection() as c:
                return (await c.execute(query.encode(), params)).rowcount


async def connect(url: str) -> Connection:
    """A connection of one's own, in autocommit mode. Unavailable."""
    with translated():
        return await psycopg.AsyncConnection.connect(
            url, autocommit=True, connect_timeout=5, keepalives_idle=5, keepalives_interval=2, keepalives_count=3
        )
