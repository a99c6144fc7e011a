"""Verbs of the API on jobs and runs: put, pause, resume, remove, trigger, cancel, and reading what Redis has."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import Literal, NamedTuple

import msgspec

from rsched.core.ids import JobId, RunId, partition_of
from rsched.core.jobs.model import MisfirePolicy, Overlap
from rsched.core.jobs.packed import (
    FLAG_BACKFILL,
    OVERLAP_ANYWAY,
    JobHead,
    JobRecord,
    RunRecord,
    misfire_code,
    overlap_code,
    pack_note,
    unpack_head,
    unpack_job,
    unpack_run,
)
from rsched.core.schedule.misfire import NOTHING_MISSED, MisfireOutcome, SkippedRange
from rsched.core.states import JobState
from rsched.store.base import Base, tags
from rsched.store.scripts import Value

Keep = Literal["keep"]
KEEP: Keep = "keep"


class PutItem(NamedTuple):
    """expect: 0 where no such job may exist yet, else its present version. due: ms, None for none,
    KEEP to leave it as it is (then the job must still be in the state that value says).
    """

    job: JobId
    expect: int
    due: int | Keep | None
    value: bytes


# Ranges of one backfill come up for payment at this pace.
BACKFILL_PER_S = 10


class PutReply(NamedTuple):
    """tags, one an item: ok, exists, conflict, deleted, missing, full. ok: whether anything was written."""

    ok: bool
    now: int
    journal_id: str | None
    tags: list[str]


class VerbReply(NamedTuple):
    """journal_id: the entry in the definitions stream that records the change, None where nothing changed."""

    tag: str
    now: int
    journal_id: str | None
    version: int


class TriggerReply(NamedTuple):
    tag: str
    now: int
    journal_id: str | None
    run: RunId | None


class Exclusions(NamedTuple):
    """A team's calendar: dates and date ranges, as ScheduleSpec.exclude has them."""

    version: int
    entries: list[str]


