"""What brings a shard's Redis back from the ledger, and what the reconciler holds it against.

Authority: the table `shards` for generations and fences, which only grow; all else is read. It trusts the ledger to be behind
Redis at most, and says of each job and run the latest that it knows, for callers to compare. It fails as Unavailable; an
unfinished recovery is begun again.
"""

from __future__ import annotations

from rsched.ledger.base import Database
from rsched.ledger.recovery.compare import Compare
from rsched.ledger.recovery.generations import Generations
from rsched.ledger.recovery.pages import Pages
from rsched.ledger.recovery.triggers import Triggers
from rsched.ledger.recovery.unfinished_runs import UnfinishedRuns


class Recovery:
    """The parts of recovery."""

    def __init__(self, database: Database) -> None:
        self.generations = Generations(database)
        self.pages = Pages(database)
        self.compare = Compare(database)
        self.unfinished = UnfinishedRuns(database, self.compare)
        self.triggers = Triggers(database)
