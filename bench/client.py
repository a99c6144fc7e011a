"""Calls of the SDK against a server that answers at once: the clients alone, one call at a time and many at once."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import anyio.to_thread

from bench.figures import circumstances
from bench.fleet import ROOT
from rsched import AsyncClient, Client
from rsched.runtime.clock import Clock

CONCURRENT = (1, 100)


async def measure(*, seconds: float, clock: Clock) -> dict[str, Any]:
    """Measures both clients.

    Args:
        seconds: How long each of them calls, at each number of calls at once.
        clock: Measures it.

    Returns:
        Calls a second by client and calls at once; each call reads a job and makes a JobView of it.
    """
    found: dict[str, dict[str, int]] = {"async": {}, "sync": {}}
    with _server() as url:
        for at_once in CONCURRENT:
            found["async"][str(at_once)] = round(await _of_tasks(url, at_once, seconds=seconds, clock=clock))
            threaded = partial(_of_threads, url, at_once, seconds=seconds, clock=clock)
            found["sync"][str(at_once)] = round(await anyio.to_thread.run_sync(threaded))
    return {"benchmark": "client", "seconds": seconds, "calls_per_s_by_calls_at_once": found, **circumstances(clock)}


@contextmanager
def _server() -> Iterator[str]:
    command = [sys.executable, "-m", "bench.canned_server"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            yield f"http://127.0.0.1:{int(server.stdout.readline())}"
        finally:
            server.terminate()


async def _of_tasks(url: str, at_once: int, *, seconds: float, clock: Clock) -> float:
    """Calls a second of so many tasks of one event loop, which share a client."""
    calls = [0] * at_once
    async with AsyncClient(url) as client:
        await client.get_job("nightly")
        start = clock.perf_s()

        async def call(task: int) -> None:
            while clock.perf_s() < start + seconds:
                await client.get_job("nightly")
                calls[task] += 1

        await asyncio.gather(*(call(task) for task in range(at_once)))
        return sum(calls) / (clock.perf_s() - start)


def _of_threads(url: str, at_once: int, *, seconds: float, clock: Clock) -> float:
    """Calls a second of so many threads, which share a client."""
    calls = [0] * at_once
    with Client(url) as client:
        client.get_job("nightly")
        start = clock.perf_s()

        def call(thread: int) -> None:
            while clock.perf_s() < start + seconds:
                client.get_job("nightly")
                calls[thread] += 1

        threads = [threading.Thread(target=call, args=(thread,)) for thread in range(at_once)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return sum(calls) / (clock.perf_s() - start)
