"""Verbs of the API on jobs and runs: put, pause, resume, remove, trigger, cancel, and reading what Redis has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

from rsched.core.ids import JobId, RunId, partition_of
from rsched.core.packed import JobHead, JobRecord, RunRecord, unpack_head, unpack_job, unpack_run
from rsched.core.states import JobState
from rsched.store.base import Base, tags

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


class PutReply(NamedTuple):
    """tags, one an item: ok, exists, conflict, deleted, missing. ok: whether anything was written."""

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


class SkippedRange(NamedTuple):
    """total occurrences from first to last (ms, both included)."""

    total: int
    first: int
    last: int


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

    async def get_head(self, job: JobId) -> JobHead | None:
        """The head of the job, whatever its body."""
        value = await self._redis(self.client.hget(self.keys.jobs(partition_of(job)), job))
        return None if value is None else unpack_head(value)

    async def get_run(self, run: RunId) -> RunRecord | None:
        """A run that is not final."""
        record = await self._redis(self.client.hget(self.keys.runs, run))
        return None if record is None else unpack_run(record.decode())

    async def _verb(self, verb: str, **scalars: str | int) -> VerbReply:
        reply = await self._call(verb, (), **scalars)
        tag, now = reply[0], reply[1]
        if tag in ("ok", "cancelling"):
            return VerbReply(tag, now, reply[2].decode(), int(reply[3]) if len(reply) > 3 else 0)
        return VerbReply(tag, now, None, int(reply[2]) if len(reply) > 2 else 0)

    async def pause(self, job: JobId, *, expect: int = 0) -> VerbReply:
        """tags: ok, already, missing, conflict, completed."""
        return await self._verb("pause", job=job, expect=expect)

    async def resume(
        self, job: JobId, *, expect: int, due: int | None, missed: SkippedRange | None = None
    ) -> VerbReply:
        """due was computed from version `expect`; missed goes on record as skipped. tags as of pause."""
        skipped = missed or SkippedRange(0, 0, 0)
        return await self._verb(
            "resume",
            job=job,
            expect=expect,
            due="" if due is None else due,
            first=skipped.first,
            last=skipped.last,
            count=skipped.total,
        )

    async def remove(self, job: JobId, *, expect: int = 0) -> VerbReply:
        """tags: ok, missing, conflict."""
        return await self._verb("remove", job=job, expect=expect)

    async def park(self, job: JobId, *, sv: int) -> VerbReply:
        """Sets a job whose schedule cannot be computed aside as invalid. tags: ok, stale."""
        return await self._verb("park", job=job, sv=sv)

    async def trigger(self, job: JobId, *, suffix: str, repeat_key: str) -> TriggerReply:
        """tags: ok, already (the run of an earlier call with the same repeat_key), missing, completed."""
        reply = await self._call("trigger", job=job, suffix=suffix, repeat_key=repeat_key)
        if reply[0] in ("ok", "already"):
            return TriggerReply(reply[0], reply[1], reply[2].decode() or None, RunId(reply[3].decode()))
        return TriggerReply(reply[0], reply[1], None, None)

    async def cancel(self, run: RunId) -> VerbReply:
        """tags: ok, cancelling (its worker was asked to stop it), missing."""
        return await self._verb("cancel", run=run)
