"""Jobs: to create, read, change and delete them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, Unpack

from rsched.client.aio.connection import AsyncConnection
from rsched.client.bodies import JobFilter, JobOptions, given, job_body, patch_body, plain, spec_body
from rsched.client.request import delete, get, job_path, of_job, patch, post, put
from rsched.client.views import Created, Page
from rsched.core.answers import JobView
from rsched.core.errors import invalid
from rsched.core.jobs.model import Ack, JobSpec


class AsyncJobs:
    """The part of a client that is about jobs."""

    _connection: AsyncConnection

    async def create_job(
        self,
        name: str | None = None,
        *,
        spec: JobSpec | Mapping[str, Any] | None = None,
        idempotency_key: str | None = None,
        ack: Ack | None = None,
        **options: Unpack[JobOptions],
    ) -> JobView:
        """Creates a job: `await client.create_job("nightly", cron="0 2 * * *", timezone="Asia/Kolkata", url="https://...")`.

        With an idempotency key of your own a repeat of this call, even from another process, gives the same job.

        Args:
            name: Unique in the team; a job without one is found by its id alone.
            spec: The whole definition at once, in place of options.
            idempotency_key: What makes a repeat known; by default a new one for each call.
            ack: Where the job has to be before the call returns; by default in Postgres.
            **options: The schedule, the target and the policies; see JobOptions.

        Returns:
            The job, with what in its schedule may not be meant (`warnings`).

        Raises:
            Conflict: The team has a job of this name.
            Invalid: A field is wrong; `errors` names each.
        """
        body = job_body(name, spec, options)
        return await self._connection.call(post("/v1/jobs", body, query={"ack": ack}, key=idempotency_key), JobView)

    async def create_jobs(
        self,
        specs: Sequence[JobSpec | Mapping[str, Any]],
        *,
        idempotency_key: str | None = None,
        ack: Ack | None = None,
    ) -> list[JobView]:
        """Creates up to 10,000 jobs, all or none.

        Args:
            specs: The whole definitions.
            idempotency_key: What makes a repeat known; by default a new one for each call.
            ack: Where the jobs have to be before the call returns; by default in Postgres.

        Returns:
            The jobs, in the order of specs.

        Raises:
            Conflict: A name is taken; `errors` names it as `jobs[17].name`.
            Invalid: A field is wrong; `errors` names each.
        """
        body = {"jobs": [spec_body(spec) for spec in specs]}
        request = post("/v1/jobs:batch", body, query={"ack": ack}, key=idempotency_key)
        return (await self._connection.call(request, Created)).items

    async def replace_job(
        self,
        job: str,
        *,
        spec: JobSpec | Mapping[str, Any] | None = None,
        if_match: int | None = None,
        ack: Ack | None = None,
        **options: Unpack[JobOptions],
    ) -> JobView:
        """Replaces the whole definition of a job; under a name that is free it creates one.

        Args:
            job: A job_id, or a name in `team`.
            spec: The whole definition at once, in place of options.
            if_match: The version that was seen; the job is replaced only while it has this one.
            ack: Where the change has to be before the call returns; by default in Postgres.
            **options: The schedule, the target and the policies; what is left out gets its default.

        Raises:
            VersionConflict: The job has another version than if_match.
            Invalid: A field is wrong; `errors` names each.
        """
        body = job_body(None, spec, options)
        return await self._connection.call(
            put(job_path(job), body, query=of_job(body.get("team"), ack), if_match=if_match), JobView
        )

    async def update_job(
        self,
        job: str,
        *,
        changes: Mapping[str, Any] | None = None,
        if_match: int | None = None,
        ack: Ack | None = None,
        **options: Unpack[JobOptions],
    ) -> JobView:
        """Changes some fields of a job and leaves the others: `await client.update_job("nightly", cron="0 3 * * *")`.

        Objects (schedule, target, payload, kwargs...) are merged member by member, lists are replaced. A kind of schedule or
        target that is given takes the place of another kind.

        Args:
            job: A job_id, or a name in `team`.
            changes: A JSON merge patch (RFC 7396) in place of options; in it None takes a field away, or sets its default.
            if_match: The version that was seen; the job is changed only while it has this one.
            ack: Where the change has to be before the call returns; by default in Postgres.
            **options: What changes; see JobOptions. None takes a field away, or sets its default. team says whose name it is;
                the team of a job cannot change.

        Raises:
            NotFound: There is no such job.
            VersionConflict: The job has another version than if_match.
            Invalid: A field is wrong, or cannot change; `errors` names each.
        """
        team = options.pop("team", None)
        if changes is not None and options:
            raise invalid("changes", f"is given, and {', '.join(options)} too; write it in one of the two ways")
        body = patch_body(options) if changes is None else plain(changes, "changes")
        return await self._connection.call(
            patch(job_path(job), body, query=of_job(team, ack), if_match=if_match), JobView
        )

    async def get_job(self, job: str, *, team: str | None = None) -> JobView:
        """Reads one job, with how many of its occurrences made no run.

        Args:
            job: A job_id, or a name in `team`.
            team: Whose name it is, by default the team `default`.

        Raises:
            NotFound: There is no such job.
        """
        return await self._connection.call(get(job_path(job), {"team": team}), JobView)

    async def list_jobs(self, **filters: Unpack[JobFilter]) -> AsyncIterator[JobView]:
        """Reads all jobs that match, page by page as you go on.

        Args:
            **filters: Which jobs; see JobFilter.
        """
        cursor: str | None = None
        while True:
            page = await self.list_jobs_page(cursor=cursor, **filters)
            for job in page.items:
                yield job
            cursor = page.next_cursor
            if cursor is None:
                return

    async def list_jobs_page(
        self, *, cursor: str | None = None, limit: int = 100, **filters: Unpack[JobFilter]
    ) -> Page[JobView]:
        """Reads one page of the jobs that match.

        Args:
            cursor: next_cursor of the page before; None for the first page.
            limit: At most so many jobs, 1 to 1000.
            **filters: Which jobs; see JobFilter.
        """
        query: dict[str, str | int | None] = {"cursor": cursor, "limit": limit}
        request = get("/v1/jobs", {**given(filters), **query})
        return await self._connection.call(request, Page[JobView])

    async def delete_job(
        self, job: str, *, team: str | None = None, if_match: int | None = None, ack: Ack | None = None
    ) -> None:
        """Deletes a job: what has not started is withdrawn, a running attempt ends by itself, the history stays.

        Args:
            job: A job_id, or a name in `team`.
            team: Whose name it is, by default the team `default`.
            if_match: The version that was seen; the job is deleted only while it has this one.
            ack: Where the change has to be before the call returns; by default in Postgres.

        Raises:
            NotFound: There is no such job.
            VersionConflict: The job has another version than if_match.
        """
        await self._connection.send(delete(job_path(job), query=of_job(team, ack), if_match=if_match))
