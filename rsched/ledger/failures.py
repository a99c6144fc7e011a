"""What errors of the driver mean to callers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import psycopg_pool

from rsched.core.errors import Unavailable

# What makes a statement fail for its data alone, so that other data would pass.
REFUSED = (psycopg.DataError, psycopg.IntegrityError, ValueError, KeyError, OverflowError, TypeError)


@contextmanager
def translated() -> Iterator[None]:
    """Unavailable for whatever passes by itself: a server that is away, restarts, or had to end a transaction."""
    try:
        yield
    except (psycopg.OperationalError, psycopg.InterfaceError, psycopg_pool.PoolTimeout, OSError) as error:
        raise Unavailable(f"Postgres is away: {str(error).strip()}") from error
