"""The methods of control, each awaited."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from functools import partial
from typing import Any, Protocol, TypeVar

import msgspec

from rsched.client.bodies import Instant, Length
from rsched.client.control import BulkVerb, Control
from rsched.client.views import BackfillView, BulkAnswer, CalendarView, Page, SkipView
from rsched.core.answers import JobView, RunView
from rsched.core.jobs.model import Ack, MisfirePolicy, Overlap

T = TypeVar("T")


class _Threads(Protocol):
    @property
    def _control(self) -> Control: ...
    def _call(self, call: Callable[[], T]) -> Awaitable[T]: ...


class AsyncControl:
    async def pause_job(
        self: _Threads,
        job: str,
        *,
        note: str | None = None,
        until: Instant | Length | None = None,
        missed: MisfirePolicy | None = None,
        team: str | None = None,
        ack: Ack | None = None,
    ) -> JobView:
        call = partial(self._control.pause_job, job, note=note, until=until, missed=missed)
        return await self._call(partial(call, team=team, ack=ack))

    async def resume_job(
        self: _Threads,
        job: str,
        *,
        missed: MisfirePolicy | None = None,
        team: str | None = None,
        ack: Ack | None = None,
    ) -> JobView:
        return await self._call(partial(self._control.resume_job, job, missed=missed, team=team, ack=ack))

    async def trigger_job(
        self: _Threads,
        job: str,
        *,
        payload: Any = msgspec.UNSET,
        overlap: Overlap | None = None,
        team: str | None = None,
        idempotency_key: str | None = None,
        ack: Ack | None = None,
    ) -> RunView:
        call = partial(self._control.trigger_job, job, payload=payload, overlap=overlap)
        return await self._call(partial(call, team=team, idempotency_key=idempotency_key, ack=ack))

    async def backfill(
        self: _Threads,
        job: str,
        start: Instant,
        end: Instant | None = None,
        *,
        dry_run: bool = False,
        team: str | None = None,
        ack: Ack | None = None,
    ) -> BackfillView:
        call = partial(self._control.backfill, job, start, end, dry_run=dry_run)
        return await self._call(partial(call, team=team, ack=ack))

    async def skips(self: _Threads, job: str, *, team: str | None = None) -> AsyncIterator[SkipView]:
        cursor: str | None = None
        while True:
            page = await self._call(partial(self._control.skips_page, job, team=team, cursor=cursor))
            for skip in page.items:
                yield skip
            cursor = page.next_cursor
            if cursor is None:
                return

    async def skips_page(
        self: _Threads, job: str, *, team: str | None = None, cursor: str | None = None, limit: int = 100
    ) -> Page[SkipView]:
        return await self._call(partial(self._control.skips_page, job, team=team, cursor=cursor, limit=limit))

    async def bulk(
        self: _Threads,
        verb: BulkVerb,
        *,
        team: str | None = None,
        tag: str | None = None,
        state: str | None = None,
        q: str | None = None,
        name: str | None = None,
        all_jobs: bool = False,
        dry_run: bool = False,
        note: str | None = None,
        until: Instant | Length | None = None,
        missed: MisfirePolicy | None = None,
        cursor: str | None = None,
        ack: Ack | None = None,
    ) -> BulkAnswer:
        matching = partial(self._control.bulk, verb, team=team, tag=tag, state=state, q=q, name=name, all_jobs=all_jobs)
        call = partial(matching, dry_run=dry_run, note=note, until=until, missed=missed)
        return await self._call(partial(call, cursor=cursor, ack=ack))

    async def put_calendar(
        self: _Threads,
        team: str,
        name: str,
        dates: Sequence[str],
        *,
        if_match: int | None = None,
        ack: Ack | None = None,
    ) -> CalendarView:
        return await self._call(partial(self._control.put_calendar, team, name, dates, if_match=if_match, ack=ack))

    async def get_calendar(self: _Threads, team: str, name: str) -> CalendarView:
        return await self._call(partial(self._control.get_calendar, team, name))

    async def calendars_page(
        self: _Threads, team: str, *, cursor: str | None = None, limit: int = 100
    ) -> Page[CalendarView]:
        return await self._call(partial(self._control.calendars_page, team, cursor=cursor, limit=limit))

    async def delete_calendar(
        self: _Threads, team: str, name: str, *, if_match: int | None = None, ack: Ack | None = None
    ) -> None:
        await self._call(partial(self._control.delete_calendar, team, name, if_match=if_match, ack=ack))
