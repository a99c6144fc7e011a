"""The schedule of a stored job; a job whose definition or schedule cannot be read is set aside and stops nobody else."""

from __future__ import annotations

import logging

from rsched.core.errors import Rejected
from rsched.core.ids import JobId
from rsched.core.packed import JobHead, JobRecord
from rsched.core.schedule import Schedule, load
from rsched.core.states import JobState
from rsched.store.store import Store


class Schedules:
    def __init__(self, store: Store, *, log: logging.Logger) -> None:
        self._store, self._log = store, log

    async def of(self, job: JobId) -> tuple[JobRecord, Schedule] | None:
        """The job and its schedule; None where it is not active, or was set aside just now."""
        try:
            record = await self._store.get_job(job)
            if record is None or isinstance(record, JobHead) or record.head.state is not JobState.ACTIVE:
                return None
            definition = record.definition
            return record, load(definition)
        except (ValueError, KeyError, ArithmeticError, Rejected) as error:
            await self.park(job, error)
            return None

    async def park(self, job: JobId, error: Exception) -> None:
        """Sets the job aside as invalid."""
        head = await self._store.get_head(job)
        if head is not None:
            await self._store.park(job, sv=head.sv)
        self._log.error("job set aside as invalid: %s", error, extra={"fields": {"job": job}})
