"""A bounded pool of daemon threads for sync functions; a job can be asked to stop by an exception raised inside it.

Not concurrent.futures: its threads are joined at exit, and a function that won't stop would keep the process alive.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import queue
import threading
from collections.abc import Callable
from typing import Any

from rsched.worker.targets.base import TargetFailed


class AttemptStopped(BaseException):
    """Raised inside a sync function that has to stop: its timeout, a cancel, or a lease that could not be renewed."""


class Job:
    def __init__(self, call: Callable[[], Any], loop: asyncio.AbstractEventLoop) -> None:
        self.done: asyncio.Future[None] = loop.create_future()
        self._call, self._loop = call, loop
        self._lock = threading.Lock()
        self._thread: int | None = None

    def run(self) -> None:
        failure: BaseException | None = None
        try:
            with self._lock:
                self._thread = threading.get_ident()
            try:
                self._call()
            finally:
                with self._lock:
                    self._thread = None
        except BaseException as error:  # noqa: BLE001 - also SystemExit must not end a thread of the pool
            failure = error
        self.deliver(failure)

    def deliver(self, failure: BaseException | None) -> None:
        # The loop may be closed already: the process is ending and nobody waits.
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._settle, failure)

    def _settle(self, failure: BaseException | None) -> None:
        if self.done.done():
            return
        if failure is None:
            self.done.set_result(None)
        elif isinstance(failure, StopIteration | AttemptStopped | SystemExit | KeyboardInterrupt):
            # A future refuses the first, and the event loop would end with the others.
            self.done.set_exception(TargetFailed(f"{type(failure).__name__}: {failure}".removesuffix(": ")))
        else:
            self.done.set_exception(failure)

    def interrupt(self) -> None:
        """Raises AttemptStopped in the function at its next bytecode; a call into C is not interrupted."""
        with self._lock:
            if self._thread is not None:
                ctypes.pythonapi.PyThreadState_SetAsyncExc(
                    ctypes.c_ulong(self._thread), ctypes.py_object(AttemptStopped)
                )


class Threads:
    """At most `limit` jobs at a time; the caller sees to that (see targets/function.py), threads are made as needed."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._threads = 0
        self._busy = 0
        self._lock = threading.Lock()

    def submit(self, job: Job) -> None:
        with self._lock:
            self._busy += 1
            if self._busy > self._threads and self._threads < self._limit:
                self._threads += 1
                threading.Thread(target=self._work, name=f"function-{self._threads}", daemon=True).start()
        self._jobs.put(job)

    def _work(self) -> None:
        while True:
            job = self._jobs.get()
            if job is None:
                return
            try:
                job.run()
            except AttemptStopped as late:
                # The exception came between the function's last line and the pool's next one.
                job.deliver(late)
            with self._lock:
                self._busy -= 1

    def close(self) -> None:
        """Idle threads end; busy ones when their function does."""
        for _ in range(self._threads):
            self._jobs.put(None)
