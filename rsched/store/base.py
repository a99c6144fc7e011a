"""How a verb is called: one EVALSHA with one NOSCRIPT fallback, replies told by their tag, Redis' clock kept at hand."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any

import redis.asyncio as aioredis
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import NoScriptError, RedisError, ResponseError
from redis.exceptions import TimeoutError as RedisTimeoutError

from rsched.core.errors import ShardClosed
from rsched.runtime.clock import Clock
from rsched.runtime.log import get_logger
from rsched.runtime.metrics import ALERTS, Metrics
from rsched.store.failures import passes, translate
from rsched.store.keys import Keys
from rsched.store.redis_clock import UNSURE_MS, RedisClock
from rsched.store.scripts import Script, Value, load

Reply = list[Any]
# Verbs that wait for their shard's recovery, or bring it about, are not told by a changed generation.
_FRESH = "0"
_log = get_logger("rsched.store")


class Base:
    """One shard. Not a verb among them reads a local clock to decide; every reply carries Redis' now."""

    def __init__(self, client: aioredis.Redis, keys: Keys, clock: Clock, *, shebang: bool = True) -> None:
        self.client, self.keys, self.clock = client, keys, clock
        self.generation = _FRESH
        self.on_new_generation: Callable[[], Awaitable[None]] | None = None
        # The process' own, where it serves any.
        self.metrics = Metrics()
        self._redis_clock = RedisClock(clock)
        self._shebang = shebang

    def now_ms(self) -> int:
        """Redis' clock as far as this process knows it."""
        return self._redis_clock.now_ms()

    async def time(self) -> int:
        """Redis' clock, asked for. Unavailable."""
        sent_at = self.clock.boot_ms()
        seconds, micros = await self._redis(self.client.time())
        now = int(seconds) * 1000 + int(micros) // 1000
        self._saw(now, sent_at=sent_at)
        return now

    @property
    def unsure_of_time(self) -> bool:
        """Whether Redis' clock has stepped within the last lease, as replies so far show: no attempt is reaped and no
        occurrence judged too late until the workers have renewed by the new time.
        """
        return self._redis_clock.unsure

    def _saw(self, redis_ms: int, *, sent_at: int) -> None:
        step = self._redis_clock.saw(redis_ms, sent_at=sent_at)
        if not step:
            return
        _log.error(
            "Redis' clock has stepped by about %d ms against this process' own: nothing is reaped or judged too late for %d s",
            step, UNSURE_MS // 1000, extra={"fields": {"shard": self.keys.shard}},
        )  # fmt: skip
        if self.metrics.kind in ALERTS.of:
            self.metrics.alert("clock_step")

    async def _redis(self, command: Any, script: Script | None = None) -> Any:
        """The reply. Unavailable for what passes, by itself or once people have repaired it; a bug of ours is raised as it is."""
        try:
            return await command
        except (RedisConnectionError, RedisTimeoutError, OSError) as error:
            raise translate(error if isinstance(error, RedisError) else RedisConnectionError(str(error))) from error
        except ResponseError as error:
            if not passes(error):
                raise
            raise translate(error, script=script, marker=self.keys.marker) from error
        except RuntimeError as error:
            # uvloop's word for a connection that the server closed between our connecting and our writing.
            if "handler is closed" not in str(error):
                raise
            raise translate(RedisConnectionError(str(error))) from error

    async def _run(self, verb: str, argv: list[Value]) -> Reply:
        script = load(verb, shebang=self._shebang)
        sent = self.clock.perf_s()
        try:
            reply = await self._redis(self.client.evalsha(script.sha, 1, self.keys.marker, *argv), script)
        except NoScriptError:
            reply = await self._redis(self.client.eval(script.source, 1, self.keys.marker, *argv), script)
        self.metrics.script(verb, self.clock.perf_s() - sent)
        return list(reply)

    async def _call(self, verb: str, group: Iterable[Sequence[Value]] = (), **scalars: Value) -> Reply:
        """The reply after its tag and now, tag first: [tag, now, ...]. ShardClosed, Unavailable.

        A caller that knew an older generation has on_new_generation awaited before the verb is tried again.
        """
        script = load(verb, shebang=self._shebang)
        items = list(group)
        if self.generation == _FRESH:
            # Before the call: a recovery that comes between then shows as a changed generation.
            await self._learn_generation()
        while True:
            sent_at = self.clock.boot_ms()
            reply = await self._run(verb, script.argv({"generation": self.generation, **scalars}, items))
            tag = reply[0] = reply[0].decode()
            if tag == "closed":
                raise ShardClosed(f"shard {self.keys.shard} is not open on this server")
            if tag == "stale_generation":
                self.generation = reply[1].decode()
                if self.on_new_generation is not None:
                    await self.on_new_generation()
                continue
            reply[1] = int(reply[1])
            self._saw(reply[1], sent_at=sent_at)
            return reply

    async def _learn_generation(self) -> None:
        known = await self._redis(self.client.hget(self.keys.marker, "generation"))
        if known:
            self.generation = known.decode()


def tags(values: Iterable[bytes]) -> list[str]:
    return [v.decode() for v in values]
