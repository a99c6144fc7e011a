"""What the program checks of a Postgres before it trusts it."""

from __future__ import annotations

import psycopg

from rsched.ledger.failures import translated

_SETTINGS = ("synchronous_commit", "fsync")


async def durability_facts(url: str) -> dict[str, str]:
    """Settings that durability rests on, as sessions of this URL's role in its database have them. Unavailable."""
    with translated():
        async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
            found = await connection.execute(
                "SELECT name, setting FROM pg_settings WHERE name = ANY(%s)", (list(_SETTINGS),)
            )
            return dict(await found.fetchall())
