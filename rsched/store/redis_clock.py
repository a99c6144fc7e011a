"""Redis' clock as far as a process knows it, and whether it has stepped against the process' own."""

from __future__ import annotations

from rsched.runtime.clock import Clock

# Further than any drift, slewing or rounding between two replies.
STEP_MS = 500
# The longest lease: by its end each worker that lives has renewed by the clock as it is now, and a wrong step was perhaps undone.
UNSURE_MS = 60_000


class RedisClock:
    """Estimates Redis' clock between replies by the last instant seen and what passed since on the boot clock.

    Redis' clock is ahead of the boot clock by something between `low` and `high`: a reply was made after its command was sent
    and before it arrived. Both move along with drift. However slow a reply, it is no step; only a quick one shows one.
    """

    def __init__(self, clock: Clock) -> None:
        """Begins without a reply, by the process' own wall clock."""
        self._clock = clock
        self._redis_ms = 0
        self._boot_ms = 0
        self._ahead: tuple[int, int] | None = None
        self._stepped_at: int | None = None

    def saw(self, redis_ms: int, *, sent_at: int) -> int:
        """Learns from a reply that has just arrived: it is at least as late now.

        Args:
            redis_ms: The server's time at which the reply was made.
            sent_at: When its command was sent, by the boot clock (ms).

        Returns:
            By how many ms at least Redis' clock has stepped since the reply before, less than 0 for back; 0 where it has not.
        """
        arrived = self._clock.boot_ms()
        if self._stepped_at is not None and sent_at < self._stepped_at:
            return 0  # overtaken: it may be from before the step
        if redis_ms >= self.now_ms() or self.now_ms() - redis_ms > 50:
            # Where it is further back, the server's clock was set back or the estimate ran ahead: follow the server.
            self._redis_ms, self._boot_ms = redis_ms, arrived
        return self._judge(redis_ms - arrived, redis_ms - sent_at, arrived)

    def _judge(self, low: int, high: int, arrived: int) -> int:
        if self._ahead is None:
            self._ahead = low, high
            return 0
        least, most = self._ahead
        step = max(0, low - most) or min(0, high - least)
        # What both replies allow; where nothing, the nearest that this one does: a slow one must not hide a step from the next.
        self._ahead = (low, high) if abs(step) > STEP_MS else (min(max(least, low), high), max(min(most, high), low))
        if abs(step) <= STEP_MS:
            return 0
        self._stepped_at = arrived
        return step

    @property
    def unsure(self) -> bool:
        """Tells whether it stepped less than one lease ago: what it says to be over may have just begun."""
        return self._stepped_at is not None and self._clock.boot_ms() - self._stepped_at < UNSURE_MS

    def now_ms(self) -> int:
        """Returns the estimate (ms)."""
        if self._redis_ms == 0:
            return self._clock.wall_ms()
        return self._redis_ms + self._clock.boot_ms() - self._boot_ms
