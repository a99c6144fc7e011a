"""Verbs of the reconciler: pages of what a shard holds, looked at and repaired inside one script each.

write: repair what is found; without it, it is only found. Each page is bounded, so that a call costs Redis under 2 ms.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

from rsched.core.ids import JobId, RunId, partition_of
from rsched.store.base import Base, tags
from rsched.store.failures import DamagedKey

Found = tuple[str, str]
EntrySet = Literal["staged", "retries", "leases", "catchup", "heads"]
KeptSet = Literal["payloads", "triggers", "requests", "finishes", "workers", "unconfirmed"]
_SET_KEYS = {"occurrences": "occurrences:*", "active": "active:*", "queue": "q:*", "ready": "ready:*"}
KeyKind = Literal["occurrences", "active", "queue", "ready"]


# Pauses that could not be ended are put off for less than this.
_PUT_OFF_MS = 3_600_000


class SeenRun(NamedTuple):
    """place: "" where the run is as it should be, `queue` where only its queue stream can have it, `unreadable`.

    score: in its job's open set, "" for none.
    """

    run: RunId
    record: bytes
    place: str
    score: str


class LostDue(NamedTuple):
    """A due entry whose job's value (b"" for none) is no definition."""

    job: JobId
    due: int
    value: bytes


class ReconcileProgress(NamedTuple):
    """Of the recorder's own passes. Instants in ms by Redis' clock, 0 for none; found: in the present pass."""

    passes: int = 0
    phase: str = ""
    found: int = 0
    started_at: int = 0
    ended_at: int = 0


def _pairs(flat: Sequence[bytes]) -> list[Found]:
    return [(k.decode(), v.decode(errors="replace")) for k, v in zip(flat[::2], flat[1::2], strict=True)]


# Hands may have written anything: ids that are no text go through Python unharmed.
def _run(raw: bytes) -> RunId:
    return RunId(raw.decode(errors="surrogateescape"))


def _raw(run: str) -> bytes:
    return run.encode(errors="surrogateescape")


def _runs(flat: Sequence[bytes]) -> list[RunId]:
    return [_run(r) for r in flat]


