"""Python functions: async ones in the event loop, sync ones in a bounded pool of threads."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from rsched.core.jobs.model import FunctionTarget
from rsched.runtime.clock import Clock
from rsched.worker.app import Function
from rsched.worker.attempt import Attempt
from rsched.worker.targets.base import Begin, TargetFailed
from rsched.worker.targets.threads import Job, Threads


class FunctionCalls:
    def __init__(self, functions: Mapping[str, Function], *, threads: int, clock: Clock) -> None:
        self._functions, self._clock = functions, clock
        self._threads = Threads(threads)
        self._free = asyncio.Semaphore(threads)

    async def call(self, attempt: Attempt, begin: Begin) -> None:
        target = attempt.definition.target
        assert isinstance(target, FunctionTarget)
        function = self._functions.get(target.function)
        if function is None:
            served = ", ".join(sorted(self._functions)[:20]) or "none"
            raise TargetFailed(f"this worker serves no function {target.function!r}; it serves {served}")
        if function.is_async:
            begin(attempt)
            args, kwargs = function.bind(target.args, target.kwargs, attempt.context)
            await function.call(*args, **kwargs)
            return
        async with self._free:
            begin(attempt)
            args, kwargs = function.bind(target.args, target.kwargs, attempt.context)
            await self._in_thread(attempt, lambda: function.call(*args, **kwargs))

    async def _in_thread(self, attempt: Attempt, call: Callable[[], Any]) -> None:
        def guarded() -> None:
            # The process may have been stopped between the loop's check and this thread's turn.
            if self._clock.boot_ms() >= attempt.deadline:
                raise TargetFailed("the lease was over before the function was called")
            call()

        job = Job(guarded, asyncio.get_running_loop())
        self._threads.submit(job)
        try:
            await asyncio.shield(job.done)
        except asyncio.CancelledError:
            await self._interrupted(job)
            raise

    async def _interrupted(self, job: Job) -> None:
        # An attempt is over only when its function is: else the next attempt would overlap with it. What does not stop is
        # seen by the watchdog.
        while not job.done.done():
            job.interrupt()
            try:
                await asyncio.wait({job.done}, timeout=0.2)
            except asyncio.CancelledError:
                continue
        job.done.exception()

    def close(self) -> None:
        self._threads.close()
