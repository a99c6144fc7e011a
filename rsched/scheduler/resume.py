"""Pauses that end by themselves. Any scheduler does it; it needs no ownership."""

from __future__ import annotations

import logging

from rsched.core.errors import Rejected
from rsched.core.ids import JobId
from rsched.core.jobs.packed import JobRecord, misfire_policy_of
from rsched.core.schedule.misfire import resolve_resumed
from rsched.core.schedule.schedule import Schedule
from rsched.core.states import JobState
from rsched.scheduler.ports import ResumeStore
from rsched.scheduler.schedules import Schedules

_PAGE = 200
_PUT_OFF_MS = 60_000


class Resumer:
    """Resumes jobs whose pause has ended."""

    def __init__(self, store: ResumeStore, *, log: logging.Logger) -> None:
        self._store, self._log = store, log
        self._schedules = Schedules(store, log=log)

    async def step(self) -> bool:
        """Resumes the jobs whose pause has ended, up to a page; more: it was full and some were resumed."""
        jobs = await self._store.pauses.list_ended(limit=_PAGE)
        # What was missed is judged late at the end of a pause, and a clock that stepped may end it too soon.
        if not jobs or self._store.clock.stepped_recently:
            return False
        found = await self._schedules.of_all(jobs, state=JobState.PAUSED)
        resumed = 0
        for job, (record, schedule) in found.items():
            resumed += await self._resume(job, record, schedule)
        # Of no paused job: out of the way of the others, until the reconciler has looked.
        await self._store.pauses.postpone([job for job in jobs if job not in found], by_ms=_PUT_OFF_MS)
        if resumed:
            self._log.info("pauses have ended: %d", resumed)
        return resumed > 0 and len(jobs) == _PAGE

    async def _resume(self, job: JobId, record: JobRecord, schedule: Schedule) -> bool:
        """False where the job was changed meanwhile: it is looked at again."""
        head = record.head
        if not head.until or head.until > self._store.clock.now_ms():
            return False
        policy = misfire_policy_of(head.missed) if head.missed else None
        try:
            due, missed = resolve_resumed(head, schedule, policy, now=self._store.clock.now_ms())
            reply = await self._store.jobs.resume(job, expect=head.version, due=due, missed=missed)
        except (Rejected, ValueError, ArithmeticError) as error:
            await self._schedules.invalidate(job, error)
            return False
        return reply.tag == "ok"
