"""Brings a database to this release's schema: forward only, each step once, one process at a time.

Authority: the table `schema_migrations`, in which each applied step is a row. A database that a development version made
before the first release has the table `schema_version` instead, and is refused.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from importlib import resources
from typing import NamedTuple

import psycopg

from rsched.core.errors import Misconfigured
from rsched.ledger.failures import translated

# Any constant: all programs of this schema must agree on it.
_LOCK = 7_231_041
_TABLE = """
CREATE TABLE IF NOT EXISTS schema_migrations (
    version    integer PRIMARY KEY,
    name       text NOT NULL,
    works_with integer NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT now()
);
"""
_WORKS_WITH = re.compile(r"^-- works with: ([0-9]+)$", re.MULTILINE)


class Migration(NamedTuple):
    """works_with: the oldest schema whose programs go on beside this one, so that a release can be rolled out; 0: its own.

    A file says it in a line of its own, `-- works with: <number>`.
    """

    number: int
    name: str
    sql: str
    works_with: int = 0


def migrations() -> list[Migration]:
    """Returns the files `<number>_<name>.sql` in order; their numbers are contiguous from 1.

    Raises:
        Misconfigured: A file of the installation is missing.
    """
    folder = resources.files("rsched.ledger") / "migrations"
    found = sorted(f.name for f in folder.iterdir() if f.name.endswith(".sql"))
    steps = [_step(f, (folder / f).read_text("utf-8")) for f in found]
    if [s.number for s in steps] != list(range(1, len(steps) + 1)):
        raise Misconfigured(f"the installation's migrations are not contiguous: {found}; install it again")
    return steps


def _step(file: str, sql: str) -> Migration:
    said = _WORKS_WITH.search(sql)
    return Migration(int(file[:4]), file[5:-4], sql, int(said[1]) if said else 0)


def schema_version() -> int:
    """Returns the number of the schema that this release works with."""
    return len(migrations())


async def database_version(url: str) -> int:
    """Returns the schema's number, 0 for a database that was never migrated.

    Raises:
        Misconfigured: The database was made before the first release.
        Unavailable: Postgres is away.
    """
    with translated():
        async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
            await refuse_older(connection)
            return await version_of(connection)


async def refuse_older(connection: psycopg.AsyncConnection[tuple[object, ...]]) -> None:
    """Refuses a database that was made before the first release.

    Raises:
        Misconfigured: The database has the bookkeeping of a development version. The message says what to do.
    """
    row = await (await connection.execute("SELECT to_regclass('schema_version') IS NOT NULL")).fetchone()
    if row is not None and row[0]:
        raise Misconfigured(
            "the database was made by a development version of rsched from before the first release, and can't be migrated:"
            " create a new, empty database and name it in RSCHED_DATABASE_URL; where `rsched up` made it, move its data folder"
            " away (.rsched, or what --data-dir names) and start it again"
        )


async def version_of(connection: psycopg.AsyncConnection[tuple[object, ...]]) -> int:
    """Returns the schema's number, 0 for a database that was never migrated."""
    there = await (await connection.execute("SELECT to_regclass('schema_migrations') IS NOT NULL")).fetchone()
    if there is None or not there[0]:
        return 0
    row = await (await connection.execute("SELECT coalesce(max(version), 0) FROM schema_migrations")).fetchone()
    return int(str(row[0])) if row else 0


async def works_with_of(connection: psycopg.AsyncConnection[tuple[object, ...]]) -> int:
    """Returns the oldest schema whose programs work with the one that is there."""
    row = await (
        await connection.execute(
            "SELECT coalesce(max(works_with), max(version), 0) FROM schema_migrations"
            " WHERE version = (SELECT max(version) FROM schema_migrations)"
        )
    ).fetchone()
    return int(str(row[0])) if row else 0


def check_version(found: int, *, known: int, works_with: int | None = None) -> None:
    """Checks that the database has the schema that this release works with, or a newer one that lets it go on.

    Args:
        found: The database's schema.
        known: This release's schema.
        works_with: The oldest schema whose programs the one that was found goes on with, as it says itself.

    Raises:
        Misconfigured: It has another schema.
    """
    if found > known:
        if works_with is not None and works_with <= known:
            return
        raise Misconfigured(
            f"the database has schema version {found}, this release of rsched knows {known} at most: upgrade rsched"
        )
    if found < known:
        raise Misconfigured(f"the database has schema version {found}, {known} is needed: run `rsched migrate`")


async def migrate(url: str, *, steps: Sequence[Migration] | None = None) -> list[str]:
    """Applies the steps that are missing.

    Args:
        url: The database's URL.
        steps: All steps; by default those of this release.

    Returns:
        The names of the steps that were applied.

    Raises:
        Misconfigured: The database is newer, or was made before the first release.
        Unavailable: Postgres is away.
    """
    steps = migrations() if steps is None else steps
    applied = []
    with translated():
        async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
            await connection.execute("SELECT pg_advisory_lock(%s)", (_LOCK,))
            await refuse_older(connection)
            await connection.execute(_TABLE.encode())
            present = await version_of(connection)
            if present > len(steps):
                check_version(present, known=len(steps))
            for step in steps[present:]:
                async with connection.transaction():
                    await connection.execute(step.sql.encode())
                    await connection.execute(
                        "INSERT INTO schema_migrations (version, name, works_with) VALUES (%s, %s, %s)",
                        (step.number, step.name, step.works_with or step.number),
                    )
                applied.append(f"{step.number:04d}_{step.name}")
    return applied
