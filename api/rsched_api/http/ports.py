"""What the API needs of the store; rsched.store.Store is that, tests bring smaller ones."""

from __future__ import annotations

from typing import Protocol

from rsched.store.calendars import Calendars
from rsched.store.clock import ShardClock
from rsched.store.connection import Connection
from rsched.store.jobs import Jobs
from rsched.store.journal import Journal
from rsched.store.partitions import Partitions
from rsched.store.processes import Processes
from rsched.store.recovery import Recovery
from rsched.store.restore import Restore
from rsched.store.runs import Runs


class ApiStore(Protocol):
    """The parts of a store that requests use: jobs and runs, and what tells whether the shard serves."""

    connection: Connection
    clock: ShardClock
    jobs: Jobs
    calendars: Calendars
    runs: Runs
    partitions: Partitions
    processes: Processes
    recovery: Recovery
    restore: Restore
    journal: Journal
