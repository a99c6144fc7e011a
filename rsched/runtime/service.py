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
    """Calls main with an event that the first SIGTERM or SIGINT sets; main then ends by itself.

    Args:
        main: The process' main coroutine.
    """
    stop = anyio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    await main(stop)


def run(main: Main) -> None:
    """Runs a service process from start to end, on uvloop where it is installed.

    Args:
        main: The process' main coroutine; it gets the event that asks it to stop.

    Raises:
        Misconfigured: RSCHED_FAULTS names something that is not a fault point.
    """
    faults.arm(os.environ)
    try:
        import uvloop
    except ImportError:
        asyncio.run(run_service(main))
    else:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(run_service(main))
