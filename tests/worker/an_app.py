"""The application that worker processes of the tests serve."""

from __future__ import annotations

import asyncio
import os
import threading
from pathlib import Path

from rsched import Worker

worker = Worker()


@worker.function("quick")
async def quick() -> None: ...


@worker.function("waits")
async def waits() -> None:
    await asyncio.Event().wait()


@worker.function("stuck")
def stuck() -> None:
    Path(os.environ["TEST_STARTED"]).touch()
    # In C, where nothing can be raised.
    threading.Event().wait()
