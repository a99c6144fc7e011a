"""Runs loops as steps: `step()` does one bounded piece of work and returns whether there is more; the runner waits."""

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
    """A flag that events set and that whoever waited for it clears."""

    def __init__(self) -> None:
        self._event = asyncio.Event()

    def set(self) -> None:
        """Sets it, which wakes whoever waits."""
        self._event.set()

    async def wait(self, timeout_ms: float) -> bool:
        """Waits until it is set, and clears it.

        Args:
            timeout_ms: How long to wait at most (ms); less than 1 counts as 1, so that it never means for ever.

        Returns:
            Whether it was set in time.
        """
        try:
            async with asyncio.timeout(max(timeout_ms, 1) / 1000):
                await self._event.wait()
        except TimeoutError:
            return False
        self._event.clear()
        return True


class Outage:
    """Logs once that a server is away and once that it answers again, and lengthens the pause between tries, with jitter.

    An error that people have to fix is logged once of each kind, also where it appears only after another outage: a server
    that came back with another password must not look like one that is still away.

    Args:
        name: What waits, as the log names it.
        log: Where it is logged.
    """

    def __init__(self, name: str, log: logging.Logger) -> None:
        self._name, self._log = name, log
        self._tries = 0
        self._needs_fixing: set[str] = set()

    def failed(self, error: Exception) -> float:
        """Logs a new failure, and returns the pause before the next try (ms)."""
        kind = str(error).partition(":")[0] if isinstance(error, NeedsFixing) else ""
        if self._tries == 0 or (kind and kind not in self._needs_fixing):
            self._log.warning("%s: waiting: %s", self._name, error)
        if kind:
            self._needs_fixing.add(kind)
        pause = min(_LAST_BACKOFF_MS, _FIRST_BACKOFF_MS * 2 ** min(self._tries, 16))
        self._tries += 1
        return float(pause * random.uniform(0.5, 1))

    def over(self) -> None:
        """Logs the end of an outage; does nothing where there was none."""
        if self._tries:
            self._log.warning("%s: goes on after %d tries", self._name, self._tries)
            self._tries = 0
            self._needs_fixing.clear()


async def run_steps(
    step: Step, *, name: str, clock: Clock, wake: Wake, idle_ms: Callable[[], float] | float, log: logging.Logger
) -> None:
    """Runs steps until it is cancelled, with backoff while a server is unavailable.

    Args:
        step: Does one bounded piece of work, and returns whether there is more.
        name: The loop's name in the log.
        clock: This machine's clock.
        wake: Ends the wait that follows a step without more work.
        idle_ms: How long that wait lasts at most (ms), or what returns it.
        log: Where outages are logged.
    """
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
