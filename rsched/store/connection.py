"""How a part of the store speaks to one shard: scripts by name, replies by tag, errors of the client in our own words.

Authority: the server's replies alone. The generation that a process knows goes along with every verb, and a reply that names a
newer one is first told to whoever asked for it (`on_new_generation`). A verb is never repeated here because of an error: its
caller decides that. Errors: Unavailable for all that passes, ShardClosed where the shard is not open on this server; anything
else is a bug.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any

import redis.asyncio as aioredis
from redis.asyncio.client import Pipeline
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import NoScriptError, RedisError, ResponseError
from redis.exceptions import TimeoutError as RedisTimeoutError

from rsched.core.errors import ShardClosed
from rsched.runtime.clock import Clock
from rsched.runtime.metrics import ALERTS, Metrics
from rsched.store.clock import ShardClock
from rsched.store.failures import passes, translate
from rsched.store.keys import Keys
from rsched.store.scripts import Script, Value, load

Reply = list[Any]
SOCKET_TIMEOUT_S = 10.0
# Verbs that wait for their shard's recovery, or bring it about, are not told by a changed generation.
_FRESH = "0"


class _Client(aioredis.Redis):
    """Notes on an error which command it was and on which keys; servers do not say."""

    async def execute_command(self, *args: Any, **options: Any) -> Any:
        try:
            return await super().execute_command(*args, **options)  # type: ignore[no-untyped-call]
        except ResponseError as error:
            error.add_note(" ".join(str(a) for a in args if a is args[0] or (isinstance(a, str) and ":{" in a)))
            raise


def connect(url: str) -> aioredis.Redis:
    """Returns a client that never retries by itself, as a verb's caller decides about that.

    Args:
        url: A redis://, rediss:// or unix:// URL. Nothing is connected before the first command.
    """
    client = _Client.from_url(
        url,
        protocol=2,
        decode_responses=False,
        socket_timeout=SOCKET_TIMEOUT_S,
        socket_connect_timeout=3,
        retry=Retry(NoBackoff(), 0),
    )
    client.set_response_callback("XREAD", _raw)  # type: ignore[arg-type]
    return client


def _raw(reply: Any, **_: Any) -> Any:
    return reply


class Connection:
    """The one caller of a shard's scripts and commands, shared by all parts of a store.

    Attributes:
        client: The client of the server that has the shard.
        keys: The shard's keys.
        process_clock: The process' own clock, by which waits and durations are measured; it never decides anything.
        clock: Redis' clock as the replies show it.
        generation: The shard's generation as far as this process knows it, "0" until it was read.
        on_new_generation: Awaited when a reply shows that a caller knew an older generation, before the verb is tried again.
        metrics: The metrics of the process, where it serves any.
    """

    def __init__(self, client: aioredis.Redis, keys: Keys, process_clock: Clock, *, shebang: bool = True) -> None:
        """Takes a client that is not connected yet.

        Args:
            client: As `connect` makes it.
            keys: The shard's keys.
            process_clock: The process' own clock.
            shebang: False leaves the `#!lua` line of scripts out, which fakeredis does not know.
        """
        self.client, self.keys, self.process_clock = client, keys, process_clock
        self.generation = _FRESH
        self.on_new_generation: Callable[[], Awaitable[None]] | None = None
        self.metrics = Metrics()
        self.clock = ShardClock(process_clock, ask=self.server_time, shard=keys.shard, on_step=self._count_step)
        self._shebang = shebang

    def _count_step(self) -> None:
        if self.metrics.kind in ALERTS.of:
            self.metrics.alert("clock_step")

    async def server_time(self) -> int:
        """Returns the server's time, in ms."""
        seconds, micros = await self.ask(self.client.time())
        return int(seconds) * 1000 + int(micros) // 1000

    def pipeline(self) -> Pipeline:
        """Returns an empty pipeline without a transaction, whose `execute()` is given to `ask`."""
        return self.client.pipeline(transaction=False)

    async def ask(self, command: Any, script: Script | None = None) -> Any:
        """Awaits a command of the client.

        Args:
            command: What the client's method returned.
            script: The script that the command runs, if any, for the error's text.

        Returns:
            The server's reply, as the client decodes it.

        Raises:
            Unavailable: For what passes, by itself or once people have repaired it.
        """
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

    async def run(self, verb: str, argv: list[Value]) -> Reply:
        """Runs a script with positional arguments and returns its reply as it came. Callers outside of tests want `call`."""
        script = load(verb, shebang=self._shebang)
        sent = self.process_clock.perf_s()
        try:
            reply = await self.ask(self.client.evalsha(script.sha, 1, self.keys.marker, *argv), script)
        except NoScriptError:
            reply = await self.ask(self.client.eval(script.source, 1, self.keys.marker, *argv), script)
        self.metrics.script(verb, self.process_clock.perf_s() - sent)
        return list(reply)

    async def call(self, verb: str, group: Iterable[Sequence[Value]] = (), **scalars: Value) -> Reply:
        """Runs a verb of lua/ with the arguments that its header names.

        Args:
            verb: The script's name.
            group: The items of the trailing list, each with the values that the header names, in their order.
            **scalars: The other arguments, the generation apart.

        Returns:
            The reply: its tag, Redis' now (ms), then what the header says.

        Raises:
            ShardClosed: The shard is not open on this server.
            Unavailable: Redis does not answer.
        """
        script = load(verb, shebang=self._shebang)
        items = list(group)
        if self.generation == _FRESH:
            # Before the call: a recovery that comes between then shows as a changed generation.
            await self._learn_generation()
        while True:
            sent_at = self.process_clock.boot_ms()
            reply = await self.run(verb, script.argv({"generation": self.generation, **scalars}, items))
            tag = reply[0] = reply[0].decode()
            if tag == "closed":
                raise ShardClosed(f"shard {self.keys.shard} is not open on this server")
            if tag == "stale_generation":
                self.generation = reply[1].decode()
                if self.on_new_generation is not None:
                    await self.on_new_generation()
                continue
            reply[1] = int(reply[1])
            self.clock.saw(reply[1], sent_at=sent_at)
            return reply

    async def _learn_generation(self) -> None:
        known = await self.ask(self.client.hget(self.keys.marker, "generation"))
        if known:
            self.generation = known.decode()


class Part:
    """A part of the store: verbs that serve one purpose, over a connection that all parts share."""

    def __init__(self, redis: Connection) -> None:
        """Takes the connection of the shard."""
        self._redis = redis


def tags(values: Iterable[bytes]) -> list[str]:
    """Returns the tags of a reply's items as text."""
    return [value.decode() for value in values]
