"""The target of the fault runs: it writes down what it sees, one O_APPEND write a line, so that the order is what happened."""

from __future__ import annotations

import json
import os
import time

import anyio

from rsched import App, JobContext

app = App()


def note(kind: str, context: JobContext) -> None:
    # Opened each time: the file is the target, and no state of this process may stand between.
    line = {
        "kind": kind,
        "at": time.time_ns() / 1e6,
        "pid": os.getpid(),
        "run_id": context.run_id,
        "attempt": context.attempt,
        "fence": context.fence,
    }
    fd = os.open(os.environ["FAULTS_SEEN"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    try:
        os.write(fd, json.dumps(line).encode() + b"\n")
    finally:
        os.close(fd)


async def at_work(context: JobContext, seconds: float) -> None:
    note("start", context)
    try:
        await anyio.sleep(seconds)  # noqa: TID251 - this is an application, its time is its own
    except BaseException:
        note("cancelled", context)
        raise
    note("end", context)


@app.function("brief")
async def brief(context: JobContext) -> None:
    """A few ms of work."""
    await at_work(context, 0.005)


@app.function("steady")
async def steady(context: JobContext) -> None:
    """Long enough that a kill finds some at work."""
    await at_work(context, 0.1)


@app.function("long")
async def long(context: JobContext) -> None:
    """Longer than any lease of the fault runs, on its first attempt; brief after that."""
    await at_work(context, 30 if context.attempt == 1 else 0.005)
