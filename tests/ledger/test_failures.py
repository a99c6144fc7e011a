"""What operators and restores do to a database under a running process: waited for, with the fix, until it is undone."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit, urlunsplit

import psycopg
import pytest

from rsched.core.errors import NeedsFixing, Unavailable
from rsched.ledger import Ledger
from rsched.ledger.base import connect
from rsched.ledger.databases import with_database
from rsched.ledger.failures import translated
from rsched.ledger.migrate import migrate
from rsched.runtime.clock import SystemClock
from tests.ledger.events import job


@contextmanager
def role(database_url: str, *, password: str = "first") -> Iterator[tuple[str, str]]:
    """(name, URL of the test's database for it) of a role that owns nothing and may do everything."""
    name = f"role_{secrets.token_hex(4)}"
    parts = urlsplit(database_url)
    url = urlunsplit(parts._replace(netloc=f"{name}:{password}@{parts.hostname}:{parts.port}"))
    with psycopg.connect(database_url, autocommit=True) as c:
        c.execute(f"CREATE ROLE {name} LOGIN PASSWORD '{password}'")
        c.execute(f"GRANT ALL ON ALL TABLES IN SCHEMA public TO {name}")
        c.execute(f"GRANT ALL ON SCHEMA public TO {name}")
        try:
            yield name, url
        finally:
            c.execute(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '{name}'")
            c.execute(f"DROP OWNED BY {name}")
            c.execute(f"DROP ROLE {name}")


def with_ledger(url: str, body: Callable[[Ledger], Awaitable[None]]) -> None:
    async def main() -> None:
        async with Ledger(url, pool_max=2, clock=SystemClock()) as ledger:
            await body(ledger)

    asyncio.run(main())


def test_a_privilege_that_is_taken_away_is_waited_for(database_url: str) -> None:
    with role(database_url) as (name, url), psycopg.connect(database_url, autocommit=True) as admin:

        async def body(ledger: Ledger) -> None:
            assert await ledger.write.position("s0", "journal") == "0-0"
            admin.execute(f"REVOKE ALL ON positions FROM {name}")
            with pytest.raises(NeedsFixing, match="does not permit it: permission denied for table positions"):
                await ledger.write.record("s0", stream="journal", expected="0-0", new="1-0", events=[])
            admin.execute(f"GRANT ALL ON positions TO {name}")
            assert await ledger.write.record("s0", stream="journal", expected="0-0", new="1-0", events=[])

        with_ledger(url, body)


CHANGES = [
    ("ALTER TABLE positions RENAME TO away", "ALTER TABLE away RENAME TO positions"),
    ("ALTER TABLE positions RENAME COLUMN sequence TO away", "ALTER TABLE positions RENAME COLUMN away TO sequence"),
    ("ALTER SCHEMA public RENAME TO away", "ALTER SCHEMA away RENAME TO public"),
    ("ALTER TABLE jobs DROP CONSTRAINT jobs_pkey", "ALTER TABLE jobs ADD PRIMARY KEY (job_id)"),
]


@pytest.mark.parametrize(("change", "back"), CHANGES, ids=["table", "column", "schema", "key"])
def test_a_schema_that_is_not_this_releases_is_waited_for_and_nothing_is_quarantined(
    database_url: str, change: str, back: str
) -> None:
    async def body(ledger: Ledger) -> None:
        with psycopg.connect(database_url, autocommit=True) as admin:
            admin.execute(change)
            with pytest.raises(NeedsFixing, match="run `rsched migrate`"):
                await ledger.write.record("s0", stream="journal", expected="0-0", new="1-0", events=[job()])
            admin.execute(back)
            assert await ledger.write.record("s0", stream="journal", expected="0-0", new="1-0", events=[job()])
            assert admin.execute("SELECT count(*) FROM quarantine").fetchone() == (0,)

    with_ledger(database_url, body)


def test_who_is_not_let_in_is_told_apart_from_a_server_that_is_away(database_url: str) -> None:
    with role(database_url) as (name, url), psycopg.connect(database_url, autocommit=True) as admin:

        def refused(wanted: str, url: str = url) -> None:
            with pytest.raises(NeedsFixing, match=wanted):
                asyncio.run(connect(url))
            with pytest.raises(NeedsFixing, match=wanted):
                asyncio.run(migrate(url))

        admin.execute(f"ALTER ROLE {name} PASSWORD 'second'")
        refused("does not let this process in: .*password authentication failed")
        admin.execute(f"ALTER ROLE {name} PASSWORD 'first' NOLOGIN")
        refused("does not let this process in: .*not permitted to log in")
        refused("does not let this process in", url.replace(name, "nobody_of_that_name"))
        admin.execute(f"ALTER ROLE {name} LOGIN")
        refused(
            "the database is not there: .*create it and run `rsched migrate`", with_database(url, "no_such_database")
        )
        asyncio.run(_closed(url))


async def _closed(url: str) -> None:
    await (await connect(url)).close()


def test_a_server_that_is_away_is_no_matter_for_repairing() -> None:
    with pytest.raises(Unavailable, match="Postgres is away") as raised:
        asyncio.run(connect("postgresql://127.0.0.1:1/rsched"))
    assert not isinstance(raised.value, NeedsFixing)


@pytest.mark.parametrize(
    "statement",
    ["SELEC 1", "SELECT 1 WHERE 1", "SELECT a.sequence FROM positions a, positions b WHERE sequence = 1", "SELECT 1 +"],
)
def test_errors_of_our_statements_are_raised_as_they_are(database_url: str, statement: str) -> None:
    with psycopg.connect(database_url) as c, pytest.raises(psycopg.ProgrammingError), translated():
        c.execute(statement.encode())
