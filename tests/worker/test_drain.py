"""A worker that is asked to go."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from typing import Any

from rsched.core.states import RunState
from rsched.worker.app import App
from tests.worker.running_worker import LIMITS, definition, running


def run_async(test: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(test())  # type: ignore[arg-type]


def test_a_drain_gives_back_what_has_not_started_and_lets_the_rest_end() -> None:
    app = App()
    go = threading.Event()

    @app.function("work")
    def work() -> None:
        go.wait()

    async def test() -> None:
        async with running(app, threads=1) as worker:
            await worker.owe(*[definition()] * 3)
            await worker.until(lambda: len(worker.runtime.active) == 3)
            worker.stop.set()
            await worker.until(lambda: len(worker.store.returned) == 2)
            assert worker.store.finished == []
            go.set()
            await worker.until(lambda: worker.outcomes() == [RunState.SUCCEEDED])

    run_async(test)


def test_what_outlasts_the_drain_is_stopped_and_retried_elsewhere() -> None:
    app = App()

    @app.function("work")
    async def work() -> None:
        await asyncio.Event().wait()

    async def test() -> None:
        async with running(app, limits=LIMITS._replace(drain_ms=50)) as worker:
            await worker.owe(definition())
            await worker.until_started(1)
            worker.stop.set()
            await worker.until(lambda: worker.outcomes() == [RunState.RETRYING])
            assert worker.store.finished[0].delay_ms == 0

    run_async(test)


def test_a_function_that_ignores_its_timeout_ends_the_process_after_a_drain() -> None:
    app = App()
    go = threading.Event()

    @app.function("work")
    def work() -> None:
        go.wait()  # waits in C, where no exception reaches it

    async def test() -> None:
        async with running(app, limits=LIMITS._replace(margin_ms=100, drain_ms=100)) as worker:
            await worker.owe(definition(timeout_s=0.05))
            await worker.until(lambda: worker.exits == [70])
            assert worker.store.finished == []
            go.set()

    run_async(test)


def test_work_that_arrives_while_the_drain_begins_is_requeued() -> None:
    app = App()
    called = []

    @app.function("work")
    async def work() -> None:
        called.append(1)

    async def test() -> None:
        async with running(app) as worker:
            inner, entered, answer = worker.store.runs.fetch, asyncio.Event(), asyncio.Event()

            async def slow(*args: Any, **kwargs: Any) -> Any:
                reply = await inner(*args, **kwargs)
                if reply.runs:
                    entered.set()
                    await answer.wait()
                return reply

            worker.store.runs.fetch = slow  # type: ignore[method-assign]
            (one,) = await worker.owe(definition())
            await entered.wait()
            worker.stop.set()
            await worker.until(lambda: worker.runtime._draining)
            answer.set()
            await worker.until(lambda: worker.store.returned == [one])
        assert called == []

    run_async(test)
