"""The target of runs that are at work when the next one of their job comes due: as tests/faults/app.py, for as long as told."""

from __future__ import annotations

from rsched import App, JobContext
from tests.faults.app import at_work

app = App()


@app.function("busy")
async def busy(context: JobContext, seconds: float) -> None:
    """At work for so long, unless it is cancelled: it says which."""
    await at_work(context, seconds)
