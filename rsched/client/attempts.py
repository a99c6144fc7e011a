"""How often a request is tried, decided without any I/O, so that both clients go by the same rules.

Every request is safe to repeat, so whatever may pass (a refused or broken connection, 503) is tried again, up to a deadline.
"""

from __future__ import annotations

import random

from rsched.client.problems import error_of
from rsched.client.request import Answer
from rsched.core.errors import NotFound, RschedError, Unavailable
from rsched.runtime.clock import Clock

_FIRST_BACKOFF_MS = 100.0
_LAST_BACKOFF_MS = 3000.0


class BrokenOff(Unavailable):
    """The server closed the connection in place of an answer, which it may do to a kept one at any time."""


class Attempts:
    """The tries of one request.

    Args:
        method: Of the request.
        retry_for_ms: How long to go on trying; 0 for a single try.
        clock: Measures how long that has been.
    """

    def __init__(self, method: str, *, retry_for_ms: float, clock: Clock) -> None:
        self._method, self._clock = method, clock
        self._deadline = clock.boot_ms() + retry_for_ms
        self._pause = _FIRST_BACKOFF_MS
        self._tries = 0

    def after(self, outcome: Answer | RschedError) -> Answer | float:
        """Judges a try: gives the answer if this was the last one, else how long to wait (ms) before the next.

        Raises:
            RschedError: What the problem document stands for, when another try cannot help or the time is up.
        """
        self._tries += 1
        least_ms = 0.0
        if isinstance(outcome, Answer):
            if 200 <= outcome.status < 300:
                return outcome
            after = outcome.retry_after
            if after.isascii() and after.isdigit():
                # Not the whole Retry-After at first: most outages here are a failover of a moment.
                least_ms = min(float(after) * 1000, _LAST_BACKOFF_MS) * 0.25
            error = error_of(outcome.status, outcome.body)
        else:
            error = outcome
        if self._tries == 1 and isinstance(error, BrokenOff):
            return 0.0
        if self._method == "DELETE" and self._tries > 1 and isinstance(error, NotFound):
            # An earlier try, whose answer was lost, has done it.
            return Answer(204, "", b"")
        wait_ms = max(least_ms, self._pause * random.uniform(0.5, 1))
        if not error.retryable or self._clock.boot_ms() + wait_ms > self._deadline:
            raise error
        self._pause = min(self._pause * 2, _LAST_BACKOFF_MS)
        return wait_ms
