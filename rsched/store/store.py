"""One shard, as the parts that processes take what they need of."""

from __future__ import annotations

from rsched.runtime.clock import Clock
from rsched.store.calendars import Calendars
from rsched.store.catchup import Catchup
from rsched.store.connection import Connection, connect
from rsched.store.gauges import Gauges
from rsched.store.job_repair import JobRepair
from rsched.store.jobs import Jobs
from rsched.store.journal import Journal
from rsched.store.keys import Keys
from rsched.store.partitions import Partitions
from rsched.store.pauses import Pauses
from rsched.store.processes import Processes
from rsched.store.reconciliation import Reconciliation
from rsched.store.recovery import Recovery
from rsched.store.refreshes import Refreshes
from rsched.store.restore import Restore
from rsched.store.resync import Resync
from rsched.store.run_repair import RunRepair
from rsched.store.runs import Runs
from rsched.store.scripts import load, verbs
from rsched.store.server import Server
from rsched.store.signals import Signals


def shard_tags(shards: int) -> list[str]:
    """Returns the hash tags of a deployment's shards."""
    return [f"s{i}" for i in range(shards)]


class Store:
    """One shard. Not a verb decides by a local clock; every error of the server that passes is Unavailable.

    Attributes:
        connection: What all parts call the server through.
        keys: The shard's keys.
        clock: Redis' clock.
        jobs: Jobs and what people do with them.
        calendars: Holiday calendars of teams.
        refreshes: Which schedules are to be computed anew.
        pauses: Pauses that end by themselves.
        partitions: Who claims from which partition, and what is due.
        runs: Runs, from claim to finish.
        catchup: Catch-up ranges.
        processes: Which schedulers and workers there are.
        signals: Wake-ups.
        recovery: The shard's state, and opening it again.
        restore: Writing back what Redis had lost.
        resync: Reading what Postgres had lost.
        journal: The streams that record every change.
        run_repair: The reconciler's verbs on runs.
        job_repair: The reconciler's verbs on jobs.
        reconciliation: What the reconciler reads, and how far it is.
        gauges: The shard's metrics.
        server: Facts about the server.
    """

    def __init__(self, connection: Connection) -> None:
        """Takes the connection of one shard, which its parts share."""
        self.connection, self.keys, self.clock = connection, connection.keys, connection.clock
        self.jobs = Jobs(connection)
        self.calendars = Calendars(connection)
        self.refreshes = Refreshes(connection)
        self.pauses = Pauses(connection)
        self.partitions = Partitions(connection)
        self.runs = Runs(connection)
        self.catchup = Catchup(connection)
        self.processes = Processes(connection)
        self.signals = Signals(connection)
        self.recovery = Recovery(connection)
        self.restore = Restore(connection)
        self.resync = Resync(connection)
        self.journal = Journal(connection)
        self.run_repair = RunRepair(connection)
        self.job_repair = JobRepair(connection)
        self.reconciliation = Reconciliation(connection)
        self.gauges = Gauges(connection)
        self.server = Server(connection)

    @classmethod
    def open(cls, url: str, *, prefix: str, shard: str, clock: Clock) -> Store:
        """Makes the store of a shard; nothing is connected before the first verb.

        Args:
            url: Where Redis is.
            prefix: What the deployment's keys begin with.
            shard: The shard's hash tag.
            clock: The process' own clock.
        """
        # Now rather than at first use: files that a new release replaces meanwhile must not mix with ours.
        for verb in verbs():
            load(verb)
        return cls(Connection(connect(url), Keys(prefix, shard), clock))

    async def aclose(self) -> None:
        """Closes the connections to the server."""
        await self.connection.client.aclose()
