"""The store: one object a shard, with every verb as a method."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import redis.asyncio as aioredis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError, ResponseError

from rsched.runtime.clock import Clock
from rsched.store.failures import translate
from rsched.store.forecast import ForecastVerbs
from rsched.store.jobs import JobVerbs
from rsched.store.keys import Keys
from rsched.store.reconcile import RepairVerbs
from rsched.store.recovery import RecoveryVerbs
from rsched.store.scripts import load, verbs
from rsched.store.ticks import TickVerbs
from rsched.store.work import WorkVerbs

SOCKET_TIMEOUT_S = 10.0
_FACTS = (
    "maxmemory", "maxmemory-policy", "appendonly", "appendfsync", "min-replicas-to-write", "min-replicas-max-lag",
)  # fmt: skip


def shard_tags(shards: int) -> list[str]:
    """The hash tags of a deployment's shards."""
    return [f"s{i}" for i in range(shards)]


class _Client(aioredis.Redis):
    """Notes on an error which command it was and on which keys; servers don't say."""

    async def execute_command(self, *args: Any, **options: Any) -> Any:
        try:
            return await super().execute_command(*args, **options)  # type: ignore[no-untyped-call]
        except ResponseError as error:
            error.add_note(" ".join(str(a) for a in args if a is args[0] or (isinstance(a, str) and ":{" in a)))
            raise


def connect(url: str) -> aioredis.Redis:
    """A client for redis://, rediss:// and unix:// URLs. Never retries by itself: a verb's caller decides about that."""
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


class Store(JobVerbs, TickVerbs, WorkVerbs, RecoveryVerbs, ForecastVerbs, RepairVerbs):
    """All verbs of one shard. Not a verb decides by a local clock; every error of the server is Unavailable."""

    @classmethod
    def open(cls, url: str, *, prefix: str, shard: str, clock: Clock) -> Store:
        # Now rather than at first use: files that a new release replaces meanwhile must not mix with ours.
        for verb in verbs():
            load(verb)
        return cls(connect(url), Keys(prefix, shard), clock)

    async def aclose(self) -> None:
        await self.client.aclose()

    async def signals(self) -> AsyncIterator[tuple[str, str]]:
        """Wake-ups as (kind, argument): due ms, work queue, cancel run. Ends with Unavailable when the link breaks."""
        pubsub = self.client.pubsub(ignore_subscribe_messages=True)
        try:
            await pubsub.subscribe(self.keys.signals)
            while True:
                message = await pubsub.get_message(ignore_subscribe_messages=True, timeout=None)
                if message and message["type"] == "message":
                    kind, _, argument = message["data"].decode().partition(" ")
                    yield kind, argument
        except (RedisError, OSError, RuntimeError) as error:
            raise translate(error if isinstance(error, RedisError) else RedisError(str(error))) from error
        finally:
            await pubsub.aclose()  # type: ignore[no-untyped-call]

    async def server_facts(self) -> dict[str, Any]:
        """INFO, and those CONFIG values that promises rest on ("config:<name>", "" where the server won't tell)."""
        facts: dict[str, Any] = dict(await self._redis(self.client.info()))
        for name in _FACTS:
            found = await self._redis(self._config(name))
            values = [v.decode() if isinstance(v, bytes) else str(v) for v in found.values()]
            facts[f"config:{name}"] = values[0] if values else ""
        return facts

    async def _config(self, name: str) -> dict[Any, Any]:
        try:
            return dict(await self.client.config_get(name))
        except ResponseError:
            return {}  # managed servers forbid it, or have another name for it
