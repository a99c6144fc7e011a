"""Jobs and runs in a shard of a test's own, and snapshots of everything that the shard holds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from rsched.core.ids import JobId, RunId, WorkerId, derive_job_id, partition_of, run_id_of
from rsched.core.jobs.model import Priority, ScheduleSpec
from rsched.core.jobs.packed import Event, JobHead, JobRecord, ScheduleKind, unpack_event
from rsched.core.states import JobState, RunState
from rsched.runtime.clock import SystemClock
from rsched.store.connection import Connection, connect
from rsched.store.jobs import PutItem
from rsched.store.keys import Keys
from rsched.store.run_values import FetchedRun, FetchReply, FinishItem
from rsched.store.store import Store
from tests.support.factories import make_definition

W = WorkerId("w1")
FENCE = 2**36
Snapshot = dict[str, Any]


class Job(NamedTuple):
    id: JobId
    record: JobRecord
    due: int

    @property
    def run(self) -> RunId:
        return run_id_of(self.id, self.due)

    @property
    def p(self) -> int:
        return partition_of(self.id)


def record(
    name: str, *, now: int, kind: ScheduleKind, arg: str, team: str = "default", priority: Priority = "normal",
    payload: Any = None, **head: Any,
) -> JobRecord:  # fmt: skip
    """Returns the record of an active job. head: fields of its JobHead in place of these."""
    definition = make_definition(
        name, schedule=ScheduleSpec(at="2030-01-01T00:00:00Z"), team=team, payload=payload, priority=priority,
        created_at=now, updated_at=now, body_hash="x",
    )  # fmt: skip
    fields: dict[str, Any] = {
        "state": JobState.ACTIVE, "version": 1, "schedule_version": 1, "misfire": "o", "grace_ms": 60_000,
    }  # fmt: skip
    fields |= head | {"schedule_changed_at": head.get("schedule_changed_at") or now}
    return JobRecord(JobHead(kind=kind, arg=arg, queue_key=definition.queue_key, **fields), definition)


class World:
    def __init__(self, store: Store) -> None:
        self.store, self.keys, self.client = store, store.keys, store.connection.client
        self.requests = 0

    @classmethod
    def at(cls, url: str, *, prefix: str) -> World:
        return cls(Store(Connection(connect(url), Keys(prefix, "s0"), SystemClock())))

    async def open(
        self, generation: int = 1, *, recovery_grace_ms: int = 0, fence: int = FENCE, lost: bool = False
    ) -> None:
        assert await self.store.recovery.begin(generation, fence=fence, lost=lost)
        cursor = -1
        while cursor:
            cursor = await self.store.recovery.restage(max(cursor, 0), lease_ms=60_000)
        await self.store.recovery.finish(recovery_grace_ms=recovery_grace_ms)

    async def close(self) -> None:
        await self.client.aclose()

    async def put(
        self, name: str, *, kind: ScheduleKind = "o", due_in: int = 0, every: int = 60_000, schedule: str = "SID",
        team: str = "default", **head: Any,
    ) -> Job:  # fmt: skip
        now = await self.store.clock.read()
        due = now + due_in
        arg = {"o": str(due), "e": f"{due},{every}", "c": schedule}[kind]
        job = derive_job_id(team, name, 1)
        rec = record(name, now=now, kind=kind, arg=arg, team=team, schedule_changed_at=min(now, due) - 1, **head)
        reply = await self.store.jobs.put([PutItem(job, 0, due, rec.pack())], atomic=True)
        assert reply.ok, reply
        return Job(job, rec, due)

    async def claim(self, *jobs: Job, limit: int = 1000, horizon_ms: int = 5000) -> Any:
        parts = sorted({j.p for j in jobs}) or range(1024)
        return await self.store.runs.claim("", horizon_ms=horizon_ms, limit=limit, partitions=[(p, 0) for p in parts])

    async def fetch(self, slots: int = 10, *, worker: WorkerId = W, lease_ms: int = 60_000) -> FetchReply:
        self.requests += 1
        return await self.store.runs.fetch(
            worker, request=self.requests, slots=slots, lease_ms=lease_ms, queues=["default"]
        )

    async def queued(self, name: str = "a", **put: Any) -> Job:
        job = await self.put(name, **put)
        await self.claim(job)
        await self.store.runs.release(limit=1000)
        return job

    async def running(self, name: str = "a", *, lease_ms: int = 60_000, **put: Any) -> tuple[Job, FetchedRun]:
        job = await self.queued(name, **put)
        runs = (await self.fetch(lease_ms=lease_ms)).runs
        return job, next(r for r in runs if r.run == job.run)

    async def finish(
        self, run: FetchedRun, outcome: RunState = RunState.SUCCEEDED, *, delay_ms: int = 0, fence: int | None = None,
        error: str = "", request: int | None = None,
    ) -> str:  # fmt: skip
        self.requests += 1
        item = FinishItem(run.run, run.fence if fence is None else fence, outcome, delay_ms, 0, error)
        return (await self.store.runs.finish(W, request=request or self.requests, items=[item]))[0]

    async def value(self, key: str) -> Any:
        c: Any = self.client
        kind = (await c.type(key)).decode()
        if kind == "hash":
            return dict(sorted((await c.hgetall(key)).items()))
        if kind == "zset":
            return await c.zrange(key, 0, -1, withscores=True)
        if kind == "set":
            return await c.smembers(key)
        if kind == "stream":
            return await c.execute_command("XRANGE", key, "-", "+")
        return await c.get(key)

    async def snapshot(self) -> Snapshot:
        stem = f"{self.keys.prefix}:{{{self.keys.shard}}}:"
        found = sorted([k.decode() async for k in self.client.scan_iter(match=f"{self.keys.prefix}:*", count=5000)])
        return {k.removeprefix(stem): await self.value(k) for k in found}

    async def events(self, since: Snapshot | None = None) -> list[Event]:
        """What the journal's streams hold beyond `since`."""
        out: list[Event] = []
        for stream in ("definitions", "journal"):
            entries = await self.store.journal.read({stream: "0-0"}, block_ms=0, count=100_000)
            for _, _, pairs in entries[len((since or {}).get(stream, ())) :]:
                out += [unpack_event(k, p) for k, p in pairs]
        return out

    def kinds(self, events: Sequence[Event]) -> list[str]:
        return sorted(type(e).__name__.removesuffix("Event") for e in events)


def changed(before: Snapshot, after: Snapshot) -> set[str]:
    """The keys that differ, without their partitions."""
    return {
        k.split(":")[0] if k.split(":")[0] in ("due", "jobs", "body") else k
        for k in before.keys() | after.keys()
        if before.get(k) != after.get(k)
    }
