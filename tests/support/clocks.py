"""Clocks that tests set."""

from __future__ import annotations

import asyncio


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


class StillClock:
    """Stands still until it is set; whoever sleeps only lets others go on. boot: ms since some beginning."""

    def __init__(self) -> None:
        self.boot = 1_000_000

    def boot_ms(self) -> int:
        return self.boot

    def wall_ms(self) -> int:
        return 1_793_000_000_000 + self.boot

    def perf_s(self) -> float:
        return self.boot / 1000

    async def sleep(self, ms: float) -> None:
        await asyncio.sleep(0)  # noqa: TID251

    def sleep_sync(self, ms: float) -> None: ...
