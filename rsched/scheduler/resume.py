"""Pauses that end by themselves."""

from __future__ import annotations

import logging

from rsched.core.errors import Rejected
from rsched.core.ids import JobId
from rsched.core.misfire import settle_resumed
from rsched.core.packed import misfire_policy_of
from rsched.core.states import JobState
from rsched.scheduler.schedules import Schedules
from rsched.store.store import Store


class Resumer:
    def __init__(self, store: Store, schedules: Schedules, *, log: logging.Logger) -> None:
        self._store, self._schedules, self._log = store, schedules, log

    async def resume(self, job: JobId, *, now: int) -> None:
        """Resumes a paused job whose pause ends at or before now (ms); one that was changed meanwhile is left alone."""
        found = await self._schedules.of(job, state=JobState.PAUSED)
        if found is None:
            return
        record, schedule = found
        head = record.head
        if not head.until or head.until > now:
            return
        policy = misfire_policy_of(head.missed) if head.missed else None
        try:
            due, missed = settle_resumed(head, schedule, policy, now=now)
            reply = await self._store.resume(job, expect=head.version, due=due, missed=missed)
        except (Rejected, ValueError, ArithmeticError) as error:
            await self._schedules.park(job, error)
            return
        self._log.info("a pause has ended: %s", reply.tag, extra={"fields": {"job": job}})
