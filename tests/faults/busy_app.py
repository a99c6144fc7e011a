"""The target of runs that are at work when the next one of their job comes due: as tests/faults/app.py, for as long as told."""

from __future__ import annotations

import anyio

from rsched import JobContext, Worker
from tests.faults.app import note

worker = Worker()


@worker.function("busy")
async def busy(context: JobContext, seconds: float) -> None:
    """At work for so long, unless it is cancelled: it says which."""
    note("start", context)
    try:
        await anyio.sleep(seconds)  # noqa: TID251 - this is an application, its time is its own
    except BaseException:
        note("cancelled", context)
        raise
    note("end", context)
