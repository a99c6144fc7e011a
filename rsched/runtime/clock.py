"""Reads this machine's clocks and sleeps; all other code takes a Clock as a constructor argument instead."""

from __future__ import annotations

import asyncio
import time
from typing import Protocol

# Counts while the machine sleeps, so a lease does not outlive a suspended laptop; macOS has it under another name.
_BOOT = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class Clock(Protocol):
    """What code may ask of time."""

    def wall_ms(self) -> int:
        """Returns this machine's UTC time (ms), for display and logs; due times and leases go by Redis' clock."""

    def boot_ms(self) -> int:
        """Returns the time since some start (ms): never set back, and counting suspended time. For durations and deadlines."""

    def perf_s(self) -> float:
        """Returns the time of the finest clock (s), for measuring."""

    async def sleep(self, ms: float) -> None:
        """Sleeps for so many ms without blocking the event loop."""

    def sleep_sync(self, ms: float) -> None:
        """Blocks the thread for so many ms."""


class SystemClock:
    """The clocks of this machine."""

    def wall_ms(self) -> int:
        """Returns this machine's UTC time (ms)."""
        return time.time_ns() // 1_000_000

    def boot_ms(self) -> int:
        """Returns the time since the machine started (ms), counting suspended time."""
        return time.clock_gettime_ns(_BOOT) // 1_000_000

    def perf_s(self) -> float:
        """Returns the time of the performance counter (s)."""
        return time.perf_counter()

    async def sleep(self, ms: float) -> None:
        """Sleeps for so many ms without blocking the event loop."""
        await asyncio.sleep(ms / 1000)  # noqa: TID251

    def sleep_sync(self, ms: float) -> None:
        """Blocks the thread for so many ms."""
        time.sleep(ms / 1000)  # noqa: TID251
