"""Brings a database to this release's schema: forward only, each step once, one process at a time."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import resources
from typing import NamedTuple

import psycopg

from rsched.core.errors import Misconfigured
from rsched.ledger.failures import translated

# Any constant: all programs of this schema must agree on it.
_LOCK = 7_231_041
_TABLE = "CREATE TABLE IF NOT EXISTS schema_version (version integer PRIMARY KEY, applied_at timestamptz DEFAULT now())"


class Migration(NamedTuple):
    number: int
    name: str
    sql: str


def migrations() -> list[Migration]:
    """The files `<number>_<name>.sql`, in order; numbers are contiguous from 1."""
    folder = resources.files("rsched.ledger") / "migrations"
    found = sorted(f.name for f in folder.iterdir() if f.name.endswith(".sql"))
    steps = [Migration(int(f[:4]), f[5:-4], (folder / f).read_text("utf-8")) for f in found]
    if [s.number for s in steps] != list(range(1, len(steps) + 1)):
        raise Misconfigured(f"the installation's migrations are not contiguous: {found}; install it again")
    return steps


def schema_version() -> int:
    """The schema this release works with."""
    return len(migrations())


async def database_version(url: str) -> int:
    """0 for a database that was never migrated. Unavailable."""
    with translated():
        async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
            return await version_of(connection)


async def version_of(connection: psycopg.AsyncConnection[tuple[object, ...]]) -> int:
    there = await (await connection.execute("SELECT to_regclass('schema_version') IS NOT NULL")).fetchone()
    if there is None or not there[0]:
        return 0
    row = await (await connection.execute("SELECT coalesce(max(version), 0) FROM schema_version")).fetchone()
    return int(str(row[0])) if row else 0


def check_version(found: int, *, known: int) -> None:
    """Misconfigured unless the database has exactly the schema that this release works with."""
    if found > known:
        raise Misconfigured(
            f"the database has schema version {found}, this release of rsched knows {known} at most: upgrade rsched"
        )
    if found < known:
        raise Misconfigured(f"the database has schema version {found}, {known} is needed: run `rsched migrate`")


async def migrate(url: str, *, steps: Sequence[Migration] | None = None) -> list[str]:
    """Applies what is missing and gives the names of it. Misconfigured where the database is newer. Unavailable."""
    steps = migrations() if steps is None else steps
    applied = []
    with translated():
        async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
            await connection.execute("SELECT pg_advisory_lock(%s)", (_LOCK,))
            await connection.execute(_TABLE)
            present = await version_of(connection)
            if present > len(steps):
                check_version(present, known=len(steps))
            for step in steps[present:]:
                async with connection.transaction():
                    await connection.execute(step.sql.encode())
                    await connection.execute("INSERT INTO schema_version (version) VALUES (%s)", (step.number,))
                applied.append(f"{step.number:04d}_{step.name}")
    return applied
