"""The sets of a shard: their entries against what they stand for, and its calendars against their schedules."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

from rsched.core.errors import RschedError
from rsched.core.ids import JobId, is_job_id
from rsched.core.jobs.packed import JobRecord
from rsched.core.schedule import schedule as schedules
from rsched.recorder.reconcile.passes import PAGE, Part, Pass
from rsched.store.reconciliation import KeyKind
from rsched.store.run_repair import EntrySet, KeptSet

# A worker that was not heard of for this long, nor for two of its leases, is dead.
SILENT_MS = 3_600_000
_KEPT: tuple[KeptSet, ...] = ("workers", "requests", "finishes", "unconfirmed", "payloads", "triggers")


class SetParts:
    """The parts of a pass that look at sets; each part is a generator that yields after a bounded piece."""

    def __init__(self, p: Pass) -> None:
        self._pass = p

    async def entries(self) -> Part:
        """Looks at the entries of all sets of runs, at the heads of partitions and at the ends of pauses."""
        for kind in ("staged", "retries", "leases", "heads"):
            async for _ in self._entries(kind):
                yield
        p, cursor = self._pass, -1
        while cursor:
            cursor, found = await p.store.job_repair.check_pauses(max(cursor, 0), count=PAGE, write=p.write)
            p.saw_all(found)
            yield

    async def ranges(self) -> Part:
        """Last of all: a job that is missing has been brought back before."""
        async for _ in self._entries("catchup"):
            yield

    async def _entries(self, kind: EntrySet) -> Part:
        p, cursor = self._pass, -1
        while cursor:
            cursor, found = await p.store.run_repair.check_entries(kind, max(cursor, 0), count=PAGE, write=p.write)
            p.saw_all(found)
            yield

    async def kept(self) -> Part:
        """Looks at what is kept for repeats and for workers."""
        p = self._pass
        for kind in _KEPT:
            cursor = -1
            while cursor:
                cursor, found = await p.store.run_repair.check_leftovers(
                    kind, max(cursor, 0), count=PAGE, silent_ms=SILENT_MS, write=p.write
                )
                p.saw_all(found)
                yield

    async def queues(self) -> Part:
        """Queue streams, then the teams that are ready."""
        p = self._pass
        async for queue_keys in self._keys("queue"):
            for queue_key in queue_keys:
                if queue_key.count(":") != 2:
                    continue
                after = "-"
                while after:
                    after, found, _ = await p.store.run_repair.check_queue(queue_key, after, count=PAGE, write=p.write)
                    p.saw_all(found)
                    yield
        async for queues in self._keys("ready"):
            for queue in queues:
                cursor = -1
                while cursor:
                    cursor, found = await p.store.run_repair.check_ready_teams(
                        queue, max(cursor, 0), count=PAGE, write=p.write
                    )
                    p.saw_all(found)
                    yield

    async def open(self) -> Part:
        """The open runs of jobs whose runs must not overlap."""
        p = self._pass
        async for jobs in self._keys("active"):
            for job in jobs:
                cursor = -1
                while cursor and is_job_id(job):
                    cursor, found = await p.store.run_repair.check_active_runs(
                        JobId(job), max(cursor, 0), count=PAGE, write=p.write
                    )
                    p.saw_all(found)
                    yield

    async def calendars(self) -> Part:
        """Cached occurrences: one that lacks an occurrence would skip it silently. Those of no job expire by themselves."""
        p = self._pass
        async for names in self._keys("occurrences"):
            known = [n for n in names if n in p.schedules]
            jobs = await p.store.jobs.get_many([p.schedules[n] for n in known])
            for name in known:
                record = jobs.get(p.schedules[name])
                if not isinstance(record, JobRecord) or record.head.arg != name:
                    continue
                team, excluded = record.definition.team, schedules.calendar_names(record.definition)
                exclusions = await p.store.calendars.get_many(team, excluded) if excluded else {}
                try:
                    schedule = schedules.load(
                        record.definition, calendars={n: c.entries for n, c in exclusions.items()}
                    )
                except (RschedError, ValueError, KeyError, ArithmeticError):
                    continue  # the claim marks its jobs as invalid
                entries, digest = await p.store.reconciliation.inspect_occurrences(name)
                if entries and not _contiguous(entries, schedule):
                    p.saw(
                        "occurrences_wrong",
                        int(not p.write or await p.store.job_repair.drop_occurrences(name, digest=digest)),
                    )
                yield

    async def _keys(self, kind: KeyKind) -> AsyncIterator[list[str]]:
        cursor = -1
        while cursor:
            cursor, names = await self._pass.store.reconciliation.read_names(kind, cursor=max(cursor, 0))
            yield names


def _contiguous(entries: Sequence[tuple[str, int]], schedule: schedules.Schedule) -> bool:
    """Whether a calendar holds exactly the occurrences after its `from`."""
    (first, begins), *rest = entries
    ended = bool(rest) and rest[-1][0] == "end"
    at = [score for _, score in rest[: len(rest) - ended]]
    if first != "from" or any(name != str(score) for name, score in rest[: len(rest) - ended]):
        return False
    return schedule.upcoming(begins, len(at) + ended) == at
