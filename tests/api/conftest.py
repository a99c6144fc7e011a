"""The API in this process, and the API over HTTP."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

import psycopg
import pytest

from rsched.core.settings import ApiSettings
from rsched.embedded.process import free_port
from rsched.ledger import Ledger
from rsched.ledger.databases import database_of, drop_database, ensure_database, with_database
from tests.api.calls import Caller
from tests.api.served import Served
from tests.api.world import NOW, World, opened_world
from tests.support.clocks import HandClock


class SharedLedger(NamedTuple):
    """A ledger that all tests of a session use one after the other: to make a database takes longer than most of them."""

    runner: asyncio.Runner
    ledger: Ledger
    clock: HandClock
    url: str


@pytest.fixture(scope="session")
def shared_ledger(template_url: str) -> Iterator[SharedLedger]:
    url, clock = with_database(template_url, f"rsched_{secrets.token_hex(4)}"), HandClock(NOW)
    asyncio.run(ensure_database(url, template=database_of(template_url)))
    with asyncio.Runner() as runner:
        ledger = Ledger(url, clock=clock)
        runner.run(ledger.__aenter__())
        yield SharedLedger(runner, ledger, clock, url)
        runner.run(ledger.__aexit__(None, None, None))
    asyncio.run(drop_database(url))


@pytest.fixture
def world(shared_ledger: SharedLedger) -> Iterator[World]:
    runner, ledger, clock, url = shared_ledger
    clock.ms = NOW
    with opened_world(ledger, clock, partial(Caller, runner=runner)) as opened:
        yield opened
    _empty(url)


def _empty(url: str) -> None:
    """Deletes every row that tests wrote; what migrations wrote about themselves stays."""
    with psycopg.connect(url) as connection:
        tables = connection.execute(
            "SELECT relname FROM pg_class JOIN pg_namespace n ON n.oid = relnamespace"
            " WHERE nspname = 'public' AND relkind IN ('r', 'p') AND NOT relispartition AND relname NOT LIKE '%%migration%%'"
            " AND relname NOT LIKE 'schema%%' AND relname NOT IN ('queue_keys', 'worker_names')",
            (),
        ).fetchall()
        connection.execute("; ".join(f"DELETE FROM {table}" for (table,) in tables).encode())


@pytest.fixture
def served(redis_url: str, database_url: str, redis_prefix: str) -> Iterator[Served]:
    options = ApiSettings(redis_url=redis_url, database_url=database_url, prefix=redis_prefix, port=free_port())
    with Served(options) as it:
        yield it
