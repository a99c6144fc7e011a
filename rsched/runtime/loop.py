"""Loops as steps: `step()` does one bounded piece of work and says whether there is more; the runner does the waiting."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable

from rsched.core.errors import NeedsFixing, Unavailable
from rsched.runtime.clock import Clock

_FIRST_BACKOFF_MS = 50.0
_LAST_BACKOFF_MS = 5000.0

Step = Callable[[], Awaitable[bool]]


class Wake:
    """A level that is set by events and cleared by whoever waited for it."""

    def __init__(self) -> None:
        self._event = asyncio.Event()

    def set(self) -> None:
        self._event.set()

    async def wait(self, timeout_ms: float) -> bool:
        """True when set in time. Clears it. A timeout under 1 ms counts as 1 ms, so that it never means for ever."""
        try:
            async with asyncio.timeout(max(timeout_ms, 1) / 1000):
                await self._event.wait()
        except TimeoutError:
            return False
        self._event.clear()
        return True


class Outage:
    """Says once that something is away and once that it is back, and grows the pause between tries, with jitter.

    What people have to fix is said once of each kind, also where it shows only after another outage: a server that came back
    with another password must not pass for one that is still away.
    """

    def __init__(self, name: str, log: logging.Logger) -> None:
        self._name, self._log = name, log
        self._tries = 0
        self._needs_fixing: set[str] = set()

    def failed(self, error: Exception) -> float:
        """The pause in ms before the next try."""
        kind = str(error).partition(":")[0] if isinstance(error, NeedsFixing) else ""
        if self._tries == 0 or (kind and kind not in self._needs_fixing):
            self._log.warning("%s: waiting: %s", self._name, error)
        if kind:
            self._needs_fixing.add(kind)
        pause = min(_LAST_BACKOFF_MS, _FIRST_BACKOFF_MS * 2 ** min(self._tries, 16))
        self._tries += 1
        return float(pause * random.uniform(0.5, 1))

    def over(self) -> None:
        if self._tries:
            self._log.warning("%s: goes on after %d tries", self._name, self._tries)
            self._tries = 0
            self._needs_fixing.clear()


async def run_steps(
    step: Step, *, name: str, clock: Clock, wake: Wake, idle_ms: Callable[[], float] | float, log: logging.Logger
) -> None:
    """Runs steps until cancelled; waits for `wake` or idle_ms when there is no more, with backoff while unavailable."""
    outage = Outage(name, log)
    while True:
        try:
            more = await step()
        except Unavailable as error:
            await clock.sleep(outage.failed(error))
            continue
        outage.over()
        if not more:
            await wake.wait(idle_ms() if callable(idle_ms) else idle_ms)
        else:
            await asyncio.sleep(0)  # noqa: TID251 - yields to the other loops, waits for nothing
