"""Reading of jobs as Redis has them, which for the API and the schedulers is what counts.

Authority: none; every value is as old as its reply. A value that cannot be read is told as such where many are asked for, so that
one bad job stops nobody else's. Errors: Unavailable.
"""

from __future__ import annotations

from collections.abc import Sequence

from rsched.core.ids import JobId, partition_of
from rsched.core.jobs.packed import JobHead, JobRecord, unpack_head, unpack_job
from rsched.core.states import JobState
from rsched.store.connection import Part


class JobReads(Part):
    """Reads jobs, whole or in part."""

    async def get(self, job: JobId) -> JobRecord | JobHead | None:
        """Returns the job, its head alone where it was deleted (the tombstone), None where there is none.

        Raises:
            ValueError, KeyError: What Redis has of it is not a job.
        """
        keys, partition = self._redis.keys, partition_of(job)
        value = await self._redis.ask(self._redis.client.hget(keys.jobs(partition), job))
        if value is None:
            return None
        head = unpack_head(value)
        if head.state is JobState.DELETED:
            return head
        if value.endswith(b"\n"):
            value += await self._redis.ask(self._redis.client.hget(keys.body(partition), job)) or b""
        return unpack_job(value)

    async def get_many(self, jobs: Sequence[JobId]) -> dict[JobId, JobRecord | JobHead | Exception]:
        """Returns those of the jobs that there are, as `get` does, in one round trip.

        In place of a job that cannot be read stands the error that says why.
        """
        pipe = self._redis.pipeline()
        for job in jobs:
            pipe.hget(self._redis.keys.jobs(partition_of(job)), job)
            pipe.hget(self._redis.keys.body(partition_of(job)), job)
        replies = await self._redis.ask(pipe.execute())
        records: dict[JobId, JobRecord | JobHead | Exception] = {}
        for job, value, body in zip(jobs, replies[::2], replies[1::2], strict=True):
            if value is None:
                continue
            try:
                head = unpack_head(value)
                whole = value + (body or b"") if value.endswith(b"\n") else value
                records[job] = head if head.state is JobState.DELETED else unpack_job(whole)
            except (ValueError, KeyError) as error:
                records[job] = error
        return records

    async def get_head(self, job: JobId) -> JobHead | None:
        """Returns the head of a job, whatever its body, None where there is none."""
        value = await self._redis.ask(self._redis.client.hget(self._redis.keys.jobs(partition_of(job)), job))
        return None if value is None else unpack_head(value)

    async def get_due_times(self, jobs: Sequence[JobId]) -> dict[JobId, int]:
        """Returns when (ms) each of the jobs is next due; those that are not due at all are left out."""
        pipe = self._redis.pipeline()
        for job in jobs:
            pipe.zscore(self._redis.keys.due(partition_of(job)), job)
        scores = await self._redis.ask(pipe.execute()) if jobs else []
        return {job: int(due) for job, due in zip(jobs, scores, strict=True) if due is not None}

    async def read_heads(
        self, partition: int, *, cursor: int, count: int = 500
    ) -> tuple[int, list[tuple[JobId, bytes]]]:
        """Reads a page of a partition's jobs.

        Args:
            partition: Which one.
            cursor: 0 at first, then what the page before returned.
            count: About how many.

        Returns:
            The next cursor, 0 at the end, and (job, packed head) of each; a job may come twice.
        """
        following, page = await self._redis.ask(
            self._redis.client.hscan(self._redis.keys.jobs(partition), cursor, count=count)
        )
        return int(following), [(JobId(j.decode()), value.partition(b"\n")[0] + b"\n") for j, value in page.items()]

    async def read_packed(self, jobs: Sequence[JobId]) -> list[bytes | None]:
        """Reads the packed values of jobs, bodies over 1 KB left out; None for each that there is not."""
        pipe = self._redis.pipeline()
        for job in jobs:
            pipe.hget(self._redis.keys.jobs(partition_of(job)), job)
        return list(await self._redis.ask(pipe.execute())) if jobs else []
