"""What each loop of a scheduler needs of the store; rsched.store.Store is all of these."""

from __future__ import annotations

from typing import Protocol

from rsched.store.calendars import Calendars
from rsched.store.catchup import Catchup
from rsched.store.clock import ShardClock
from rsched.store.connection import Connection
from rsched.store.jobs import Jobs
from rsched.store.partitions import Partitions
from rsched.store.pauses import Pauses
from rsched.store.recovery import Recovery
from rsched.store.refreshes import Refreshes
from rsched.store.restore import Restore
from rsched.store.runs import Runs


class OwnershipStore(Protocol):
    """Renews the scheduler's lease and acquires partitions."""

    partitions: Partitions
    connection: Connection


class ReleaseStore(Protocol):
    """Releases runs at their instant."""

    runs: Runs
    connection: Connection


class ReapStore(ReleaseStore, Protocol):
    """Ends attempts whose lease has ended, unless Redis' clock has just stepped."""

    clock: ShardClock


class ScheduleStore(Protocol):
    """Reads jobs and their calendars, and marks as invalid what cannot be computed."""

    jobs: Jobs
    calendars: Calendars
    connection: Connection


class ClaimStore(ScheduleStore, Protocol):
    """Claims what is due, fills occurrence caches and resolves misfires."""

    runs: Runs
    partitions: Partitions
    clock: ShardClock


class CatchupStore(ScheduleStore, Protocol):
    """Makes catch-up runs."""

    catchup: Catchup


class ResumeStore(ScheduleStore, Protocol):
    """Ends pauses whose time has come."""

    pauses: Pauses
    clock: ShardClock


class RefreshStore(ScheduleStore, Protocol):
    """Computes due times anew when calendars or tzdata have changed, and no restore is in progress."""

    refreshes: Refreshes
    recovery: Recovery
    restore: Restore
    clock: ShardClock
