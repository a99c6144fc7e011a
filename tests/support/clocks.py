"""Clocks that tests set."""

from __future__ import annotations


class HandClock:
    """Stands still until it is set, for wall, process and Redis alike; whoever sleeps moves it on at once."""

    def __init__(self, ms: int) -> None:
        self.ms = ms

    def wall_ms(self) -> int:
        return self.ms

    def boot_ms(self) -> int:
        return self.ms

    def perf_s(self) -> float:
        return self.ms / 1000

    async def sleep(self, ms: float) -> None:
        self.ms += int(ms)

    def sleep_sync(self, ms: float) -> None:
        self.ms += int(ms)
