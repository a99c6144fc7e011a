"""Real servers for the tests: one Redis and one Postgres a session, a fresh prefix and a fresh database a test.

The fixtures are synchronous, so that tests of both kinds can use them.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from rsched.embedded.servers import Servers
from rsched.ledger.databases import database_of, drop_database, ensure_database, with_database
from rsched.ledger.migrate import migrate
from rsched.runtime.clock import SystemClock


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
def redis_prefix(redis_url: str) -> Iterator[str]:
    """A key prefix of the test's own; its keys are gone afterwards."""
    prefix = f"t{secrets.token_hex(4)}"
    yield prefix
    with redis.Redis.from_url(redis_url) as client:
        for key in client.scan_iter(match=f"{prefix}:*", count=1000):
            client.delete(key)


@pytest.fixture(scope="session")
def postgres_admin(servers: Servers) -> str:
    """The server's own database, which has no schema of ours."""
    return with_database(servers.database_url, "postgres")


@pytest.fixture(scope="session")
def template_url(postgres_admin: str) -> str:
    """The migrated database that every test's own is copied from."""
    url = with_database(postgres_admin, "rsched_template")
    asyncio.run(ensure_database(url))
    asyncio.run(migrate(url))
    return url


@pytest.fixture
def database_url(template_url: str) -> Iterator[str]:
    """A fresh, migrated database."""
    url = with_database(template_url, f"rsched_{secrets.token_hex(4)}")
    asyncio.run(ensure_database(url, template=database_of(template_url)))
    yield url
    asyncio.run(drop_database(url))
