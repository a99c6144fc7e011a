"""The application of the benchmarks: a function that does nothing."""

from __future__ import annotations

from rsched import Worker

worker = Worker()


@worker.function("noop")
async def noop() -> None: ...
