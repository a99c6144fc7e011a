"""The client for programs without an event loop."""

from __future__ import annotations

import ssl
from collections.abc import Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Unpack

import msgspec

from rsched.client.bodies import JobOptions, job_body, spec_body
from rsched.client.calls import decode, job_path, run_path
from rsched.client.control import Control
from rsched.client.transport import Transport
from rsched.client.views import Created, ForecastView, Page, Preview
from rsched.core.answers import JobView, RunView
from rsched.core.errors import RschedError
from rsched.core.jobs.model import Ack, JobSpec, ScheduleSpec
from rsched.runtime.clock import Clock, SystemClock

_PAGE = 100


class Client(Control):
    """The API as methods. Thread-safe; keeps its connections, so make one and share it.

    A `job` is named by its job_id, or by its name and `team`. Every method raises the classes of rsched.core.errors:
    Invalid (with `errors`, one per field), NotFound, Conflict, VersionConflict, TooLarge, and Unavailable once retry_for_s
    is over. A success is durable: it survives the loss of Redis, unless ack="redis" asked for a faster one that does not.
    """

    def __init__(
        self,
        base_url: str = "http://127.0.0.1:8080",
        *,
        timeout_s: float = 10,
        retry_for_s: float = 30,
        headers: Mapping[str, str] | None = None,
        ssl_context: ssl.SSLContext | None = None,
        clock: Clock | None = None,
    ) -> None:
        """timeout_s: for one try. retry_for_s: how long to try again what may pass; 0 for a single try."""
        self._transport = Transport(
            base_url,
            timeout_s=timeout_s,
            retry_for_s=retry_for_s,
            headers=headers or {},
            ssl_context=ssl_context,
            clock=clock or SystemClock(),
        )

    def __enter__(self) -> Client:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        self._transport.close()

    def create_job(
        self,
        name: str | None = None,
        *,
        idempotency_key: str | None = None,
        ack: Ack | None = None,
        **options: Unpack[JobOptions],
    ) -> JobView:
        """Creates a job: `client.create_job("nightly", cron="0 2 * * *", timezone="Asia/Kolkata", url="https://...")`.

        With an idempotency_key of your own a repeat of this call, even from another process, gives the same job.
        Conflict where the team has a job of this name.
        """
        return self.create_spec(job_body(name, options), idempotency_key=idempotency_key, ack=ack)

    def create_spec(
        self, spec: JobSpec | Mapping[str, Any], *, idempotency_key: str | None = None, ack: Ack | None = None
    ) -> JobView:
        """Creates a job from a whole definition, as JSON has it."""
        return self._post("/v1/jobs", JobView, body=spec_body(spec), key=idempotency_key, ack=ack)

    def create_jobs(
        self,
        specs: Sequence[JobSpec | Mapping[str, Any]],
        *,
        idempotency_key: str | None = None,
        ack: Ack | None = None,
    ) -> list[JobView]:
        """Creates up to 10,000 jobs, all or none, and gives them in order. Invalid and Conflict name `jobs[17].name`."""
        body = {"jobs": [spec_body(spec) for spec in specs]}
        return self._post("/v1/jobs:batch", Created, body=body, key=idempotency_key, ack=ack).items

    def put_job(
        self, name: str, *, if_match: int | None = None, ack: Ack | None = None, **options: Unpack[JobOptions]
    ) -> JobView:
        """Creates the job of this name, or replaces its whole definition. VersionConflict when not at version if_match."""
        return self.put_spec(name, job_body(None, options), if_match=if_match, team=options.get("team"), ack=ack)

    def put_spec(
        self,
        job: str,
        spec: JobSpec | Mapping[str, Any],
        *,
        if_match: int | None = None,
        team: str | None = None,
        ack: Ack | None = None,
    ) -> JobView:
        """put_job with a whole definition."""
        headers = {} if if_match is None else {"If-Match": f'"{if_match}"'}
        raw = msgspec.json.encode(spec_body(spec))
        query = {"team": team, "ack": ack}
        answer = self._transport.request("PUT", job_path(job), query=query, body=raw, headers=headers)
        return decode(answer, JobView)

    def get_job(self, job: str, *, team: str | None = None) -> JobView:
        return self._get(job_path(job), JobView, team=team)

    def list_jobs(
        self,
        *,
        team: str | None = None,
        state: str | None = None,
        name: str | None = None,
        tag: str | None = None,
        q: str | None = None,
    ) -> Iterator[JobView]:
        """All jobs that match, fetched page by page as you go. q: a part of the name."""
        cursor: str | None = None
        while True:
            page = self.jobs_page(team=team, state=state, name=name, tag=tag, q=q, cursor=cursor)
            yield from page.items
            cursor = page.next_cursor
            if cursor is None:
                return

    def jobs_page(
        self,
        *,
        team: str | None = None,
        state: str | None = None,
        name: str | None = None,
        tag: str | None = None,
        q: str | None = None,
        cursor: str | None = None,
        limit: int = _PAGE,
    ) -> Page[JobView]:
        """One page of list_jobs. limit: 1 to 1000."""
        query = {"team": team, "state": state, "name": name, "tag": tag, "q": q, "cursor": cursor, "limit": limit}
        return self._get("/v1/jobs", Page[JobView], **query)

    def delete_job(
        self, job: str, *, team: str | None = None, if_match: int | None = None, ack: Ack | None = None
    ) -> None:
        """Withdraws what has not started; a running attempt ends by itself."""
        headers = {} if if_match is None else {"If-Match": f'"{if_match}"'}
        self._transport.request("DELETE", job_path(job), query={"team": team, "ack": ack}, headers=headers)

    def runs(self, job: str, *, team: str | None = None, status: str | None = None) -> Iterator[RunView]:
        """The runs of a job, the latest first, fetched page by page as you go."""
        cursor: str | None = None
        while True:
            page = self.runs_page(job, team=team, status=status, cursor=cursor)
            yield from page.items
            cursor = page.next_cursor
            if cursor is None:
                return

    def runs_page(
        self,
        job: str,
        *,
        team: str | None = None,
        status: str | None = None,
        cursor: str | None = None,
        limit: int = _PAGE,
    ) -> Page[RunView]:
        """One page of runs. limit: 1 to 1000."""
        query = {"team": team, "status": status, "cursor": cursor, "limit": limit}
        return self._get(job_path(job, "/runs"), Page[RunView], **query)

    def run(self, run_id: str) -> RunView:
        """One run, with its attempts."""
        return self._get(run_path(run_id), RunView)

    def cancel_run(self, run_id: str, *, ack: Ack | None = None) -> RunView:
        """Cancels what has not started; a running attempt is asked to stop. Conflict when it has ended."""
        return self._post(run_path(run_id) + "/cancel", RunView, ack=ack)

    def preview(
        self,
        schedule: ScheduleSpec | Mapping[str, Any] | Sequence[ScheduleSpec | Mapping[str, Any]],
        *,
        start: str | None = None,
        count: int = 10,
        team: str | None = None,
        name: str | None = None,
    ) -> Preview:
        """When a schedule, or several as one, would run: the first `count` occurrences after `start` (RFC 3339; by default
        now). team, name: the job's, for H and the team's calendars.
        """
        field = "schedules" if isinstance(schedule, Sequence) else "schedule"
        given = {"from": start, "team": team, "name": name}
        body = {
            field: msgspec.to_builtins(schedule),
            "count": count,
            **{k: v for k, v in given.items() if v is not None},
        }
        return self._post("/v1/schedules:preview", Preview, body=body)

    def forecast(self, *, hours: int = 24, team: str | None = None) -> ForecastView:
        """Runs per minute to come, of all teams or one."""
        return self._get("/v1/forecast", ForecastView, hours=hours, team=team)

    def ready(self) -> bool:
        """Whether the whole deployment can take and run jobs."""
        try:
            return self._transport.request("GET", "/readyz").status == 200
        except RschedError:
            return False
