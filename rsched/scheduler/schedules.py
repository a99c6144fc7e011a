"""The schedule of a stored job; a job whose definition or schedule cannot be read is set aside and stops nobody else."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from rsched.core.errors import Rejected
from rsched.core.ids import JobId
from rsched.core.packed import JobHead, JobRecord
from rsched.core.schedule import Schedule, calendar_names, load
from rsched.core.states import JobState
from rsched.store.store import Store

_UNREADABLE = (ValueError, KeyError, ArithmeticError, Rejected)


class Schedules:
    def __init__(self, store: Store, *, log: logging.Logger) -> None:
        self._store, self._log = store, log

    async def of(self, job: JobId, *, state: JobState = JobState.ACTIVE) -> tuple[JobRecord, Schedule] | None:
        """The job and its schedule; None where it is not in that state, or was set aside just now."""
        return (await self.of_all([job], state=state)).get(job)

    async def of_all(
        self, jobs: Sequence[JobId], *, state: JobState = JobState.ACTIVE
    ) -> dict[JobId, tuple[JobRecord, Schedule]]:
        """Those of the jobs that are in that state and can be read; the others were set aside just now."""
        found: dict[JobId, tuple[JobRecord, Schedule]] = {}
        for job, record in (await self._store.get_jobs(jobs)).items():
            if isinstance(record, Exception):
                await self.park(job, record)
                continue
            if isinstance(record, JobHead) or record.head.state is not state:
                continue
            try:
                found[job] = record, await self._load(record)
            except _UNREADABLE as error:
                await self.park(job, error)
        return found

    async def _load(self, record: JobRecord) -> Schedule:
        names = calendar_names(record.definition)
        if not names:
            return load(record.definition)
        calendars = await self._store.get_exclusions(record.definition.team, names)
        return load(record.definition, calendars={n: c.entries for n, c in calendars.items()})

    async def park(self, job: JobId, error: Exception) -> None:
        """Sets the job aside as invalid, unless it was changed meanwhile or does not run anyway."""
        head = await self._store.get_head(job)
        if head is not None and (await self._store.park(job, sv=head.sv)).tag == "ok":
            self._store.metrics.alert("job_invalid")
            self._log.error("job set aside as invalid: %s", error, extra={"fields": {"job": job}})
