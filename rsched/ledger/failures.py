"""What errors of the driver mean to callers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import psycopg_pool
from psycopg.errors import ProgramLimitExceeded

from rsched.core.errors import Unavailable

# What makes a statement fail for its data alone, so that other data would pass.
REFUSED = (
    psycopg.DataError, psycopg.IntegrityError, ProgramLimitExceeded, ValueError, KeyError, OverflowError, TypeError,
)  # fmt: skip
# Mended by time or by people: away, restarting, full (class 53), read-only or otherwise out of order (class 25, XX).
_PASSES = (psycopg.OperationalError, psycopg.InterfaceError, psycopg.InternalError, psycopg_pool.PoolTimeout,
           psycopg_pool.PoolClosed, OSError)  # fmt: skip


@contextmanager
def translated() -> Iterator[None]:
    """Unavailable for whatever passes: a server that is away, restarts, takes no writes, or had to end a transaction."""
    try:
        yield
    except ProgramLimitExceeded:
        raise
    except _PASSES as error:
        text = str(error).strip()
        raise Unavailable(f"{_what(error)}: {text}") from error


def _what(error: Exception) -> str:
    state = getattr(error, "sqlstate", None) or ""
    if state.startswith("53"):
        return "Postgres has no room left (disk, memory or connections)"
    if state == "25006":
        return "Postgres is read-only"
    return "Postgres is away"
