"""The only importer of the Postgres driver: migrations, queries, writer, reader. Postgres is the durable record."""

from rsched.ledger.ledger import Ledger
from rsched.ledger.migrate import migrate, schema_version
from rsched.ledger.stored import StoredAttempt, StoredJob, StoredRun, StoredSkip
from rsched.ledger.waiter import Waiter

__all__ = [
    "Ledger",
    "StoredAttempt",
    "StoredJob",
    "StoredRun",
    "StoredSkip",
    "Waiter",
    "migrate",
    "schema_version",
]
