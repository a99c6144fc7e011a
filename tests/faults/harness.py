"""Drives a fault run: a deployment of real processes, jobs, the fault, and the checker over what the target saw."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from bench.checker import FINAL, Recorded, Seen, Verdict, check, read_seen
from bench.jobs import Expected, item, put_all
from bench.ledger import count_final, position, read_recorded, read_skips
from bench.world import World, world
from rsched.core.errors import Unavailable
from rsched.core.ids import JobId
from rsched.core.instants import format_utc
from rsched.core.jobs.model import RetryPolicy, ScheduleSpec
from rsched.ledger.positions import parse_position
from rsched.runtime.clock import SystemClock
from rsched.store.jobs import PutItem
from tests.faults.agreement import disagreements

APP = "tests.faults.app:app"
# 5,000 for a full run; what is default here keeps each test under half a minute.
RUNS = int(os.environ.get("FAULTS_RUNS", "1500"))
SPREAD_MS = 4000
LEAD_MS = 1500
SETTLE_S = 60

# Short leases, so that what a dead worker held comes back while a test waits; a short look-ahead, so that a fault finds
# occurrences that are not claimed yet.
SETTINGS = {
    "RSCHED_WORKER_APP": APP,
    "RSCHED_WORKER_LEASE_MS": "3000",
    "RSCHED_RECORDER_LEASE_MS": "3000",
    "RSCHED_WORKER_RENEW_MS": "1000",
    "RSCHED_WORKER_STOP_MARGIN_MS": "500",
    "RSCHED_WORKER_CONCURRENCY": "50",
    "RSCHED_SCHEDULER_LOOKAHEAD_MS": "500",
}
# Enough attempts for any number of kills, and no long waits between them.
RETRY = RetryPolicy(max_attempts=10, base="100ms", cap="200ms")


class Run:
    """One fault run. `expected`: the occurrences of each job that was put. `acknowledged`: the value that each was put with."""

    def __init__(self, w: World, seen: Path) -> None:
        self.w, self.fleet, self.seen = w, w.fleet, seen
        self.expected: dict[str, list[int]] = {}
        self.acknowledged: dict[JobId, bytes] = {}

    async def put_spread(
        self, count: int, *, function: str = "brief", spread_ms: int = SPREAD_MS, lead_ms: int = LEAD_MS
    ) -> None:
        """One-offs whose instants are spread evenly, from lead_ms ahead."""
        now = await self.w.store.clock.read()
        base = len(self.expected)
        made = [
            item(
                f"fault-{base + i}",
                ScheduleSpec(at=format_utc(now + lead_ms + i * spread_ms // count)),
                function=function,
                now=now,
                retry=RETRY,
            )
            for i in range(count)
        ]
        await self._put([put for put, _ in made])
        self._owe([o for _, o in made])

    async def put_every(self, count: int, *, every_s: int, until_ms: int) -> None:
        """Interval jobs; expected is what they have due up to until_ms."""
        now = await self.w.store.clock.read()
        for i in range(count):
            spec = ScheduleSpec(every=every_s)
            put, first = item(f"every-{i}", spec, function="brief", now=now, retry=RETRY)
            await self._put([put])
            self.expected[first.job] = list(range(first.due, until_ms + 1, every_s * 1000))

    async def _put(self, items: Sequence[PutItem]) -> None:
        await put_all(self.w.store, items)
        self.acknowledged.update((put.job, put.value) for put in items)

    def _owe(self, expected: Sequence[Expected]) -> None:
        for o in expected:
            self.expected.setdefault(o.job, []).append(o.due)

    @property
    def first_due(self) -> int:
        return min(t for due in self.expected.values() for t in due)

    @property
    def total(self) -> int:
        return sum(map(len, self.expected.values()))

    def kill(self, name: str) -> None:
        """kill -9, noted for the checker, once it is dead."""
        self._note("killed", self.fleet.kill(name))

    def note_stopped(self, pid: int) -> None:
        self._note("stopped", pid)

    def _note(self, kind: str, pid: int) -> None:
        fd = os.open(self.seen, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(fd, json.dumps({"kind": kind, "at": self.w.clock.wall_ms(), "pid": pid}).encode() + b"\n")
        os.close(fd)

    def count(self, kind: str) -> int:
        """Lines of that kind so far."""
        return self.seen.read_bytes().count(f'"kind": "{kind}"'.encode()) if self.seen.exists() else 0

    def lines(self, kind: str) -> list[Seen]:
        return [s for s in read_seen(self.seen) if s.kind == kind] if self.seen.exists() else []

    async def until(self, condition: Callable[[], bool], what: str, *, within_s: float = 20) -> None:
        async def asked() -> bool:
            return condition()

        await self.fleet.until(asked, what=what, within_s=within_s)

    async def until_started(self, part: float, *, within_s: float = 20) -> None:
        """Until the target has seen the start of this part of all runs."""
        await self.until(
            lambda: self.count("start") >= part * self.total, f"{part:.0%} of all starts", within_s=within_s
        )

    async def until_recorded(self, *, within_s: float = 30) -> None:
        """Until the ledger has all that is in the journal now: what was put is acknowledged then."""
        last = {s: parse_position(await self.w.store.journal.get_last_id(s)) for s in ("definitions", "journal")}

        async def recorded() -> bool:
            for stream, mark in last.items():
                if parse_position(await position(self.w.database_url, stream)) < mark:
                    return False
            return True

        await self.fleet.until(recorded, what="everything on record", within_s=within_s)

    async def until_open(self, *, within_s: float = 20) -> None:
        """Until the shard is open, wherever the server has been."""

        async def opened() -> bool:
            try:
                return await self.w.store.recovery.is_open()
            except Unavailable:
                return False

        await self.fleet.until(opened, what="an open shard", within_s=within_s)

    async def until_settled(self, *, within_s: float = SETTLE_S) -> None:
        """Until each run is final in the ledger and Redis holds none."""

        async def over() -> bool:
            if await count_final(self.w.database_url) < self.total:
                await self.w.clock.sleep(80)
                return False
            return await self.w.store.connection.client.hlen(self.w.store.keys.runs) == 0

        await self.fleet.until(over, what="all runs final in the ledger", within_s=within_s)

    async def end_intervals(self, *, every_s: int) -> None:
        """Pauses all interval jobs; what they owe then goes without a gap up to the last occurrence on record."""
        store = self.w.store
        for job in self.expected:
            assert (await store.jobs.pause(JobId(job))).tag == "ok"

        async def all_recorded() -> bool:
            if await store.connection.client.hlen(store.keys.runs):
                return False
            return await position(self.w.database_url, "journal") == await store.journal.get_last_id("journal")

        await self.fleet.until(all_recorded, what="the end of all runs", within_s=20)
        for row in await self.recorded():
            job, _, at = row.run_id.partition(":")
            self.expected[job] = list(
                range(self.expected[job][0], max(self.expected[job][-1], int(at)) + 1, every_s * 1000)
            )

    async def recorded(self) -> list[Recorded]:
        return await read_recorded(self.w.database_url)

    async def verdict(self) -> Verdict:
        """The checker's; asserts that there is no breach, that all ended, and that all that was acknowledged is there."""
        rows = await self.recorded()
        skips = await read_skips(self.w.database_url)
        found = check(read_seen(self.seen), rows, expected=self.expected, skips=skips)
        assert not found.breaches, str(found)
        assert {r.state for r in rows} <= FINAL
        wrong = await disagreements(self.w, self.acknowledged)
        assert not wrong, "\n".join(wrong[:20])
        return found

    async def longest_lateness_ms(self) -> int:
        """Of the last attempts at all runs."""
        return max(r.started_at - r.due_at for r in await self.recorded())

    async def until_owned(self, schedulers: int) -> None:
        """Until that many schedulers are live and own all partitions between them."""

        async def shared() -> bool:
            live, _ = await self.w.store.processes.list_live()
            return len(live) == schedulers and await self.w.store.partitions.count_owned() == 1024

        await self.fleet.until(shared, what=f"{schedulers} schedulers that own everything", within_s=20)

    async def until_workers(self, count: int) -> None:
        async def there() -> bool:
            return len((await self.w.store.processes.list_live())[1]) >= count

        await self.fleet.until(there, what=f"{count} workers", within_s=20)


