from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from rsched.core.jobs.model import FunctionTarget, HttpTarget, RetryPolicy
from rsched.core.states import RunState
from rsched.worker.app import App
from rsched.worker.context import JobContext
from tests.worker.running_worker import LIMITS, definition, running


def run_async(test: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(test())  # type: ignore[arg-type]


def test_runs_are_fetched_executed_and_finished_with_their_start() -> None:
    app = App()
    seen: list[JobContext] = []

    @app.function("work")
    async def work(context: JobContext) -> None:
        seen.append(context)

    async def test() -> None:
        async with running(app) as worker:
            runs = await worker.owe(*[definition()] * 30)
            await worker.until(lambda: len(worker.store.finished) == 30)
            assert set(worker.outcomes()) == {RunState.SUCCEEDED}
            assert len(worker.store.finish_calls) < 30
            assert all(item.started_at > 0 for item in worker.store.finished)
        assert worker.store.left
        first = seen[0]
        assert {context.run_id for context in seen} == set(runs)
        assert first.idempotency_key == first.run_id
        assert int(first.scheduled_at.timestamp() * 1000 + 0.5) == int(first.run_id.rpartition(":")[2])

    run_async(test)


def test_a_failure_waits_for_its_retry_and_the_last_one_is_dead() -> None:
    app = App()

    @app.function("work")
    def work() -> None:
        raise ValueError("no luck")

    async def test() -> None:
        async with running(app) as worker:
            await worker.owe(definition(retry=RetryPolicy(max_attempts=2, base="30ms", jitter="none")))
            await worker.until(lambda: len(worker.store.finished) == 2)
            first, last = worker.store.finished
            assert (first.outcome, first.delay_ms) == (RunState.RETRYING, 30)
            assert (last.outcome, last.error) == (RunState.DEAD, "ValueError: no luck")
            assert last.fence > first.fence

    run_async(test)


@pytest.mark.parametrize(("jitter", "soonest_ms"), [("none", 200_000), ("full", 0)])
def test_a_retry_is_due_within_the_backoff_of_its_attempt(jitter: Any, soonest_ms: int) -> None:
    """From the policy by way of the worker and the finish script to the instant at which Redis queues the run again."""
    app = App()
    tried: list[int] = []

    @app.function("work")
    def work(context: JobContext) -> None:
        tried.append(context.attempt)
        raise ValueError

    async def test() -> None:
        async with running(app) as worker:
            retry = RetryPolicy(max_attempts=9, base="100s", factor=2, cap="1h", jitter=jitter)
            await worker.owe(definition(retry=retry))
            keys, redis = worker.store.keys, worker.shard.store.connection.client
            dues: list[float] = []
            # The first attempt's retry is brought forward, so that the exponent of the second is seen: 100 s * 2.
            for attempt in (1, 2):
                before = await worker.shard.store.clock.read()
                if attempt == 2:
                    (member,) = await redis.zrange(keys.retries, 0, -1)
                    await redis.zadd(keys.retries, {member: 1})
                await worker.until(lambda attempt=attempt: len(worker.store.finished) == attempt)
                after = await worker.shard.store.clock.read()
                ((_, due),) = await redis.zrange(keys.retries, 0, -1, withscores=True)
                dues.append(due)
            assert tried == [1, 2]
            assert before + soonest_ms <= dues[1] <= after + 200_000
            assert dues[1] - before == pytest.approx(worker.store.finished[1].delay_ms, abs=after - before)

    run_async(test)


def test_unknown_functions_bad_arguments_and_exits_fail_the_attempt_alone() -> None:
    app = App()

    @app.function("work")
    async def work(n: int) -> None:
        raise SystemExit(n)

    async def test() -> None:
        async with running(app) as worker:
            retry = RetryPolicy(max_attempts=1)
            runs = await worker.owe(
                definition(FunctionTarget(function="other"), retry=retry),
                definition(FunctionTarget(function="work"), retry=retry),
                definition(FunctionTarget(function="work", args=[3]), retry=retry),
                definition(HttpTarget(url="http://x"), retry=retry),
            )
            await worker.until(lambda: len(worker.store.finished) == 4)
            errors = [worker.errors()[run] for run in runs]
            assert errors[0] == "this worker serves no function 'other'; it serves work"
            assert errors[1] == "BadArguments: work: argument 'n' is missing"
            assert errors[2] == "SystemExit: 3"
            assert "cannot call a target of the kind HttpTarget" in errors[3]

    run_async(test)


def test_timeouts_stop_async_and_sync_functions() -> None:
    app = App()
    ended = []

    @app.function("sleeps")
    async def sleeps() -> None:
        await asyncio.Event().wait()

    @app.function("spins")
    def spins() -> None:
        try:
            while True:
                time.sleep(0.001)  # noqa: TID251
        finally:
            ended.append(threading.get_ident())

    async def test() -> None:
        async with running(app) as worker:
            await worker.owe(
                *(definition(FunctionTarget(function=name), timeout_s=0.05) for name in ("sleeps", "spins"))
            )
            await worker.until(lambda: len(worker.store.finished) == 2)
            assert {item.error for item in worker.store.finished} == {"timed out after 0.05 s"}
            assert len(ended) == 1

    run_async(test)


def test_a_cancel_signal_and_a_cancel_told_by_a_renewal_stop_the_attempt() -> None:
    app = App()

    @app.function("work")
    async def work() -> None:
        await asyncio.Event().wait()

    async def test() -> None:
        async with running(app) as worker:
            one, two = await worker.owe(definition(), definition())
            await worker.until_started(2)
            await worker.shard.store.runs.cancel(one)
            await worker.until(lambda: worker.outcomes() == [RunState.CANCELLED])
            # The signal of the second is lost.
            worker.runtime.cancel = lambda run: None  # type: ignore[method-assign]
            await worker.shard.store.runs.cancel(two)
            await asyncio.to_thread(worker.runtime.renewal.step)
            await worker.until(lambda: worker.outcomes() == [RunState.CANCELLED] * 2)

    run_async(test)


def test_never_more_at_a_time_than_the_concurrency() -> None:
    app = App()
    now = most = 0

    @app.function("work")
    async def work() -> None:
        nonlocal now, most
        now += 1
        most = max(most, now)
        await asyncio.sleep(0.001)  # noqa: TID251
        now -= 1

    async def test() -> None:
        async with running(app, limits=LIMITS._replace(concurrency=7)) as worker:
            await worker.owe(*[definition()] * 100)
            await worker.until(lambda: len(worker.store.finished) == 100)
        assert most == 7

    run_async(test)


def test_no_error_text_is_too_odd_to_be_finished() -> None:
    app = App()

    class Odd(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    @app.function("work")
    def work(kind: int) -> None:
        raise [Odd(), ValueError("a\0b\ud800"), StopIteration(), KeyboardInterrupt()][kind]

    async def test() -> None:
        async with running(app) as worker:
            target = [FunctionTarget(function="work", args=[i]) for i in range(4)]
            runs = await worker.owe(*(definition(t, retry=RetryPolicy(max_attempts=1)) for t in target))
            await worker.until(lambda: len(worker.store.finished) == 4)
            errors = [worker.errors()[run] for run in runs]
            assert errors == ["Odd", "ValueError: a\ufffdb?", "StopIteration", "KeyboardInterrupt"]

    run_async(test)


def test_a_function_that_is_cancelled_from_inside_fails_like_any_other() -> None:
    app = App()

    @app.function("work")
    async def work() -> None:
        raise asyncio.CancelledError

    @app.function("interrupt")
    async def interrupt() -> None:
        raise KeyboardInterrupt

    async def test() -> None:
        async with running(app) as worker:
            await worker.owe(definition(), definition(FunctionTarget(function="interrupt")))
            await worker.until(lambda: len(worker.store.finished) == 2)
            assert {i.error for i in worker.store.finished} == {"CancelledError", "KeyboardInterrupt"}
            await worker.until(lambda: len(worker.runtime.active) == 0)

    run_async(test)
