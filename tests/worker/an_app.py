"""The application that worker processes of the tests serve."""

from __future__ import annotations

import asyncio
import os
import threading
from pathlib import Path

from rsched import App

app = App()


@app.function("quick")
async def quick() -> None: ...


@app.function("waits")
async def waits() -> None:
    await asyncio.Event().wait()


@app.function("stuck")
def stuck() -> None:
    Path(os.environ["TEST_STARTED"]).touch()
    # In C, where nothing can be raised.
    threading.Event().wait()
