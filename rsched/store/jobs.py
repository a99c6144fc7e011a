"""Jobs in Redis: their definitions, what people do with them, and reading them.

Authority: the definition's version. Each verb that changes a job takes the version it expects, so that of two callers one is told
`conflict`, and writes the entry of the definitions stream in the same step. Answers are tags, never errors: ShardClosed and
Unavailable are all that is raised.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Literal, NamedTuple

from rsched.core.ids import JobId, RunId
from rsched.core.jobs.model import MisfirePolicy, Overlap
from rsched.core.jobs.packed import (
    FLAG_BACKFILL,
    OVERLAP_ANYWAY,
    misfire_code,
    overlap_code,
    pack_note,
)
from rsched.core.schedule.misfire import NOTHING_MISSED, MisfireOutcome, SkippedRange
from rsched.store.connection import tags
from rsched.store.job_reads import JobReads
from rsched.store.replies import VerbReply, call_verb

Keep = Literal["keep"]
KEEP: Keep = "keep"
# Ranges of one backfill come up for their catch-up runs at this pace.
BACKFILL_PER_S = 10


class PutItem(NamedTuple):
    """A definition to write.

    Attributes:
        job: Its id.
        expect: 0 where no such job may exist yet, else its present version.
        due: When it is next due (ms), None for not at all, KEEP to leave that as it is (the job must then still be in the state
            that the value says).
        value: The packed job.
    """

    job: JobId
    expect: int
    due: int | Keep | None
    value: bytes


class PutReply(NamedTuple):
    """What became of definitions.

    Attributes:
        ok: Whether anything was written.
        now: Redis' time (ms).
        journal_id: The last entry of the definitions stream that records it, None where nothing was written.
        tags: One an item: ok, exists, conflict, deleted, missing, full.
    """

    ok: bool
    now: int
    journal_id: str | None
    tags: list[str]


class TriggerReply(NamedTuple):
    """What became of a trigger; `tag` as `Jobs.trigger` says, `now` in ms, `run` the run that it made or had made before."""

    tag: str
    now: int
    journal_id: str | None
    run: RunId | None


class Jobs(JobReads):
    """Writes, changes and reads jobs."""

    async def put(self, items: Sequence[PutItem], *, atomic: bool) -> PutReply:
        """Writes definitions.

        Args:
            items: The definitions.
            atomic: Whether to write all of them or none; without it each is written that can be.
        """
        group = [(i.job, i.expect, "" if i.due is None else i.due, i.value) for i in items]
        reply = await self._redis.call("put", group, atomic=int(atomic))
        if reply[0] == "refused":
            return PutReply(ok=False, now=reply[1], journal_id=None, tags=tags(reply[2]))
        journal_id = reply[2].decode() or None
        return PutReply(journal_id is not None, reply[1], journal_id, tags(reply[3]))

    async def pause(
        self,
        job: JobId,
        *,
        expect: int = 0,
        until: int | None = None,
        missed: MisfirePolicy | None = None,
        note: str = "",
    ) -> VerbReply:
        """Pauses a job, or changes how it is paused.

        Args:
            job: Its id.
            expect: The version it must have, 0 for any.
            until: When (ms) it resumes by itself, None for never.
            missed: What then becomes of what it missed, None for what its own policy says.
            note: Why it is paused, for people.

        Returns:
            Tags: ok, already, missing, conflict, completed.
        """
        return await call_verb(
            self._redis,
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
        """Resumes a paused job.

        Args:
            job: Its id.
            expect: The version that `due` and `missed` were computed from.
            due: When it is next due (ms), None for not any more.
            missed: What becomes of the occurrences that it missed.

        Returns:
            Tags as `pause` has them.
        """
        skipped = missed.skipped or SkippedRange(0, 0, 0)
        start, end = missed.catch_up or ("", "")
        return await call_verb(
            self._redis,
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
        """Makes catch-up ranges of past occurrences.

        Args:
            job: Its id.
            schedule_version: The version of the schedule that has these occurrences.
            ranges: First and last occurrence of each range (ms).
            counts: How many occurrences each range has, as far as known: later ranges come up the later, the more there are.

        Returns:
            Tags: ok, missing, conflict, inactive.
        """
        before = accumulate(counts or [0] * len(ranges), initial=0)
        group = [(start, end, n * 1000 // BACKFILL_PER_S) for (start, end), n in zip(ranges, before, strict=False)]
        reply = await self._redis.call(
            "backfill", group, job=job, schedule_version=schedule_version, flags=FLAG_BACKFILL
        )
        return VerbReply(reply[0], reply[1], reply[2].decode() if reply[0] == "ok" else None, 0)

    async def trigger(
        self,
        job: JobId,
        *,
        suffix: str,
        repeat_key: str,
        overlap: Overlap | None = None,
        payload: bytes | None = None,
    ) -> TriggerReply:
        """Makes a run of a job by hand.

        Args:
            job: Its id.
            suffix: What makes the run's id unique within one millisecond.
            repeat_key: The hash of an idempotency key, "" for none.
            overlap: What applies instead of the job's own overlap policy.
            payload: What the run gets instead of the job's payload (msgpack).

        Returns:
            Tags: ok, already (the run of an earlier call with the same repeat_key), missing, completed, untracked (the job's runs
            are not judged by an overlap policy).
        """
        letter = "" if overlap is None else overlap_code(overlap) or OVERLAP_ANYWAY
        reply = await self._redis.call(
            "trigger", job=job, suffix=suffix, repeat_key=repeat_key, overlap=letter, payload=payload or b""
        )
        if reply[0] in ("ok", "already"):
            return TriggerReply(reply[0], reply[1], reply[2].decode() or None, RunId(reply[3].decode()))
        return TriggerReply(reply[0], reply[1], None, None)

    async def remove(self, job: JobId, *, expect: int = 0) -> VerbReply:
        """Deletes a job and leaves its tombstone.

        Args:
            job: Its id.
            expect: The version it must have, 0 for any.

        Returns:
            Tags: ok, missing, conflict.
        """
        return await call_verb(self._redis, "remove", job=job, expect=expect)

    async def invalidate(self, job: JobId, *, schedule_version: int) -> VerbReply:
        """Marks a job as invalid whose schedule cannot be computed.

        Args:
            job: Its id.
            schedule_version: The version of the schedule that cannot be computed.

        Returns:
            Tags: ok, stale.
        """
        return await call_verb(self._redis, "invalidate", job=job, schedule_version=schedule_version)

    async def forget(self, items: Sequence[tuple[JobId, int]]) -> int:
        """Drops completed and deleted jobs, given with exactly their versions, and returns how many were there."""
        return int((await self._redis.call("forget", items))[2])
