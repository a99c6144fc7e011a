"""One deadline over all waits of a request, whatever it waits for and however badly that can be cancelled."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from rsched_api.http.deadline import Deadline, about, apart, left_s, restart

from rsched.core.errors import Unavailable
from rsched.core.ids import JobId
from rsched.runtime.clock import SystemClock

sleep_ms = SystemClock().sleep
JOB = JobId("j_0000000000000")


class Asked:
    """One request to an app behind a deadline; `sent` is what was answered."""

    def __init__(self, app: Any, *, seconds: float, chunks: int = 1, pause_ms: int = 0) -> None:
        self._app = Deadline(app, seconds=seconds, margin_s=0, slack_s=10)
        self._left, self._pause_ms = chunks, pause_ms
        self.sent: list[Any] = []
        self.answered = asyncio.Event()

    async def _receive(self) -> Any:
        await sleep_ms(self._pause_ms)
        self._left -= 1
        return {"type": "http.request", "body": b"x", "more_body": self._left > 0}

    async def _send(self, message: Any) -> None:
        self.sent.append(message)
        if message["type"] == "http.response.body":
            self.answered.set()

    async def run(self) -> None:
        await self._app({"type": "http", "method": "POST", "path": "/v1/jobs"}, self._receive, self._send)

    @property
    def status(self) -> int:
        return int(self.sent[0]["status"])

    @property
    def problem(self) -> Any:
        return json.loads(self.sent[1]["body"])


async def ok(send: Any) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b""})


async def read(receive: Any) -> None:
    while (await receive())["more_body"]:
        pass


def test_the_time_that_a_body_takes_to_arrive_is_not_taken_from_the_waits() -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        await read(receive)
        left.append(left_s(60))
        await ok(send)

    async def main() -> None:
        asked = Asked(app, seconds=0.3, chunks=4, pause_ms=50)
        await asked.run()
        assert asked.status == 200
        assert 0.2 < left[0] <= 0.3

    left: list[float] = []
    asyncio.run(main())


def test_a_second_wait_has_what_the_first_one_left() -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        await read(receive)
        before = left_s(60)
        await sleep_ms(50)
        shares.append(before - left_s(60))
        assert left_s(0.01) == 0.01
        restart(work_s=1)
        assert 1.2 < left_s(60) <= 1.3
        await ok(send)

    async def main() -> None:
        asked = Asked(app, seconds=0.3)
        await asked.run()
        assert asked.status == 200
        assert shares[0] >= 0.045

    shares: list[float] = []
    asyncio.run(main())


def test_the_answer_does_not_wait_for_what_cannot_be_cancelled_and_names_the_job() -> None:
    async def main() -> None:
        hanging = asyncio.Event()

        async def app(scope: Any, receive: Any, send: Any) -> None:
            await read(receive)
            about(job_id=JOB)
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                await hanging.wait()
                await ok(send)  # which is too late
                raise

        asked = Asked(app, seconds=0.02)
        running = asyncio.ensure_future(asked.run())
        async with asyncio.timeout(5):
            await asked.answered.wait()
        assert not running.done()
        assert (asked.status, asked.problem["durability"], asked.problem["job_id"]) == (503, "unknown", JOB)
        hanging.set()
        await running
        assert len(asked.sent) == 2

    asyncio.run(main())


def test_an_answer_that_has_begun_is_sent_whole() -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await sleep_ms(60)
        await send({"type": "http.response.body", "body": b"whole"})

    async def main() -> None:
        asked = Asked(app, seconds=0.01)
        await asked.run()
        assert [m.get("body") for m in asked.sent] == [None, b"whole"]

    asyncio.run(main())


def test_what_goes_wrong_in_time_goes_wrong_as_it_would_without_a_deadline() -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        raise KeyError("a bug")

    async def main() -> None:
        with pytest.raises(KeyError):
            await Asked(app, seconds=1).run()

    asyncio.run(main())


def test_what_is_asked_for_apart_goes_on_when_the_request_has_its_answer() -> None:
    async def main() -> None:
        hanging, ended = asyncio.Event(), []

        async def slow() -> int:
            await hanging.wait()
            ended.append(1)
            return 1

        async def quick() -> int:
            return 2

        async def refused() -> int:
            raise Unavailable("away")

        async def app(scope: Any, receive: Any, send: Any) -> None:
            assert await apart(quick, within_s=1) == 2
            with pytest.raises(Unavailable, match="away"):
                await apart(refused, within_s=1)
            with pytest.raises(Unavailable, match=r"0\.01 s"):
                await apart(slow, within_s=0.01)
            await ok(send)

        asked = Asked(app, seconds=5)
        running = asyncio.ensure_future(asked.run())
        async with asyncio.timeout(5):
            await asked.answered.wait()
        assert (asked.status, ended) == (200, [])
        hanging.set()
        await running
        assert ended == [1]

    asyncio.run(main())
