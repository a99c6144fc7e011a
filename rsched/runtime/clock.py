"""The only place that reads a clock of this machine or sleeps. Everything else takes a Clock as a constructor argument."""

from __future__ import annotations

import asyncio
import time
from typing import Protocol

# Counts while the machine sleeps, so a lease does not outlive a suspended laptop; macOS has it under another name.
_BOOT = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class Clock(Protocol):
    def wall_ms(self) -> int:
        """This machine's idea of UTC, ms. For display and logs; due-ness and leases go by Redis' clock."""

    def boot_ms(self) -> int:
        """ms since some start, never set back, counting suspended time. For durations and lease deadlines."""

    def perf_s(self) -> float:
        """Seconds of the finest clock, for measuring."""

    async def sleep(self, ms: float) -> None: ...

    def sleep_sync(self, ms: float) -> None: ...


class SystemClock:
    def wall_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def boot_ms(self) -> int:
        return time.clock_gettime_ns(_BOOT) // 1_000_000

    def perf_s(self) -> float:
        return time.perf_counter()

    async def sleep(self, ms: float) -> None:
        await asyncio.sleep(ms / 1000)  # noqa: TID251

    def sleep_sync(self, ms: float) -> None:
        time.sleep(ms / 1000)  # noqa: TID251
