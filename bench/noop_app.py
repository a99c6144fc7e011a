"""The application of the benchmarks: a function that does nothing."""

from __future__ import annotations

from rsched import App

app = App()


@app.function("noop")
async def noop() -> None: ...
