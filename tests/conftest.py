"""Real servers for the tests: one Redis and one Postgres a session, a fresh prefix and a fresh database a test."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from rsched.embedded.servers import Servers
from rsched.ledger.databases import database_of, drop_database, ensure_database, with_database
from rsched.ledger.migrate import migrate
from rsched.runtime.clock import SystemClock
from rsched.store.store import connect


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="session")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    folder: Path = tmp_path_factory.mktemp("servers")
    both = Servers(folder, redis_url=None, database_url=None, clock=SystemClock())
    both.start()
    yield both
    both.stop()


@pytest.fixture(scope="session")
def redis_url(servers: Servers) -> str:
    return servers.redis_url


@pytest.fixture
async def redis_prefix(redis_url: str) -> AsyncIterator[str]:
    """A key prefix of the test's own; its keys are gone afterwards."""
    prefix = f"t{secrets.token_hex(4)}"
    yield prefix
    client = connect(redis_url)
    async for key in client.scan_iter(match=f"{prefix}:*", count=1000):
        await client.delete(key)
    await client.aclose()


@pytest.fixture(scope="session")
async def postgres_admin(servers: Servers) -> str:
    """The server's URL with the migrated database that every test's own is copied from."""
    url = with_database(servers.database_url, "rsched_template")
    await ensure_database(url)
    await migrate(url)
    return url


@pytest.fixture
async def database_url(postgres_admin: str) -> AsyncIterator[str]:
    """A fresh, migrated database."""
    url = with_database(postgres_admin, f"rsched_{secrets.token_hex(4)}")
    await ensure_database(url, template=database_of(postgres_admin))
    yield url
    await drop_database(url)
