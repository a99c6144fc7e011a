"""What errors of the driver mean to callers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import psycopg_pool
from psycopg import errors as e
from psycopg.errors import ProgramLimitExceeded

from rsched.core.errors import NeedsFixing, Unavailable

# What makes a statement fail for its data alone, so that other data would pass.
REFUSED = (
    psycopg.DataError, psycopg.IntegrityError, ProgramLimitExceeded, ValueError, KeyError, OverflowError, TypeError,
)  # fmt: skip
# What passes by itself, or once people have fixed it: away, restarting, full (class 53), read-only or otherwise out of order
# (class 25, XX).
_PASSES = (psycopg.OperationalError, psycopg.InterfaceError, psycopg.InternalError, psycopg_pool.PoolTimeout,
           psycopg_pool.PoolClosed, OSError)  # fmt: skip
# A database that was restored, dropped or changed under the process: what our statements name is not there, or is another thing.
_OTHER_SCHEMA = (
    e.UndefinedTable, e.UndefinedColumn, e.UndefinedFunction, e.UndefinedObject, e.InvalidSchemaName, e.InvalidColumnReference,
    e.WrongObjectType,
)  # fmt: skip
# A statement of ours that the server can't do: prepared against a table that was changed since, or a server too old for it.
_OTHER_SERVER = (psycopg.NotSupportedError,)
# Errors of a new connection carry no code, only the server's words.
_NOT_LET_IN = (
    "password authentication failed",
    "no password supplied",
    "no pg_hba.conf entry",
    "is not permitted to log in",
)
_NO_DATABASE = ("does not exist", "is not currently accepting connections")


@contextmanager
def translated() -> Iterator[None]:
    """Raises errors of the driver as what they mean to callers; errors of our statements stay as they are.

    Raises:
        Unavailable: It passes: the server is away, restarts, takes no writes, or had to end a transaction.
        NeedsFixing: It passes only once people have fixed it; it is Unavailable, too.
    """
    try:
        yield
    except ProgramLimitExceeded:
        raise
    except (e.InsufficientPrivilege, e.InvalidCatalogName, *_OTHER_SCHEMA, *_OTHER_SERVER) as error:
        raise _needs_fixing(error) from error
    except _PASSES as error:
        raise _passing(error) from error


def _needs_fixing(error: psycopg.Error) -> NeedsFixing:
    # Without the lines that quote the statement.
    text = str(error).strip().partition("\n")[0]
    if isinstance(error, e.InsufficientPrivilege):
        return NeedsFixing(
            f"Postgres does not permit it: {text}; let the role that RSCHED_DATABASE_URL names own the database and all"
            " that is in it, or grant it all rights on them"
        )
    if isinstance(error, e.InvalidCatalogName):
        return _no_database(text)
    if isinstance(error, _OTHER_SERVER):
        return NeedsFixing(
            f"Postgres can't do it: {text}; after a change of its tables start this process again, else upgrade the server"
        )
    return NeedsFixing(
        f"the database is not as this release needs it: {text}; run `rsched migrate`, and if that finds nothing to do, restore"
        " what was changed by hand"
    )


def _passing(error: Exception) -> Unavailable:
    text, state = str(error).strip(), getattr(error, "sqlstate", None) or ""
    if state.startswith("53"):
        return Unavailable(f"Postgres has no room left (disk, memory or connections): {text}")
    if state == "25006":
        return Unavailable(f"Postgres is read-only: {text}")
    if state.startswith("28") or any(words in text for words in _NOT_LET_IN) or _no_role(text):
        return NeedsFixing(
            f"Postgres does not let this process in: {text}; fix the role, its password or pg_hba.conf, or correct"
            " RSCHED_DATABASE_URL and start this process again"
        )
    if 'FATAL:  database "' in text and any(words in text for words in _NO_DATABASE):
        return _no_database(text)
    if "permission denied for database" in text:
        return NeedsFixing(f"Postgres does not permit it: {text}; grant CONNECT on the database to the role")
    return Unavailable(f"Postgres is away: {text}")


def _no_role(text: str) -> bool:
    return 'FATAL:  role "' in text and "does not exist" in text


def _no_database(text: str) -> NeedsFixing:
    return NeedsFixing(
        f"the database is not there: {text}; restore it, or create it and run `rsched migrate`, or correct RSCHED_DATABASE_URL"
    )
