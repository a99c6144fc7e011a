"""Runs a real worker runtime over the fake store, inside one test."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio

from rsched.core.ids import WorkerId
from rsched.runtime.clock import Clock, SystemClock
from rsched.worker.app import Worker
from rsched.worker.runtime import Limits, Runtime
from rsched.worker.targets.base import Callers
from rsched.worker.targets.calls import Calls
from tests.worker.fake_store import FakeRenewer, FakeStore

LIMITS = Limits(concurrency=10, lease_ms=60_000, renew_ms=20_000, margin_ms=5000, drain_ms=3000, poll_ms=50)


class Bench:
    def __init__(self, store: FakeStore, runtime: Runtime, stop: anyio.Event, exits: list[int]) -> None:
        self.store, self.runtime, self.stop, self.exits = store, runtime, stop, exits

    async def until(self, condition: Callable[[], Any]) -> None:
        await until(condition)


async def until(condition: Callable[[], Any], *, timeout_s: float = 5) -> None:
    async with asyncio.timeout(timeout_s):
        while not condition():  # noqa: ASYNC110 - conditions span threads
            await asyncio.sleep(0.002)  # noqa: TID251


@asynccontextmanager
async def running(
    app: Worker,
    *,
    limits: Limits = LIMITS,
    clock: Clock | None = None,
    threads: int = 4,
    http: bool = False,
    callers: Callers | None = None,
) -> AsyncIterator[Bench]:
    store, clock, exits = FakeStore(), clock or SystemClock(), []
    calls = Calls(app.functions, threads=threads, clock=clock, http=http)
    runtime = Runtime(
        store, FakeRenewer(store), worker=WorkerId("w_test"), queues=("default", "http"), callers=callers or calls,
        limits=limits, clock=clock, log=logging.getLogger("test"), leave=exits.append,
    )  # fmt: skip
    stop = anyio.Event()
    try:
        async with asyncio.timeout(20), anyio.create_task_group() as group:
            group.start_soon(runtime.run, stop)
            yield Bench(store, runtime, stop, exits)
            stop.set()
    finally:
        calls.close()
