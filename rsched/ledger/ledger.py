"""The ledger as one object, composed of parts that share its connections."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from rsched.ledger.base import Database
from rsched.ledger.read.calendars import Calendars
from rsched.ledger.read.jobs import Jobs
from rsched.ledger.read.runs import Runs
from rsched.ledger.read.skips import Skips
from rsched.ledger.recovery import Recovery
from rsched.ledger.retention.retention import Retention
from rsched.ledger.write.next_runs import NextRuns
from rsched.ledger.write.quarantine import Quarantine
from rsched.ledger.write.writer import Writer
from rsched.runtime.clock import Clock


class Ledger:
    """An async context manager. Every method of its parts raises Unavailable while Postgres is away.

    Attributes:
        database: The connections, and checks of the server.
        write: What the recorder writes.
        next_runs: When recurring jobs are due next, written in bulk.
        quarantine: What could not be recorded.
        jobs: Reads of jobs.
        runs: Reads of runs.
        skips: Reads of skips.
        calendars: Reads of holiday calendars.
        recovery: What a shard is brought back from, and compared with.
        retention: How history leaves for the archive.
    """

    def __init__(self, url: str, *, pool_max: int = 10, clock: Clock) -> None:
        """Connects to nothing yet.

        Args:
            url: The database's URL.
            pool_max: How many connections there may be at most.
            clock: The process' clock.
        """
        self.database = Database(url, pool_max=pool_max, clock=clock)
        self.write = Writer(self.database)
        self.next_runs = NextRuns(self.database)
        self.quarantine = Quarantine(self.database)
        self.jobs = Jobs(self.database)
        self.runs = Runs(self.database)
        self.skips = Skips(self.database)
        self.calendars = Calendars(self.database)
        self.recovery = Recovery(self.database)
        self.retention = Retention(self.database)

    async def __aenter__(self) -> Self:
        """Does not wait for the server: calls are Unavailable until it is there."""
        await self.database.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.database.__aexit__(kind, error, trace)