class RepairVerbs(Base):
    async def repair_run_records(
        self, cursor: int, *, count: int, lease_ms: int, write: bool
    ) -> tuple[int, list[Found], list[SeenRun]]:
        """A page of run records: the next cursor (0 at the end), what was found, and every run of the page."""
        reply = await self._call(
            "repair_run_records", cursor=str(cursor), count=count, lease_ms=lease_ms, write=int(write)
        )
        flat = reply[4]
        seen = [
            SeenRun(_run(flat[i]), flat[i + 1], flat[i + 2].decode(), flat[i + 3].decode())
            for i in range(0, len(flat), 4)
        ]
        return int(reply[2]), _pairs(reply[3]), seen

    async def repair_queued_runs(self, items: Sequence[tuple[SeenRun, bool]], *, write: bool) -> list[Found]:
        """Of runs that are in no set, and whether they are in their queue stream."""
        group = [(_raw(s.run), s.record, s.score, int(queued)) for s, queued in items]
        return _pairs((await self._call("repair_queued_runs", group, write=int(write)))[2])

    async def repair_lost_runs(self, items: Sequence[tuple[RunId, bytes, str, bytes]], *, lease_ms: int) -> list[RunId]:
        """Writes (run, what Redis has or b"", the ledger's record, payload or b"") back; those that were written."""
        return _runs((await self._call("repair_lost_runs", items, lease_ms=lease_ms))[2])

    async def repair_ended_runs(self, items: Sequence[tuple[RunId, bytes]], *, quarantine: bool = False) -> list[RunId]:
        """Drops (run, record as seen) that ended by the ledger, or are to be quarantined; those that were dropped."""
        group = [(_raw(run), record) for run, record in items]
        return _runs((await self._call("repair_ended_runs", group, quarantine=int(quarantine)))[2])

    async def repair_entries(self, kind: EntrySet, cursor: int, *, count: int, write: bool) -> tuple[int, list[Found]]:
        reply = await self._call("repair_entries", set=kind, cursor=str(cursor), count=count, write=int(write))
        return int(reply[2]), _pairs(reply[3])

    async def repair_leftovers(
        self, kind: KeptSet, cursor: int, *, count: int, silent_ms: int, write: bool
    ) -> tuple[int, list[Found]]:
        """silent_ms: a worker not heard of for so long (and for two of its leases) is dead."""
        reply = await self._call(
            "repair_leftovers", set=kind, cursor=str(cursor), count=count, silent_ms=silent_ms, write=int(write)
        )
        return int(reply[2]), _pairs(reply[3])

    async def repair_dues(
        self, partition: int, cursor: int, *, count: int, write: bool
    ) -> tuple[int, list[Found], list[LostDue]]:
        reply = await self._call("repair_dues", partition=partition, cursor=str(cursor), count=count, write=int(write))
        flat = reply[4]
        lost = [
            LostDue(JobId(j.decode(errors="surrogateescape")), int(d), v)
            for j, d, v in zip(flat[::3], flat[1::3], flat[2::3], strict=True)
        ]
        return int(reply[2]), _pairs(reply[3]), lost

    async def repair_missing_dues(self, items: Sequence[tuple[JobId, bytes, int]]) -> list[str]:
        """Sets (job, head as seen, due ms, or when its pause ends) where the job still has none; the jobs it was set of."""
        return tags((await self._call("repair_missing_dues", items))[2])

    async def repair_pauses(self, cursor: int, *, count: int, write: bool) -> tuple[int, list[Found]]:
        """A page of the ends of pauses."""
        reply = await self._call(
            "repair_pauses", cursor=str(cursor), count=count, write=int(write), late_ms=_PUT_OFF_MS
        )
        return int(reply[2]), _pairs(reply[3])

    async def repair_unreadable_jobs(self, items: Sequence[tuple[int, bytes, bytes]]) -> list[bytes]:
        """Sets (partition, job, value as seen or b"") aside; those that were."""
        return list((await self._call("repair_unreadable_jobs", items))[2])

    async def repair_definitions(self, items: Sequence[tuple[JobId, int]]) -> list[str]:
        """Journals (job, version) once more; the jobs that still have that version."""
        return tags((await self._call("repair_definitions", items))[2])

    async def repair_queue(
        self, queue_key: str, after: str, *, count: int, write: bool
    ) -> tuple[str, list[Found], list[RunId]]:
        """A page of a queue stream after that entry ("-" begins): the last entry ("" at the end), what was found, and the
        runs that wait in it.
        """
        reply = await self._call("repair_queue", queue_key=queue_key, after=after, count=count, write=int(write))
        return reply[2].decode(), _pairs(reply[3]), _runs(reply[4])

    async def repair_ready_teams(self, queue: str, cursor: int, *, count: int, write: bool) -> tuple[int, list[Found]]:
        reply = await self._call("repair_ready_teams", queue=queue, cursor=str(cursor), count=count, write=int(write))
        return int(reply[2]), _pairs(reply[3])

    async def repair_active_runs(self, job: JobId, cursor: int, *, count: int, write: bool) -> tuple[int, list[Found]]:
        reply = await self._call("repair_active_runs", job=job, cursor=str(cursor), count=count, write=int(write))
        return int(reply[2]), _pairs(reply[3])

    async def inspect_occurrences(self, schedule: str) -> tuple[list[tuple[str, int]], str]:
        """A calendar's (member, score) in order, and the digest that repair_occurrences asks for."""
        flat = (await self._call("inspect_occurrences", schedule=schedule))[2]
        entries = [(m.decode(errors="replace"), int(float(s))) for m, s in zip(flat[::2], flat[1::2], strict=True)]
        return entries, hashlib.sha1(b" ".join(flat), usedforsecurity=False).hexdigest()

    async def repair_occurrences(self, schedule: str, *, digest: str) -> bool:
        """Drops the calendar if it is still the one that was inspected."""
        reply = await self._call("repair_occurrences", schedule=schedule, digest=digest)
        return bool(reply[0] == "ok")

    async def page_of_keys(self, kind: KeyKind, *, cursor: int, count: int = 1000) -> tuple[int, list[str]]:
        """Names (what follows the kind) of some keys of that kind, and the next cursor, 0 at the end."""
        pattern = self.keys.marker.removesuffix("shard") + _SET_KEYS[kind]
        for special in "[]?\\":
            pattern = pattern.replace(special, "\\" + special)
        following, found = await self._redis(self.client.scan(cursor, match=pattern, count=count))
        start = len(self.keys.marker.removesuffix("shard")) + len(_SET_KEYS[kind]) - 1
        return int(following), sorted(k.decode(errors="replace")[start:] for k in found)

    async def page_of_raw(self, partition: int, *, cursor: int, count: int) -> tuple[int, list[tuple[bytes, bytes]]]:
        """Some (job, value) of a partition, bodies over 1 KB left out, and the next cursor."""
        following, page = await self._redis(self.client.hscan(self.keys.jobs(partition), cursor, count=count))
        return int(following), list(page.items())

    async def due_or_not(self, partition: int, jobs: Sequence[JobId]) -> list[bool]:
        """Whether each has a due time."""
        if not jobs:
            return []
        found = await self._redis(self.client.zmscore(self.keys.due(partition), list[str](jobs)))
        return [f is not None for f in found]

    async def ending_or_not(self, jobs: Sequence[JobId]) -> list[bool]:
        """Whether each has an end of its pause."""
        if not jobs:
            return []
        found = await self._redis(self.client.zmscore(self.keys.pauses, list[str](jobs)))
        return [f is not None for f in found]

    async def catching_up(self) -> set[str]:
        """Jobs with a catch-up range."""
        found = await self._redis(self.client.zrange(self.keys.catchup, 0, -1))
        return {m.partition(b"|")[0].decode(errors="replace") for m in found}

    async def records_of(self, runs: Sequence[RunId]) -> list[bytes | None]:
        return list(await self._redis(self.client.hmget(self.keys.runs, [_raw(r) for r in runs]))) if runs else []

    async def values_of(self, jobs: Sequence[JobId]) -> list[bytes | None]:
        """The values of jobs as `page_of_raw` has them."""
        pipe = self.client.pipeline(transaction=False)
        for job in jobs:
            pipe.hget(self.keys.jobs(partition_of(job)), job)
        return list(await self._redis(pipe.execute())) if jobs else []

    async def reconciled(self) -> ReconcileProgress:
        """How far the recorder's own passes are."""
        try:
            found: Any = await self._redis(self.client.hgetall(self.keys.reconcile))
        except DamagedKey:
            return ReconcileProgress()
        f = {k.decode(): v.decode() for k, v in found.items()}
        return ReconcileProgress(
            int(f.get("passes", 0)), f.get("phase", ""), *(int(f.get(n, 0)) for n in ReconcileProgress._fields[2:])
        )

    async def set_reconciled(self, progress: ReconcileProgress) -> None:
        told = progress._asdict().items()
        await self._redis(self.client.hset(self.keys.reconcile, mapping={k: str(v) for k, v in told}))
