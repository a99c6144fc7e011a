"""One deadline for a request, over all its waits: it is answered even where a server neither answers nor hangs up."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from typing import TypeVar

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from rsched.core.errors import DurabilityUnknown, RschedError, Unavailable
from rsched.core.ids import JobId, RunId
from rsched_api.http.ack import changes
from rsched_api.http.problems import of_error

# For the answer that says what was not seen in time, which is worth more than that there was none.
MARGIN_S = 0.5
# A read waits for no record, and may wait for one timeout of a server's connection; a body, for the client's line.
SLACK_S = 10.0

T = TypeVar("T")


class Limit:
    """When a request has to be answered, and what it is about, as far as that is known by now."""

    def __init__(self, group: asyncio.TaskGroup, *, seconds: float, margin_s: float) -> None:
        self.group = group
        self.job_id: JobId | None = None
        self.run_id: RunId | None = None
        self._seconds, self._margin_s = seconds, margin_s
        self._loop = asyncio.get_running_loop()
        self._over: asyncio.Future[None] = self._loop.create_future()
        self._ends_at = self._loop.time() + seconds
        self._timer = self._loop.call_at(self._ends_at + margin_s, self._end)

    def restart(self, *, work_s: float = 0.0) -> None:
        """Begins the waits of the request now, with its full time and `work_s` seconds of work beside them."""
        self._timer.cancel()
        self._ends_at = self._loop.time() + self._seconds + work_s
        self._timer = self._loop.call_at(self._ends_at + self._margin_s, self._end)

    def left_s(self) -> float:
        """Returns how many seconds of waiting the request has left."""
        return max(0.0, self._ends_at - self._loop.time())

    async def until_over(self, work: asyncio.Task[None]) -> None:
        """Returns when the work is done, or its time is over."""
        work.add_done_callback(self._end)
        try:
            await self._over
        finally:
            self._timer.cancel()

    def _end(self, _: object = None) -> None:
        if not self._over.done():
            self._over.set_result(None)


# Of the request that is being answered: every wait is part of one, and none can be forgotten.
_current: ContextVar[Limit | None] = ContextVar("limit", default=None)


def about(*, job_id: JobId | None = None, run_id: RunId | None = None) -> None:
    """Notes what the request changes, for the answer that it gets if it has to be given up."""
    limit = _current.get()
    if limit is not None:
        limit.job_id, limit.run_id = job_id or limit.job_id, run_id or limit.run_id


def left_s(most: float) -> float:
    """Returns how many seconds a wait may take that would by itself take `most`."""
    limit = _current.get()
    return most if limit is None else min(most, limit.left_s())


def restart(*, work_s: float) -> None:
    """Begins the waits of the current request now: it has been read, which took what its size took.

    Args:
        work_s: Seconds that its work takes by itself, beside the waits.
    """
    limit = _current.get()
    if limit is not None:
        limit.restart(work_s=work_s)


async def apart(call: Callable[[], Awaitable[T]], *, within_s: float) -> T:
    """Returns what the call gives within `within_s` seconds.

    After that the call goes on and the answer does not wait for it: to cancel a call of a server that hangs takes as long
    as the call.

    Raises:
        Unavailable: There was no answer in time, or the call raised it.
    """

    async def outcome() -> T | Unavailable:
        try:
            return await call()
        except Unavailable as error:
            return error

    limit = _current.get()
    assert limit is not None
    task = limit.group.create_task(outcome())
    await asyncio.wait([task], timeout=within_s)
    if not task.done():
        raise Unavailable(f"there was no answer within {within_s:g} s")
    found = task.result()
    if isinstance(found, Unavailable):
        raise found
    return found


class Deadline:
    """Middleware. seconds: how long a change may wait for its record, and for all that comes before."""

    def __init__(self, app: ASGIApp, *, seconds: float, margin_s: float = MARGIN_S, slack_s: float = SLACK_S) -> None:
        self._app, self._seconds, self._margin_s, self._slack_s = app, seconds, margin_s, slack_s

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers the request, with a problem document if its time is over first."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        writes = changes(scope["method"], scope["path"])
        begun = over = False
        failed: Exception | None = None
        loop = asyncio.get_running_loop()
        latest = loop.time() + self._slack_s

        async def receiving() -> Message:
            message = await receive()
            # A body on a slow line takes from the waits nothing; one that never ends has no more time than others.
            if writes and loop.time() < latest:
                limit.restart()
            return message

        async def noting(message: Message) -> None:
            nonlocal begun
            if not over:
                begun = True
                await send(message)

        async def work() -> None:
            nonlocal failed
            _current.set(limit)
            try:
                await self._app(scope, receiving, noting)
            except Exception as error:  # noqa: BLE001 - raised below: handlers of errors look for its class, not a group
                failed = error

        async with asyncio.TaskGroup() as group:
            limit = Limit(group, seconds=self._seconds, margin_s=self._margin_s if writes else self._slack_s)
            task = group.create_task(work())
            await limit.until_over(task)
            if not task.done() and not begun:
                over = True
                await of_error(self._given_up(limit, writes=writes))(scope, receive, send)
                # After the answer: a driver may wait for the server that it asks to cancel.
                task.cancel()
        if failed is not None and not over:
            raise failed

    def _given_up(self, limit: Limit, *, writes: bool) -> RschedError:
        if not writes:
            return Unavailable(f"there was no answer within {self._seconds + self._slack_s:g} s; repeat the request")
        return DurabilityUnknown(
            f"there was no answer within {self._seconds:g} s; repeat the request with the same key to learn its outcome",
            job_id=limit.job_id,
            run_id=limit.run_id,
        )