@asynccontextmanager
async def fault_run(
    *,
    schedulers: int = 1,
    workers: int = 2,
    recorders: int = 1,
    env: dict[str, str] | None = None,
    prepared: Callable[[World], Awaitable[None]] | None = None,
) -> AsyncIterator[Run]:
    """Everything is up and settled; nothing is due yet. prepared: is called once the servers are up, before the processes."""
    async with world({**SETTINGS, **(env or {})}, clock=SystemClock()) as w:
        if prepared is not None:
            await prepared(w)
        seen = w.folder / "seen.jsonl"
        run = Run(w, seen)
        for i in range(recorders):
            w.fleet.start(f"recorder-{i + 1}")
        await w.until_open()
        for i in range(schedulers):
            w.fleet.start(f"scheduler-{i + 1}")
        for i in range(workers):
            w.fleet.start(f"worker-{i + 1}", env={"FAULTS_SEEN": str(seen)})
        if (env or {}).get("RSCHED_SCHEDULER_OWNERSHIP") != "false":
            await run.until_owned(schedulers)
        await run.until_workers(workers)
        yield run


def drive(scenario: Callable[[], Awaitable[Any]]) -> Any:
    """Runs a scenario to its end."""

    async def main() -> Any:
        return await scenario()

    return asyncio.run(main())
