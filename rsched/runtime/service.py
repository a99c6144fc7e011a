"""Runs a process' main coroutine until SIGTERM or SIGINT asks it to stop."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable

import anyio

from rsched.runtime import faults

Main = Callable[[anyio.Event], Awaitable[None]]


async def run_service(main: Main) -> None:
    """Calls main with an event that the first SIGTERM or SIGINT sets; main then ends in its own time."""
    stop = anyio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    await main(stop)


def run(main: Main) -> None:
    """The whole life of a service process, on uvloop where there is one. Misconfigured where RSCHED_FAULTS names no point."""
    faults.arm(os.environ)
    try:
        import uvloop
    except ImportError:
        asyncio.run(run_service(main))
    else:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(run_service(main))
