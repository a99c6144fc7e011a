"""Making databases: for a first start, and a fresh one for each test."""

from __future__ import annotations

from urllib.parse import urlsplit, urlunsplit

import psycopg
from psycopg import sql
from psycopg.errors import DuplicateDatabase

from rsched.ledger.failures import translated


def with_database(url: str, name: str) -> str:
    """Returns the same server's URL for another database."""
    return urlunsplit(urlsplit(url)._replace(path=f"/{name}"))


def database_of(url: str) -> str:
    """Returns the name of the database that the URL names."""
    return urlsplit(url).path.lstrip("/") or "postgres"


async def ensure_database(url: str, *, template: str | None = None) -> None:
    """Makes the URL's database where there is none.

    Args:
        url: The URL.
        template: The database that it is a copy of.

    Raises:
        Unavailable: Postgres is away.
    """
    name = database_of(url)
    with translated():
        async with await psycopg.AsyncConnection.connect(with_database(url, "postgres"), autocommit=True) as c:
            found = await (await c.execute("SELECT 1 FROM pg_database WHERE datname = %s", (name,))).fetchone()
            if found is not None:
                return
            query = sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name))
            if template is not None:
                query += sql.SQL(" TEMPLATE {}").format(sql.Identifier(template))
            try:
                await c.execute(query)
            except DuplicateDatabase:
                return  # somebody else's, in this very moment


async def drop_database(url: str) -> None:
    """Drops the URL's database, whoever is connected. Raises Unavailable."""
    with translated():
        async with await psycopg.AsyncConnection.connect(with_database(url, "postgres"), autocommit=True) as c:
            await c.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(database_of(url))))
