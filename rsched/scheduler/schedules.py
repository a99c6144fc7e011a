"""The schedule of a stored job; a job whose definition or schedule cannot be read is quarantined and stops nobody else."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from rsched.core.errors import Rejected
from rsched.core.ids import JobId
from rsched.core.jobs.packed import JobHead, JobRecord
from rsched.core.schedule.schedule import Schedule, calendar_names, load
from rsched.core.states import JobState
from rsched.scheduler.ports import ScheduleStore

_UNREADABLE = (ValueError, KeyError, ArithmeticError, Rejected)


class Schedules:
    """quarantined: how many jobs it has quarantined so far."""

    def __init__(self, store: ScheduleStore, *, log: logging.Logger) -> None:
        self._store, self._log = store, log
        self.quarantined = 0

    async def of_all(
        self, jobs: Sequence[JobId], *, state: JobState = JobState.ACTIVE
    ) -> dict[JobId, tuple[JobRecord, Schedule]]:
        """Those of the jobs that are in that state and can be read; the others were quarantined just now."""
        found: dict[JobId, tuple[JobRecord, Schedule]] = {}
        for job, record in (await self._store.jobs.get_many(jobs)).items():
            if isinstance(record, Exception):
                await self.invalidate(job, record)
                continue
            if isinstance(record, JobHead) or record.head.state is not state:
                continue
            try:
                found[job] = record, await self._load(record)
            except _UNREADABLE as error:
                await self.invalidate(job, error)
        return found

    async def _load(self, record: JobRecord) -> Schedule:
        names = calendar_names(record.definition)
        if not names:
            return load(record.definition)
        calendars = await self._store.calendars.get_many(record.definition.team, names)
        return load(record.definition, calendars={n: c.entries for n, c in calendars.items()})

    async def invalidate(self, job: JobId, error: Exception) -> None:
        """Marks the job as invalid, unless it was changed meanwhile or does not run anyway."""
        head = await self._store.jobs.get_head(job)
        if (
            head is not None
            and (await self._store.jobs.invalidate(job, schedule_version=head.schedule_version)).tag == "ok"
        ):
            self.quarantined += 1
            self._store.connection.metrics.alert("job_invalid")
            self._log.error("job quarantined as invalid: %s", error, extra={"fields": {"job": job}})
