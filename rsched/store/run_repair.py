"""The reconciler's verbs on runs and on the sets that runs are in.

Authority: each verb looks again inside its script and changes only what is still as its caller saw it, so that nothing stops for
the reconciler. With `write` it repairs what it finds; without, it only finds. A page is bounded, so that it costs Redis under
2 ms; it takes a cursor, 0 at first and then what the page before returned, and about how many entries to look at. Errors:
ShardClosed, Unavailable.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

from rsched.core.ids import JobId, RunId
from rsched.store.connection import Part
from rsched.store.findings import Finding, read_findings, read_run, read_runs
from rsched.store.runs import to_bytes

EntrySet = Literal["staged", "retries", "leases", "catchup", "heads"]
KeptSet = Literal["payloads", "triggers", "requests", "finishes", "workers", "unconfirmed"]


class SeenRun(NamedTuple):
    """A run as a pass saw it.

    Attributes:
        run: Its id.
        record: Its packed record.
        place: "" where the run is as it should be, `queue` where only its queue stream can have it, `unreadable`.
        score: In its job's set of active runs, "" for none.
    """

    run: RunId
    record: bytes
    place: str
    score: str


class RunRepair(Part):
    """Looks at runs, queues and sets, and repairs them."""

    async def check_records(
        self, cursor: int, *, count: int, lease_ms: int, write: bool
    ) -> tuple[int, list[Finding], list[SeenRun]]:
        """Looks at a page of run records.

        Args:
            cursor: See the module.
            count: See the module.
            lease_ms: The lease that a running attempt without one gets.
            write: Whether to repair.

        Returns:
            The next cursor (0 at the end), what was found, and every run of the page.
        """
        reply = await self._redis.call(
            "repair_run_records", cursor=str(cursor), count=count, lease_ms=lease_ms, write=int(write)
        )
        flat = reply[4]
        seen = [
            SeenRun(read_run(flat[i]), flat[i + 1], flat[i + 2].decode(), flat[i + 3].decode())
            for i in range(0, len(flat), 4)
        ]
        return int(reply[2]), read_findings(reply[3]), seen

    async def check_queued(self, items: Sequence[tuple[SeenRun, bool]], *, write: bool) -> list[Finding]:
        """Looks at runs that are in no set, each with whether it is in its queue stream; returns what was found."""
        group = [(to_bytes(seen.run), seen.record, seen.score, int(queued)) for seen, queued in items]
        return read_findings((await self._redis.call("repair_queued_runs", group, write=int(write)))[2])

    async def put_back(self, items: Sequence[tuple[RunId, bytes, str, bytes]], *, lease_ms: int) -> list[RunId]:
        """Writes runs back that the ledger has and Redis has not, or cannot read.

        Args:
            items: (run, record that Redis has or b"", record that the ledger has, payload or b"").
            lease_ms: The lease that a running attempt gets.

        Returns:
            Those that were written.
        """
        return read_runs((await self._redis.call("repair_lost_runs", items, lease_ms=lease_ms))[2])

    async def drop(self, items: Sequence[tuple[RunId, bytes]], *, quarantine: bool = False) -> list[RunId]:
        """Drops runs that have ended by the ledger, or that nobody can read.

        Args:
            items: (run, packed record as it was seen).
            quarantine: Whether they cannot be read and are to be quarantined.

        Returns:
            Those that were dropped.
        """
        group = [(to_bytes(run), record) for run, record in items]
        return read_runs((await self._redis.call("repair_ended_runs", group, quarantine=int(quarantine)))[2])

    async def check_entries(self, kind: EntrySet, cursor: int, *, count: int, write: bool) -> tuple[int, list[Finding]]:
        """Looks at a page of a set for entries of no run, or of no job; returns the next cursor and what was found."""
        reply = await self._redis.call("repair_entries", set=kind, cursor=str(cursor), count=count, write=int(write))
        return int(reply[2]), read_findings(reply[3])

    async def check_leftovers(
        self, kind: KeptSet, cursor: int, *, count: int, silent_ms: int, write: bool
    ) -> tuple[int, list[Finding]]:
        """Looks at a page of what is kept for repeats and for workers.

        Args:
            kind: Which set.
            cursor: See the module.
            count: See the module.
            silent_ms: A worker not heard of for so long, and for two of its leases, is dead.
            write: Whether to drop what belongs to nothing any more.

        Returns:
            The next cursor (0 at the end), and what was found.
        """
        reply = await self._redis.call(
            "repair_leftovers", set=kind, cursor=str(cursor), count=count, silent_ms=silent_ms, write=int(write)
        )
        return int(reply[2]), read_findings(reply[3])

    async def check_queue(
        self, queue_key: str, after: str, *, count: int, write: bool
    ) -> tuple[str, list[Finding], list[RunId]]:
        """Looks at a page of a queue stream.

        Args:
            queue_key: Which stream.
            after: "-" at first, then what the page before returned.
            count: See the module.
            write: Whether to repair.

        Returns:
            The last entry ("" at the end), what was found, and the runs that wait in it.
        """
        reply = await self._redis.call("repair_queue", queue_key=queue_key, after=after, count=count, write=int(write))
        return reply[2].decode(), read_findings(reply[3]), read_runs(reply[4])

    async def check_ready_teams(self, queue: str, cursor: int, *, count: int, write: bool) -> tuple[int, list[Finding]]:
        """Looks at a page of a queue's ready set for teams without work; returns the next cursor and what was found."""
        reply = await self._redis.call(
            "repair_ready_teams", queue=queue, cursor=str(cursor), count=count, write=int(write)
        )
        return int(reply[2]), read_findings(reply[3])

    async def check_active_runs(self, job: JobId, cursor: int, *, count: int, write: bool) -> tuple[int, list[Finding]]:
        """Looks at a page of a job's active runs for runs without a record; returns the next cursor and what was found."""
        reply = await self._redis.call("repair_active_runs", job=job, cursor=str(cursor), count=count, write=int(write))
        return int(reply[2]), read_findings(reply[3])
