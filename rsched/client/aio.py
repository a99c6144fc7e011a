"""The client for programs with an event loop: the sync one in threads, so that both behave the same."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from functools import partial
from types import TracebackType
from typing import Any, TypeVar, Unpack

import anyio
import anyio.to_thread

from rsched.client.aio_control import AsyncControl
from rsched.client.bodies import JobOptions
from rsched.client.sync import Client
from rsched.client.views import ForecastView, Page, Preview
from rsched.core.answers import JobView, RunView
from rsched.core.jobs.model import Ack, JobSpec, ScheduleSpec
from rsched.runtime.clock import Clock

T = TypeVar("T")
_THREADS = 16


class AsyncClient(AsyncControl):
    """As Client, each method awaited. A cancelled call leaves its request to end by itself."""

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
        self._client = Client(
            base_url,
            timeout_s=timeout_s,
            retry_for_s=retry_for_s,
            headers=headers,
            ssl_context=ssl_context,
            clock=clock,
        )
        self._limiter: anyio.CapacityLimiter | None = None

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        self._client.close()

    async def create_job(
        self,
        name: str | None = None,
        *,
        idempotency_key: str | None = None,
        ack: Ack | None = None,
        **options: Unpack[JobOptions],
    ) -> JobView:
        call = partial(self._client.create_job, name, idempotency_key=idempotency_key, ack=ack)
        return await self._call(partial(call, **options))

    async def create_spec(
        self, spec: JobSpec | Mapping[str, Any], *, idempotency_key: str | None = None, ack: Ack | None = None
    ) -> JobView:
        return await self._call(partial(self._client.create_spec, spec, idempotency_key=idempotency_key, ack=ack))

    async def create_jobs(
        self,
        specs: Sequence[JobSpec | Mapping[str, Any]],
        *,
        idempotency_key: str | None = None,
        ack: Ack | None = None,
    ) -> list[JobView]:
        return await self._call(partial(self._client.create_jobs, specs, idempotency_key=idempotency_key, ack=ack))

    async def put_job(
        self, name: str, *, if_match: int | None = None, ack: Ack | None = None, **options: Unpack[JobOptions]
    ) -> JobView:
        return await self._call(partial(self._client.put_job, name, if_match=if_match, ack=ack, **options))

    async def put_spec(
        self,
        job: str,
        spec: JobSpec | Mapping[str, Any],
        *,
        if_match: int | None = None,
        team: str | None = None,
        ack: Ack | None = None,
    ) -> JobView:
        return await self._call(partial(self._client.put_spec, job, spec, if_match=if_match, team=team, ack=ack))

    async def get_job(self, job: str, *, team: str | None = None) -> JobView:
        return await self._call(partial(self._client.get_job, job, team=team))

    async def list_jobs(
        self,
        *,
        team: str | None = None,
        state: str | None = None,
        name: str | None = None,
        tag: str | None = None,
        q: str | None = None,
    ) -> AsyncIterator[JobView]:
        cursor: str | None = None
        while True:
            page = await self.jobs_page(team=team, state=state, name=name, tag=tag, q=q, cursor=cursor)
            for job in page.items:
                yield job
            cursor = page.next_cursor
            if cursor is None:
                return

    async def jobs_page(
        self,
        *,
        team: str | None = None,
        state: str | None = None,
        name: str | None = None,
        tag: str | None = None,
        q: str | None = None,
        cursor: str | None = None,
        limit: int = 100,
    ) -> Page[JobView]:
        call = partial(self._client.jobs_page, team=team, state=state, name=name, tag=tag, q=q)
        return await self._call(partial(call, cursor=cursor, limit=limit))

    async def delete_job(
        self, job: str, *, team: str | None = None, if_match: int | None = None, ack: Ack | None = None
    ) -> None:
        await self._call(partial(self._client.delete_job, job, team=team, if_match=if_match, ack=ack))

    async def runs(self, job: str, *, team: str | None = None, status: str | None = None) -> AsyncIterator[RunView]:
        cursor: str | None = None
        while True:
            page = await self.runs_page(job, team=team, status=status, cursor=cursor)
            for run in page.items:
                yield run
            cursor = page.next_cursor
            if cursor is None:
                return

    async def runs_page(
        self,
        job: str,
        *,
        team: str | None = None,
        status: str | None = None,
        cursor: str | None = None,
        limit: int = 100,
    ) -> Page[RunView]:
        call = partial(self._client.runs_page, job, team=team, status=status)
        return await self._call(partial(call, cursor=cursor, limit=limit))

    async def run(self, run_id: str) -> RunView:
        return await self._call(partial(self._client.run, run_id))

    async def cancel_run(self, run_id: str, *, ack: Ack | None = None) -> RunView:
        return await self._call(partial(self._client.cancel_run, run_id, ack=ack))

    async def preview(
        self,
        schedule: ScheduleSpec | Mapping[str, Any] | Sequence[ScheduleSpec | Mapping[str, Any]],
        *,
        start: str | None = None,
        count: int = 10,
        team: str | None = None,
        name: str | None = None,
    ) -> Preview:
        call = partial(self._client.preview, schedule, start=start, count=count, team=team, name=name)
        return await self._call(call)

    async def forecast(self, *, hours: int = 24, team: str | None = None) -> ForecastView:
        return await self._call(partial(self._client.forecast, hours=hours, team=team))

    async def ready(self) -> bool:
        return await self._call(self._client.ready)

    @property
    def _control(self) -> Client:
        return self._client

    async def _call(self, call: Callable[[], T]) -> T:
        if self._limiter is None:
            # Made in the loop: an own limiter, so that a slow API does not use up the threads of the program.
            self._limiter = anyio.CapacityLimiter(_THREADS)
        return await anyio.to_thread.run_sync(call, abandon_on_cancel=True, limiter=self._limiter)
