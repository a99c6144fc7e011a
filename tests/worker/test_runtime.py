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
from tests.worker.fake_store import definition, fetched
from tests.worker.harness import LIMITS, Bench, running

QUICK = RetryPolicy(max_attempts=2, base="1s", jitter="none")


def run_async(test: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(test())  # type: ignore[arg-type]


def outcomes(bench: Bench) -> list[RunState]:
    return [item.outcome for item in bench.store.finished]


def test_runs_are_fetched_executed_and_finished_with_their_start() -> None:
    app = App()
    seen: list[JobContext] = []

    @app.function("work")
    async def work(context: JobContext) -> None:
        seen.append(context)

    async def test() -> None:
        async with running(app) as bench:
            bench.store.add(*(fetched(i) for i in range(1, 31)))
            await bench.until(lambda: len(bench.store.finished) == 30)
            assert set(outcomes(bench)) == {RunState.SUCCEEDED}
            assert len(bench.store.finish_calls) < 30
            assert all(item.started_at > 0 for item in bench.store.finished)
        assert bench.store.left
        first = seen[0]
        assert first.idempotency_key == first.run_id == "j_0123456789abc:1793000000001"
        assert first.scheduled_at.timestamp() == 1_793_000_000.001
        assert first.traceparent.split("-")[1] == seen[0].traceparent.split("-")[1]

    run_async(test)


def test_a_failure_waits_for_its_retry_and_the_last_one_is_dead() -> None:
    app = App()

    @app.function("work")
    def work() -> None:
        raise ValueError("no luck")

    async def test() -> None:
        async with running(app) as bench:
            d = definition(retry=QUICK)
            bench.store.add(fetched(1, d), fetched(2, d, attempt=2))
            await bench.until(lambda: len(bench.store.finished) == 2)
            by_fence = {item.fence: item for item in bench.store.finished}
            assert (by_fence[1].outcome, by_fence[1].delay_ms) == (RunState.RETRYING, 1000)
            assert (by_fence[2].outcome, by_fence[2].error) == (RunState.DEAD, "ValueError: no luck")

    run_async(test)


def test_unknown_functions_bad_arguments_and_exits_fail_the_attempt_alone() -> None:
    app = App()

    @app.function("work")
    async def work(n: int) -> None:
        raise SystemExit(n)

    async def test() -> None:
        async with running(app) as bench:
            bench.store.add(
                fetched(1, definition(FunctionTarget(function="other"))),
                fetched(2, definition(FunctionTarget(function="work"))),
                fetched(3, definition(FunctionTarget(function="work", args=[3]))),
                fetched(4, definition(HttpTarget(url="http://x"))),
            )
            await bench.until(lambda: len(bench.store.finished) == 4)
            errors = {item.fence: item.error for item in bench.store.finished}
            assert errors[1] == "this worker serves no function 'other'; it serves work"
            assert errors[2] == "BadArguments: work: argument 'n' is missing"
            assert errors[3] == "SystemExit: 3"
            assert "cannot call a target of the kind HttpTarget" in errors[4]

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
        async with running(app) as bench:
            for i, name in enumerate(("sleeps", "spins"), 1):
                bench.store.add(fetched(i, definition(FunctionTarget(function=name), timeout_s=0.05)))
            await bench.until(lambda: len(bench.store.finished) == 2)
            assert {item.error for item in bench.store.finished} == {"timed out after 0.05 s"}
            assert len(ended) == 1

    run_async(test)


def test_a_cancel_signal_and_a_cancel_told_by_a_renewal_stop_the_attempt() -> None:
    app = App()

    @app.function("work")
    async def work() -> None:
        await asyncio.Event().wait()

    async def test() -> None:
        async with running(app) as bench:
            one, two = fetched(1), fetched(2)
            bench.store.add(one, two)
            await bench.until(
                lambda: all(a.started_at for a in bench.runtime.active.all()) and len(bench.runtime.active) == 2
            )
            bench.store.signal("cancel", one.run)
            await bench.until(lambda: outcomes(bench) == [RunState.CANCELLED])
            bench.store.cancelled.add(two.run)
            await asyncio.to_thread(bench.runtime.renewal.step)
            await bench.until(lambda: outcomes(bench) == [RunState.CANCELLED] * 2)

    run_async(test)


@pytest.mark.parametrize("verb", ["fetch", "finish"])
def test_a_lost_reply_is_repeated_and_nothing_runs_twice(verb: str) -> None:
    app = App()
    calls: list[str] = []

    @app.function("work")
    async def work(context: JobContext) -> None:
        calls.append(context.run_id)

    async def test() -> None:
        async with running(app) as bench:
            bench.store.lose = [verb, verb]
            bench.store.add(fetched(1), fetched(2))
            await bench.until(lambda: len(bench.store.finished) == 2 and len(bench.runtime.active) == 0)
            assert len(calls) == len(set(calls)) == 2
            if verb == "finish":
                assert bench.store.finish_calls == [1, 1, 1]

    run_async(test)


def test_results_are_kept_while_the_shard_is_closed() -> None:
    app = App()
    go = threading.Event()

    @app.function("work")
    def work() -> None:
        go.wait()

    async def test() -> None:
        async with running(app) as bench:
            bench.store.add(fetched(1))
            await bench.until(lambda: bench.runtime.active.all() and bench.runtime.active.all()[0].started_at)
            bench.store.closed = True
            go.set()
            await bench.until(lambda: len(bench.runtime.finisher) == 1)
            bench.store.closed = False
            await bench.until(lambda: outcomes(bench) == [RunState.SUCCEEDED])

    run_async(test)


def test_after_an_recovery_what_is_held_is_adopted_before_anything_else() -> None:
    app = App()
    go = asyncio.Event()

    @app.function("work")
    async def work() -> None:
        await go.wait()

    async def test() -> None:
        async with running(app) as bench:
            one = fetched(1)
            bench.store.add(one)
            await bench.until(lambda: bench.runtime.active.all())
            bench.store.lose = ["adopt"]
            bench.store.forget()
            # The renewal finds the run missing, which must not stop it before Redis has been told.
            await asyncio.to_thread(bench.runtime.renewal.step)
            await bench.until(lambda: bench.store.adopted)
            assert bench.store.adopted == [[one.run]]
            go.set()
            await bench.until(lambda: outcomes(bench) == [RunState.SUCCEEDED])

    run_async(test)


def test_a_result_whose_answer_was_lost_is_presented_anew_after_an_recovery() -> None:
    app = App()

    @app.function("work")
    async def work() -> None: ...

    async def test() -> None:
        async with running(app) as bench:
            bench.store.lose = ["finish"]
            bench.store.add(fetched(1))
            await bench.until(lambda: bench.store.finish_calls == [1])
            bench.store.forget()
            await bench.until(lambda: len(bench.runtime.active) == 0)
            # Once before the recovery; it was adopted as running, so the success had to be said again under a new number.
            assert bench.store.finish_calls == [1, 1, 2]
            assert bench.store.active == {}

    run_async(test)


def test_an_idle_worker_says_that_it_holds_nothing() -> None:
    async def test() -> None:
        async with running(App()) as bench:
            bench.store.forget()
            await bench.until(lambda: bench.store.adopted == [[]])

    run_async(test)


def test_an_attempt_that_redis_gave_to_another_is_stopped_and_not_finished() -> None:
    app = App()

    @app.function("work")
    async def work() -> None:
        await asyncio.Event().wait()

    async def test() -> None:
        async with running(app) as bench:
            one = fetched(1)
            bench.store.add(one)
            await bench.until(lambda: one.run in bench.store.active)
            bench.store.active[one.run] = one._replace(fence=99)
            await asyncio.to_thread(bench.runtime.renewal.step)
            await bench.until(lambda: len(bench.runtime.active) == 0)
            assert bench.store.finished == []
            assert bench.runtime.counters.dropped == 1

    run_async(test)


def test_a_drain_gives_back_what_has_not_started_and_lets_the_rest_end() -> None:
    app = App()
    go = threading.Event()

    @app.function("work")
    def work() -> None:
        go.wait()

    async def test() -> None:
        async with running(app, threads=1) as bench:
            bench.store.add(fetched(1), fetched(2), fetched(3))
            await bench.until(lambda: len(bench.runtime.active) == 3)
            bench.stop.set()
            await bench.until(lambda: len(bench.store.returned) == 2)
            assert bench.store.finished == []
            go.set()
            await bench.until(lambda: outcomes(bench) == [RunState.SUCCEEDED])

    run_async(test)


def test_what_outlasts_the_drain_is_stopped_and_retried_elsewhere() -> None:
    app = App()

    @app.function("work")
    async def work() -> None:
        await asyncio.Event().wait()

    async def test() -> None:
        async with running(app, limits=LIMITS._replace(drain_ms=50)) as bench:
            bench.store.add(fetched(1))
            await bench.until(lambda: bench.runtime.active.all() and bench.runtime.active.all()[0].started_at)
            bench.stop.set()
            await bench.until(lambda: outcomes(bench) == [RunState.RETRYING])
            assert bench.store.finished[0].delay_ms == 0

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
        async with running(app, limits=LIMITS._replace(concurrency=7)) as bench:
            bench.store.add(*(fetched(i) for i in range(1, 101)))
            await bench.until(lambda: len(bench.store.finished) == 100)
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
        async with running(app) as bench:
            target = [FunctionTarget(function="work", args=[i]) for i in range(4)]
            bench.store.add(*(fetched(i + 1, definition(t)) for i, t in enumerate(target)))
            await bench.until(lambda: len(bench.store.finished) == 4)
            errors = {item.fence: item.error for item in bench.store.finished}
            assert errors[1] == "Odd"
            assert errors[2] == "ValueError: a\ufffdb?"
            assert errors[3] == "StopIteration"
            assert errors[4] == "KeyboardInterrupt"

    run_async(test)


def test_a_function_that_ignores_its_timeout_ends_the_process_after_a_drain() -> None:
    app = App()
    go = threading.Event()

    @app.function("work")
    def work() -> None:
        go.wait()  # waits in C, where no exception reaches it

    async def test() -> None:
        async with running(app, limits=LIMITS._replace(margin_ms=100, drain_ms=100)) as bench:
            bench.store.add(fetched(1, definition(timeout_s=0.05)))
            await bench.until(lambda: bench.exits == [70])
            assert bench.store.finished == []
            go.set()

    run_async(test)


def test_work_that_arrives_while_the_drain_begins_is_requeued() -> None:
    app = App()
    called = []

    @app.function("work")
    async def work() -> None:
        called.append(1)

    async def test() -> None:
        async with running(app) as bench:
            inner, entered, answer = bench.store.fetch, asyncio.Event(), asyncio.Event()

            async def slow(*args: Any, **kwargs: Any) -> Any:
                reply = await inner(*args, **kwargs)
                if reply.runs:
                    entered.set()
                    await answer.wait()
                return reply

            bench.store.fetch = slow  # type: ignore[method-assign]
            one = fetched(1)
            bench.store.add(one)
            await entered.wait()
            bench.stop.set()
            await bench.until(lambda: bench.runtime._draining)
            answer.set()
            await bench.until(lambda: bench.store.returned == [one.run])
        assert called == []

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
        async with running(app) as bench:
            bench.store.add(fetched(1), fetched(2, definition(FunctionTarget(function="interrupt"))))
            await bench.until(lambda: len(bench.store.finished) == 2)
            assert {i.error for i in bench.store.finished} == {"CancelledError", "KeyboardInterrupt"}
            await bench.until(lambda: len(bench.runtime.active) == 0)

    run_async(test)
