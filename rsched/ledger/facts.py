"""What the program checks of a Postgres before it trusts it."""

from __future__ import annotations

import psycopg

from rsched.ledger.failures import translated

_SETTINGS = ("synchronous_commit", "fsync")


async def durability_facts(url: str) -> dict[str, str]:
    """Reads the settings that durability rests on.

    Args:
        url: The database's URL.

    Returns:
        Their values by name, as sessions of this URL's role in its database have them.

    Raises:
        Unavailable: Postgres is away.
    """
    with translated():
        async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
            found = await connection.execute(
                "SELECT name, setting FROM pg_settings WHERE name = ANY(%s)", (list(_SETTINGS),)
            )
            return dict(await found.fetchall())
