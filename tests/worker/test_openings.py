"""A worker whose shard is closed, opened anew, or answers nothing."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable

import pytest

from rsched.core.states import RunState
from rsched.worker.app import App
from rsched.worker.context import JobContext
from tests.worker.running_worker import definition, running


def run_async(test: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(test())  # type: ignore[arg-type]


@pytest.mark.parametrize("verb", ["fetch", "finish"])
def test_a_lost_reply_is_repeated_and_nothing_runs_twice(verb: str) -> None:
    app = App()
    calls: list[str] = []

    @app.function("work")
    async def work(context: JobContext) -> None:
        calls.append(context.run_id)

    async def test() -> None:
        async with running(app) as worker:
            worker.store.orders.lose = [verb, verb]
            await worker.owe(definition(), definition())
            await worker.until(lambda: len(worker.store.finished) == 2 and len(worker.runtime.active) == 0)
            assert len(calls) == len(set(calls)) == 2
            if verb == "finish":
                assert worker.store.finish_calls == [1, 1, 1]

    run_async(test)


def test_results_are_kept_while_the_shard_is_closed() -> None:
    app = App()
    go = threading.Event()

    @app.function("work")
    def work() -> None:
        go.wait()

    async def test() -> None:
        async with running(app) as worker:
            await worker.owe(definition())
            await worker.until_started(1)
            await worker.shard.store.recovery.close()
            go.set()
            await worker.until(lambda: len(worker.runtime.finisher) == 1)
            await worker.shard.open()
            await worker.until(lambda: worker.outcomes() == [RunState.SUCCEEDED])

    run_async(test)


def test_after_an_recovery_what_is_held_is_adopted_before_anything_else() -> None:
    app = App()
    go = asyncio.Event()

    @app.function("work")
    async def work() -> None:
        await go.wait()

    async def test() -> None:
        async with running(app) as worker:
            (one,) = await worker.owe(definition())
            await worker.until(lambda: worker.runtime.active.all())
            worker.store.orders.lose = ["adopt"]
            await worker.shard.lose(one)
            # The renewal finds the run missing, which must not stop it before Redis has been told.
            await asyncio.to_thread(worker.runtime.renewal.step)
            await worker.until(lambda: worker.store.adopted)
            assert worker.store.adopted == [[one]]
            go.set()
            await worker.until(lambda: worker.outcomes() == [RunState.SUCCEEDED])

    run_async(test)


def test_a_result_whose_answer_was_lost_is_presented_anew_after_an_recovery() -> None:
    app = App()

    @app.function("work")
    async def work() -> None: ...

    async def test() -> None:
        async with running(app) as worker:
            worker.store.orders.lose = ["finish"]
            worker.store.orders.after["finish"] = worker.shard.lose
            await worker.owe(definition())
            await worker.until(lambda: worker.store.adopted)
            await worker.until(lambda: len(worker.runtime.active) == 0)
            # Once before the recovery; it was adopted as running, so the success had to be said again under a new number.
            assert worker.store.finish_calls == [1, 1, 2]
            assert await worker.shard.store.connection.client.hlen(worker.store.keys.runs) == 0

    run_async(test)


def test_an_idle_worker_says_that_it_holds_nothing() -> None:
    async def test() -> None:
        async with running(App()) as worker:
            # It has heard of this generation.
            await worker.until(lambda: worker.store.connection.generation == "1")
            await worker.shard.lose()
            await worker.until(lambda: worker.store.adopted == [[]])

    run_async(test)


def test_an_attempt_that_redis_gave_to_another_is_stopped_and_not_finished() -> None:
    app = App()

    @app.function("work")
    async def work() -> None:
        await asyncio.Event().wait()

    async def test() -> None:
        async with running(app) as worker:
            (one,) = await worker.owe(definition())
            await worker.until_started(1)
            await worker.shard.give_to_another(one)
            await asyncio.to_thread(worker.runtime.renewal.step)
            await worker.until(lambda: len(worker.runtime.active) == 0)
            assert worker.store.finished == []
            assert worker.runtime.counters.dropped == 1

    run_async(test)
