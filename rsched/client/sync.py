"""The client for programs without an event loop."""

from __future__ import annotations

import secrets
import ssl
from collections.abc import Iterator, Mapping
from types import TracebackType
from typing import Any, TypeVar, Unpack
from urllib.parse import quote

import msgspec

from rsched.client.bodies import JobOptions, job_body, spec_body
from rsched.client.transport import Answer, Transport
from rsched.client.views import Page, Preview
from rsched.core.errors import RschedError
from rsched.core.model import JobSpec, JobView, RunView, ScheduleSpec
from rsched.runtime.clock import Clock, SystemClock

T = TypeVar("T")
_PAGE = 100


class Client:
    """The API as methods. Thread-safe; keeps its connections, so make one and share it.

    A `job` is named by its job_id, or by its name and `team`. Every method raises the classes of rsched.core.errors:
    Invalid (with `errors`, one per field), NotFound, Conflict, VersionConflict, TooLarge, and Unavailable once retry_for_s
    is over. A success is durable: it survives the loss of Redis.
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
        self, name: str | None = None, *, idempotency_key: str | None = None, **options: Unpack[JobOptions]
    ) -> JobView:
        """Creates a job: `client.create_job("nightly", cron="0 2 * * *", timezone="Asia/Kolkata", url="https://...")`.

        With an idempotency_key of your own a repeat of this call, even from another process, gives the same job.
        Conflict where the team has a job of this name.
        """
        return self.create_spec(job_body(name, options), idempotency_key=idempotency_key)

    def create_spec(self, spec: JobSpec | Mapping[str, Any], *, idempotency_key: str | None = None) -> JobView:
        """Creates a job from a whole definition, as JSON has it."""
        return self._post("/v1/jobs", JobView, body=spec_body(spec), key=idempotency_key)

    def put_job(self, name: str, *, if_match: int | None = None, **options: Unpack[JobOptions]) -> JobView:
        """Creates the job of this name, or replaces its whole definition. VersionConflict when not at version if_match."""
        return self.put_spec(name, job_body(None, options), if_match=if_match, team=options.get("team"))

    def put_spec(
        self, job: str, spec: JobSpec | Mapping[str, Any], *, if_match: int | None = None, team: str | None = None
    ) -> JobView:
        """put_job with a whole definition."""
        headers = {} if if_match is None else {"If-Match": f'"{if_match}"'}
        raw = msgspec.json.encode(spec_body(spec))
        answer = self._transport.request("PUT", _job(job), query={"team": team}, body=raw, headers=headers)
        return _decode(answer, JobView)

    def get_job(self, job: str, *, team: str | None = None) -> JobView:
        return self._get(_job(job), JobView, team=team)

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

    def pause_job(self, job: str, *, team: str | None = None) -> JobView:
        """No occurrence runs until resume_job; those that pass meanwhile are recorded as skipped."""
        return self._post(_job(job, "/pause"), JobView, team=team)

    def resume_job(self, job: str, *, team: str | None = None) -> JobView:
        return self._post(_job(job, "/resume"), JobView, team=team)

    def trigger_job(self, job: str, *, team: str | None = None, idempotency_key: str | None = None) -> RunView:
        """Owes one manual run now, beside the schedule. A repeat with the same key gives the same run."""
        return self._post(_job(job, "/trigger"), RunView, team=team, key=idempotency_key)

    def delete_job(self, job: str, *, team: str | None = None, if_match: int | None = None) -> None:
        """Withdraws what has not started; a running attempt ends by itself."""
        headers = {} if if_match is None else {"If-Match": f'"{if_match}"'}
        self._transport.request("DELETE", _job(job), query={"team": team}, headers=headers)

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
        return self._get(_job(job, "/runs"), Page[RunView], **query)

    def run(self, run_id: str) -> RunView:
        """One run, with its attempts."""
        return self._get(_run(run_id), RunView)

    def cancel_run(self, run_id: str) -> RunView:
        """Cancels what has not started; a running attempt is asked to stop. Conflict when it has ended."""
        return self._post(_run(run_id) + "/cancel", RunView)

    def preview(
        self, schedule: ScheduleSpec | Mapping[str, Any], *, start: str | None = None, count: int = 10
    ) -> Preview:
        """When a schedule would run, the first `count` occurrences after `start` (RFC 3339; by default now)."""
        body = {"schedule": msgspec.to_builtins(schedule), "count": count, **({"from": start} if start else {})}
        return self._post("/v1/schedules:preview", Preview, body=body)

    def ready(self) -> bool:
        """Whether the whole deployment can take and run jobs."""
        try:
            return self._transport.request("GET", "/readyz").status == 200
        except RschedError:
            return False

    def _get(self, path: str, kind: type[T], **query: str | int | None) -> T:
        return _decode(self._transport.request("GET", path, query=query), kind)

    def _post(
        self,
        path: str,
        kind: type[T],
        *,
        body: Mapping[str, Any] | None = None,
        team: str | None = None,
        key: str | None = None,
    ) -> T:
        headers = {"Idempotency-Key": key or f"sdk-{secrets.token_hex(16)}"}
        raw = b"" if body is None else msgspec.json.encode(body)
        return _decode(self._transport.request("POST", path, query={"team": team}, body=raw, headers=headers), kind)


def _job(job: str, verb: str = "") -> str:
    return f"/v1/jobs/{quote(job, safe='')}{verb}"


def _run(run_id: str) -> str:
    return f"/v1/runs/{quote(run_id, safe=':')}"


def _decode(answer: Answer, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(answer.body, type=kind)
    except (msgspec.ValidationError, msgspec.DecodeError) as error:
        raise RschedError(f"the answer is not of this API ({error}); is the URL that of rsched?") from error