class JobVerbs(Base):
    async def put(self, items: Sequence[PutItem], *, atomic: bool) -> PutReply:
        """Writes definitions; with atomic all of them or none."""
        group = [(i.job, i.expect, "" if i.due is None else i.due, i.value) for i in items]
        reply = await self._call("put", group, atomic=int(atomic))
        if reply[0] == "refused":
            return PutReply(False, reply[1], None, tags(reply[2]))
        journal_id = reply[2].decode() or None
        return PutReply(journal_id is not None, reply[1], journal_id, tags(reply[3]))

    async def get_job(self, job: JobId) -> JobRecord | JobHead | None:
        """The job as Redis has it; its head alone where it was deleted (the tombstone)."""
        p = partition_of(job)
        value = await self._redis(self.client.hget(self.keys.jobs(p), job))
        if value is None:
            return None
        head = unpack_head(value)
        if head.state is JobState.DELETED:
            return head
        if value.endswith(b"\n"):
            value += await self._redis(self.client.hget(self.keys.body(p), job)) or b""
        return unpack_job(value)

    async def get_jobs(self, jobs: Sequence[JobId]) -> dict[JobId, JobRecord | JobHead | Exception]:
        """As get_job of each that is there, in one round trip; in place of one that cannot be read, why."""
        pipe = self.client.pipeline(transaction=False)
        for job in jobs:
            pipe.hget(self.keys.jobs(partition_of(job)), job)
            pipe.hget(self.keys.body(partition_of(job)), job)
        found = await self._redis(pipe.execute())
        out: dict[JobId, JobRecord | JobHead | Exception] = {}
        for job, value, body in zip(jobs, found[::2], found[1::2], strict=True):
            if value is None:
                continue
            try:
                head = unpack_head(value)
                whole = value + (body or b"") if value.endswith(b"\n") else value
                out[job] = head if head.state is JobState.DELETED else unpack_job(whole)
            except (ValueError, KeyError) as error:
                out[job] = error
        return out

    async def dues(self, jobs: Sequence[JobId]) -> dict[JobId, int]:
        """When (ms) each of the jobs is next due; those that are not due at all are left out."""
        pipe = self.client.pipeline(transaction=False)
        for job in jobs:
            pipe.zscore(self.keys.due(partition_of(job)), job)
        found = await self._redis(pipe.execute()) if jobs else []
        return {job: int(due) for job, due in zip(jobs, found, strict=True) if due is not None}

    async def pending_refreshes(self) -> list[tuple[str, str, str]]:
        """(team, name, version) of calendars that changed and whose jobs are still to be refreshed."""
        found = await self._redis(self.client.hkeys(self.keys.refreshes))
        return [(t, n, v) for t, n, v in (f.decode().split("/") for f in found)]

    async def refreshed(self, team: str, name: str, version: str) -> None:
        await self._redis(self.client.hdel(self.keys.refreshes, f"{team}/{name}/{version}"))

    async def get_head(self, job: JobId) -> JobHead | None:
        """The head of the job, whatever its body."""
        value = await self._redis(self.client.hget(self.keys.jobs(partition_of(job)), job))
        return None if value is None else unpack_head(value)

    async def get_run(self, run: RunId) -> RunRecord | None:
        """A run that is not final."""
        record = await self._redis(self.client.hget(self.keys.runs, run))
        return None if record is None else unpack_run(record.decode())

    async def _verb(self, verb: str, group: Sequence[Sequence[Value]] = (), **scalars: Value) -> VerbReply:
        reply = await self._call(verb, group, **scalars)
        tag, now = reply[0], reply[1]
        if tag in ("ok", "cancelling"):
            return VerbReply(tag, now, reply[2].decode(), int(reply[3]) if len(reply) > 3 else 0)
        return VerbReply(tag, now, None, int(reply[2]) if len(reply) > 2 else 0)

    async def pause(
        self,
        job: JobId,
        *,
        expect: int = 0,
        until: int | None = None,
        missed: MisfirePolicy | None = None,
        note: str = "",
    ) -> VerbReply:
        """until: when (ms) it resumes by itself, with `missed` for what it missed. tags: ok, already, missing, conflict,
        completed.
        """
        return await self._verb(
            "pause",
            job=job,
            expect=expect,
            ends="" if until is None else until,
            missed=misfire_code(missed) if missed is not None else "",
            note=pack_note(note),
        )

    async def resume(
        self, job: JobId, *, expect: int, due: int | None, missed: MisfireOutcome = NOTHING_MISSED
    ) -> VerbReply:
        """due was computed from version `expect`. tags as of pause."""
        skipped = missed.skipped or SkippedRange(0, 0, 0)
        start, end = missed.catch_up or ("", "")
        return await self._verb(
            "resume",
            [(t,) for t in missed.ahead],
            job=job,
            expect=expect,
            due="" if due is None else due,
            first=skipped.first,
            last=skipped.last,
            count=skipped.total,
            run_at="" if missed.run_at is None else missed.run_at,
            **{"from": start, "to": end},
        )

    async def backfill(
        self, job: JobId, *, schedule_version: int, ranges: Sequence[tuple[int, int]], counts: Sequence[int] = ()
    ) -> VerbReply:
        """Owes the occurrences of these ranges (ms, both ends occurrences), of which there are `counts`. tags: ok, missing,
        conflict, inactive.
        """
        before = accumulate(counts or [0] * len(ranges), initial=0)
        group = [(start, end, n * 1000 // BACKFILL_PER_S) for (start, end), n in zip(ranges, before, strict=False)]
        reply = await self._call("backfill", group, job=job, schedule_version=schedule_version, flags=FLAG_BACKFILL)
        return VerbReply(reply[0], reply[1], reply[2].decode() if reply[0] == "ok" else None, 0)

    async def put_calendar(self, team: str, name: str, *, expect: int, entries: Sequence[str] | None) -> VerbReply:
        """A team's calendar, over version `expect` (0: none yet); None deletes it. tags: ok, missing, conflict."""
        body = b"" if entries is None else msgspec.msgpack.encode(list(entries))
        return await self._verb("put_calendar", team=team, name=name, expect=expect, body=body)

    async def get_calendar(self, team: str, names: Iterable[str]) -> dict[str, Exclusions]:
        """The team's calendars of these names that there are."""
        wanted = sorted(names)
        if not wanted:
            return {}
        found = await self._redis(self.client.hmget(self.keys.calendars, [f"{team}/{n}" for n in wanted]))
        out = {}
        for name, value in zip(wanted, found, strict=True):
            version, _, body = (value or b"").partition(b"\n")
            if body:
                out[name] = Exclusions(int(version), msgspec.msgpack.decode(body, type=list[str]))
        return out

    async def remove(self, job: JobId, *, expect: int = 0) -> VerbReply:
        """tags: ok, missing, conflict."""
        return await self._verb("remove", job=job, expect=expect)

    async def invalidate(self, job: JobId, *, schedule_version: int) -> VerbReply:
        """Sets a job whose schedule cannot be computed aside as invalid. tags: ok, stale."""
        return await self._verb("invalidate", job=job, schedule_version=schedule_version)

    async def trigger(
        self,
        job: JobId,
        *,
        suffix: str,
        repeat_key: str,
        overlap: Overlap | None = None,
        payload: bytes | None = None,
    ) -> TriggerReply:
        """overlap: instead of the job's policy; payload (msgpack): instead of the job's. tags: ok, already (the run of an
        earlier call with the same repeat_key), missing, completed, untracked (the job's runs are not judged by a policy).
        """
        letter = "" if overlap is None else overlap_code(overlap) or OVERLAP_ANYWAY
        reply = await self._call(
            "trigger", job=job, suffix=suffix, repeat_key=repeat_key, overlap=letter, payload=payload or b""
        )
        if reply[0] in ("ok", "already"):
            return TriggerReply(reply[0], reply[1], reply[2].decode() or None, RunId(reply[3].decode()))
        return TriggerReply(reply[0], reply[1], None, None)

    async def cancel(self, run: RunId) -> VerbReply:
        """tags: ok, cancelling (its worker was asked to stop it), missing."""
        return await self._verb("cancel", run=run)
