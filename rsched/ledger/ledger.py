"""The ledger as one object: what the recorder writes, what the API reads, what repair goes through."""

from __future__ import annotations

from rsched.ledger.compare import CompareVerbs
from rsched.ledger.reader import Reader
from rsched.ledger.repair import RecoveryReads
from rsched.ledger.restore_pages import RestorePages
from rsched.ledger.retention import RetentionVerbs
from rsched.ledger.triggers import TriggerVerbs
from rsched.ledger.unfinished_index import UnfinishedRunIndex
from rsched.ledger.writer import Writer
from rsched.runtime.clock import Clock


class Ledger(
    Writer, Reader, RecoveryReads, UnfinishedRunIndex, RetentionVerbs, RestorePages, CompareVerbs, TriggerVerbs
):
    """An async context manager. Every method raises Unavailable while Postgres is away."""

    def __init__(self, url: str, *, pool_max: int = 10, clock: Clock) -> None:
        super().__init__(url, pool_max=pool_max, clock=clock)
