"""How a verb is called: one EVALSHA with one NOSCRIPT fallback, replies told by their tag, Redis' clock kept at hand."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any

import redis.asyncio as aioredis
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import (
    NoScriptError,
    OutOfMemoryError,
    RedisError,
    ResponseError,
)
from redis.exceptions import TimeoutError as RedisTimeoutError

from rsched.core.errors import ShardClosed, Unavailable
from rsched.runtime.clock import Clock
from rsched.runtime.metrics import Metrics
from rsched.store.keys import Keys
from rsched.store.scripts import Value, load

Reply = list[Any]
# Verbs that wait for their shard's opening, or bring it about, are not told by a changed generation.
_FRESH = "0"


# First words of the replies of a server that is there and does not serve now; other errors of commands are bugs of ours.
_PASSING = frozenset({
    "ASK", "BUSY", "CLUSTERDOWN", "LOADING", "MASTERDOWN", "MISCONF", "MOVED", "NOREPLICAS", "READONLY", "TRYAGAIN",
    "UNBLOCKED", "UNKILLABLE",
})  # fmt: skip


def passes(error: ResponseError) -> bool:
    """Whether the same command may succeed later."""
    return _code(error) in _PASSING or isinstance(error, OutOfMemoryError)


def _code(error: RedisError) -> str:
    # The client takes the word off where it has a class for it.
    return getattr(error, "status_code", None) or str(error).partition(" ")[0]


def translate(error: RedisError) -> Unavailable:
    """What a client error means to callers: all of these pass."""
    if isinstance(error, OutOfMemoryError):
        return Unavailable(f"Redis is out of memory: {error}; raise maxmemory")
    if _code(error) in _PASSING:
        return Unavailable(f"Redis does not serve now ({_code(error)}): {error}")
    return Unavailable(f"Redis is away: {error}")


class RedisClock:
    """An estimate of Redis' clock between replies: the last one seen, and what passed since on the boot clock."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._redis_ms = 0
        self._boot_ms = 0

    def saw(self, redis_ms: int) -> None:
        """A reply made at redis_ms has just arrived; it is at least as late now."""
        if redis_ms >= self.now_ms():
            self._redis_ms, self._boot_ms = redis_ms, self._clock.boot_ms()
        elif self.now_ms() - redis_ms > 50:
            # The server's clock was stepped back, or the estimate ran ahead: follow the server.
            self._redis_ms, self._boot_ms = redis_ms, self._clock.boot_ms()

    def now_ms(self) -> int:
        if self._redis_ms == 0:
            return self._clock.wall_ms()
        return self._redis_ms + self._clock.boot_ms() - self._boot_ms


class Base:
    """One shard. Not a verb among them reads a local clock to decide; every reply carries Redis' now."""

    def __init__(self, client: aioredis.Redis, keys: Keys, clock: Clock, *, shebang: bool = True) -> None:
        self.client, self.keys, self.clock = client, keys, clock
        self.generation = _FRESH
        self.on_reopened: Callable[[], Awaitable[None]] | None = None
        # The process' own, where it serves any.
        self.metrics = Metrics()
        self._redis_clock = RedisClock(clock)
        self._shebang = shebang

    def now_ms(self) -> int:
        """Redis' clock as far as this process knows it."""
        return self._redis_clock.now_ms()

    async def time(self) -> int:
        """Redis' clock, asked for. Unavailable."""
        seconds, micros = await self._redis(self.client.time())
        now = int(seconds) * 1000 + int(micros) // 1000
        self._redis_clock.saw(now)
        return now

    async def _redis(self, command: Any) -> Any:
        try:
            return await command
        except (RedisConnectionError, RedisTimeoutError, OSError) as error:
            raise translate(error if isinstance(error, RedisError) else RedisConnectionError(str(error))) from error
        except ResponseError as error:
            if not passes(error):
                raise
            raise translate(error) from error
        except RuntimeError as error:
            # uvloop's word for a connection that the server closed between our connecting and our writing.
            if "handler is closed" not in str(error):
                raise
            raise translate(RedisConnectionError(str(error))) from error

    async def _run(self, verb: str, argv: list[Value]) -> Reply:
        script = load(verb, shebang=self._shebang)
        sent = self.clock.perf_s()
        try:
            reply = await self._redis(self.client.evalsha(script.sha, 1, self.keys.marker, *argv))
        except NoScriptError:
            reply = await self._redis(self.client.eval(script.source, 1, self.keys.marker, *argv))
        self.metrics.script(verb, self.clock.perf_s() - sent)
        return list(reply)

    async def _call(self, verb: str, group: Iterable[Sequence[Value]] = (), **scalars: Value) -> Reply:
        """The reply after its tag and now, tag first: [tag, now, ...]. ShardClosed, Unavailable.

        A caller that knew an older generation has on_reopened awaited before the verb is tried again.
        """
        script = load(verb, shebang=self._shebang)
        items = list(group)
        if self.generation == _FRESH:
            # Before the call: an opening that comes between then shows as a changed generation.
            await self._learn_generation()
        while True:
            reply = await self._run(verb, script.argv({"generation": self.generation, **scalars}, items))
            tag = reply[0] = reply[0].decode()
            if tag == "closed":
                raise ShardClosed(f"shard {self.keys.shard} is not open on this server")
            if tag == "reopened":
                self.generation = reply[1].decode()
                if self.on_reopened is not None:
                    await self.on_reopened()
                continue
            reply[1] = int(reply[1])
            self._redis_clock.saw(reply[1])
            return reply

    async def _learn_generation(self) -> None:
        known = await self._redis(self.client.hget(self.keys.marker, "generation"))
        if known:
            self.generation = known.decode()


def tags(values: Iterable[bytes]) -> list[str]:
    return [v.decode() for v in values]
