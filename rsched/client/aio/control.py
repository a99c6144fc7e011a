"""What stops, starts and repeats schedules, of one job or of many."""

from __future__ import annotations

from typing import Any, Literal, Unpack

import msgspec

from rsched.client.aio.connection import AsyncConnection
from rsched.client.bodies import Instant, JobFilter, Length, given, json_value
from rsched.client.request import job_path, of_job, post
from rsched.client.views import BackfillView, BulkAnswer
from rsched.core.answers import JobView, RunView
from rsched.core.jobs.model import Ack, MisfirePolicy, Overlap


class AsyncControl:
    """The part of a client that controls schedules."""

    _connection: AsyncConnection

    async def pause_job(
        self,
        job: str,
        *,
        note: str | None = None,
        until: Instant | Length | None = None,
        missed: MisfirePolicy | None = None,
        team: str | None = None,
        if_match: int | None = None,
        ack: Ack | None = None,
    ) -> JobView:
        """Stops a job's schedule until it is resumed, or for a while. Of a paused job it changes note and end of the pause.

        Args:
            job: A job_id, or a name in `team`.
            note: Why.
            until: When the pause ends by itself: an instant to come, or how long from now.
            missed: What is done then about the occurrences that passed; by default those of a recurring job are skipped.
            team: Whose name it is, by default the team `default`.
            if_match: The version that was seen; the job is paused only while it has this one.
            ack: Where the change has to be before the call returns; by default in Postgres.

        Raises:
            NotFound: There is no such job.
            Conflict: The job has completed.
            VersionConflict: The job has another version than if_match.
        """
        body = given({"note": note, "until": until, "missed": missed})
        request = post(job_path(job, "/pause"), body, query=of_job(team, ack), if_match=if_match)
        return await self._connection.call(request, JobView)

    async def resume_job(
        self,
        job: str,
        *,
        missed: MisfirePolicy | None = None,
        team: str | None = None,
        if_match: int | None = None,
        ack: Ack | None = None,
    ) -> JobView:
        """Starts a paused job's schedule again.

        Args:
            job: A job_id, or a name in `team`.
            missed: What is done about the occurrences that passed meanwhile; by default what the pause said.
            team: Whose name it is, by default the team `default`.
            if_match: The version that was seen; the job is resumed only while it has this one.
            ack: Where the change has to be before the call returns; by default in Postgres.

        Raises:
            NotFound: There is no such job.
            Conflict: The job has completed, or its schedule cannot be computed.
            VersionConflict: The job has another version than if_match.
        """
        body = given({"missed": missed})
        request = post(job_path(job, "/resume"), body, query=of_job(team, ack), if_match=if_match)
        return await self._connection.call(request, JobView)

    async def trigger_job(
        self,
        job: str,
        *,
        payload: Any = msgspec.UNSET,
        overlap: Overlap | None = None,
        team: str | None = None,
        idempotency_key: str | None = None,
        ack: Ack | None = None,
    ) -> RunView:
        """Runs a job once now, beside its schedule. A repeat with the same key gives the same run.

        Args:
            job: A job_id, or a name in `team`.
            payload: For this run in place of the job's; None is a payload, too.
            overlap: For this run in place of the job's policy.
            team: Whose name it is, by default the team `default`.
            idempotency_key: What makes a repeat known; by default a new one for each call.
            ack: Where the run has to be before the call returns; by default in Postgres.

        Raises:
            NotFound: There is no such job.
            Conflict: An overlap policy is given where the job's own is allow.
        """
        body = given({"overlap": overlap})
        if payload is not msgspec.UNSET:
            body["payload"] = json_value(payload, "payload")
        request = post(job_path(job, "/trigger"), body, query=of_job(team, ack), key=idempotency_key)
        return await self._connection.call(request, RunView)

    async def backfill_job(
        self,
        job: str,
        *,
        start: Instant,
        end: Instant | None = None,
        dry_run: bool = False,
        team: str | None = None,
        ack: Ack | None = None,
    ) -> BackfillView:
        """Runs the occurrences of a past range that have no run. It is safe to repeat.

        Args:
            job: A job_id, or a name in `team`.
            start: The first instant that counts.
            end: The first that does not count any more, by default now.
            dry_run: Only say how many runs it would be.
            team: Whose name it is, by default the team `default`.
            ack: Where the change has to be before the call returns; by default in Postgres.

        Raises:
            NotFound: There is no such job.
            Conflict: The job is not active.
        """
        body = given({"from": start, "to": end, "dry_run": dry_run or None})
        return await self._connection.call(
            post(job_path(job, "/backfill"), body, query=of_job(team, ack)), BackfillView
        )

    async def pause_jobs(
        self,
        *,
        note: str | None = None,
        until: Instant | Length | None = None,
        missed: MisfirePolicy | None = None,
        all_jobs: bool = False,
        dry_run: bool = False,
        cursor: str | None = None,
        ack: Ack | None = None,
        **filters: Unpack[JobFilter],
    ) -> BulkAnswer:
        """Stops the schedules of the jobs that match, at most 1,000 a call.

        Args:
            note: Why.
            until: When the pause ends by itself: an instant to come, or how long from now.
            missed: What is done then about the occurrences that passed.
            all_jobs: Needed where no filter is given.
            dry_run: Only say which jobs it would be.
            cursor: next_cursor of the call before; call again with it until there is none.
            ack: Where the change has to be before the call returns; by default in Postgres.
            **filters: Which jobs; see JobFilter.
        """
        body = given({"note": note, "until": until, "missed": missed, "cursor": cursor})
        body |= _matching(filters, all_jobs=all_jobs, dry_run=dry_run)
        return await self._bulk("pause", body, ack)

    async def resume_jobs(
        self,
        *,
        missed: MisfirePolicy | None = None,
        all_jobs: bool = False,
        dry_run: bool = False,
        cursor: str | None = None,
        ack: Ack | None = None,
        **filters: Unpack[JobFilter],
    ) -> BulkAnswer:
        """Starts the schedules of the jobs that match again, at most 1,000 a call.

        Args:
            missed: What is done about the occurrences that passed meanwhile; by default what each pause said.
            all_jobs: Needed where no filter is given.
            dry_run: Only say which jobs it would be.
            cursor: next_cursor of the call before; call again with it until there is none.
            ack: Where the change has to be before the call returns; by default in Postgres.
            **filters: Which jobs; see JobFilter.
        """
        body = given({"missed": missed, "cursor": cursor})
        body |= _matching(filters, all_jobs=all_jobs, dry_run=dry_run)
        return await self._bulk("resume", body, ack)

    async def delete_jobs(
        self,
        *,
        all_jobs: bool = False,
        dry_run: bool = False,
        cursor: str | None = None,
        ack: Ack | None = None,
        **filters: Unpack[JobFilter],
    ) -> BulkAnswer:
        """Deletes the jobs that match, at most 1,000 a call.

        Args:
            all_jobs: Needed where no filter is given.
            dry_run: Only say which jobs it would be.
            cursor: next_cursor of the call before; call again with it until there is none.
            ack: Where the change has to be before the call returns; by default in Postgres.
            **filters: Which jobs; see JobFilter.
        """
        body = given({"cursor": cursor})
        body |= _matching(filters, all_jobs=all_jobs, dry_run=dry_run)
        return await self._bulk("delete", body, ack)

    async def _bulk(
        self, verb: Literal["pause", "resume", "delete"], body: dict[str, Any], ack: Ack | None
    ) -> BulkAnswer:
        return await self._connection.call(post(f"/v1/jobs:{verb}", body, query={"ack": ack}), BulkAnswer)


def _matching(filters: JobFilter, *, all_jobs: bool, dry_run: bool) -> dict[str, Any]:
    return {"filter": given(filters), "all": all_jobs, "dry_run": dry_run}
