"""The Postgres record: the only importer of the driver.

Authority: Postgres is the durable record of what was acknowledged and of what happened. Redis is ahead of it, and is restored
from it. write/ records, read/ answers the API, recovery/ brings a shard back, retention/ moves history to files, migrations/
is the schema. Each package says what it trusts and how it fails.
"""

from rsched.ledger.ledger import Ledger
from rsched.ledger.migrate import migrate, schema_version
from rsched.ledger.read.stored import StoredAttempt, StoredJob, StoredRun, StoredSkip
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
