"""Redis' clock for a process: asked for, or as the replies so far show it.

Authority: the server's TIME. Between replies it is an estimate (`redis_clock`), good for when to look next and for views, never
for a decision, which scripts take by their own TIME. Errors: Unavailable where the server is asked and is away.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from rsched.runtime.clock import Clock
from rsched.runtime.log import get_logger
from rsched.store.redis_clock import UNSURE_MS, RedisClock

_log = get_logger("rsched.store")


class ShardClock:
    """The clock of the server that has a shard."""

    def __init__(
        self, process_clock: Clock, *, ask: Callable[[], Awaitable[int]], shard: str, on_step: Callable[[], None]
    ) -> None:
        """Begins without knowing anything of the server's clock.

        Args:
            process_clock: The process' own clock, by which time passes between replies.
            ask: Asks the server for its time, in ms.
            shard: The shard's hash tag, for the log.
            on_step: Called when the server's clock is seen to have stepped.
        """
        self._process_clock, self._ask, self._shard, self._on_step = process_clock, ask, shard, on_step
        self._estimate = RedisClock(process_clock)

    def now_ms(self) -> int:
        """Returns the server's time (ms) as far as this process knows it."""
        return self._estimate.now_ms()

    async def read(self) -> int:
        """Asks the server for its time.

        Returns:
            The time, in ms.

        Raises:
            Unavailable: Redis does not answer.
        """
        sent_at = self._process_clock.boot_ms()
        now = await self._ask()
        self.saw(now, sent_at=sent_at)
        return now

    @property
    def stepped_recently(self) -> bool:
        """Whether the server's clock has stepped within the last lease, as replies so far show.

        No attempt is reaped and no occurrence judged too late until the workers have renewed by the new time.
        """
        return self._estimate.unsure

    def saw(self, redis_ms: int, *, sent_at: int) -> None:
        """Learns from a reply that has just arrived.

        Args:
            redis_ms: The server's time at which it made the reply.
            sent_at: When the command was sent, by the process' boot clock (ms).
        """
        step = self._estimate.saw(redis_ms, sent_at=sent_at)
        if not step:
            return
        _log.error(
            "Redis' clock has stepped by about %d ms against this process' own: nothing is reaped or judged too late for %d s",
            step, UNSURE_MS // 1000, extra={"fields": {"shard": self._shard}},
        )  # fmt: skip
        self._on_step()
