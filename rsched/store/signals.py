"""Wake-ups over Pub/Sub, which save waiting and are never relied on: a lost one costs a poll interval.

Authority: none. Errors: Unavailable when the link breaks, after which the caller listens anew.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

from redis.exceptions import RedisError

from rsched.store.connection import Part
from rsched.store.failures import translate


class Signals(Part):
    """Listens for wake-ups."""

    async def listen(self) -> AsyncIterator[tuple[str, str]]:
        """Yields (kind, argument) of each wake-up: due ms, work queue, cancel run, journal.

        Raises:
            Unavailable: The link to Redis broke.
        """
        pubsub = self._redis.client.pubsub(ignore_subscribe_messages=True)
        try:
            await pubsub.subscribe(self._redis.keys.signals)
            while True:
                message = await pubsub.get_message(ignore_subscribe_messages=True, timeout=None)
                if message and message["type"] == "message":
                    kind, _, argument = message["data"].decode().partition(" ")
                    yield kind, argument
        except (RedisError, OSError, RuntimeError) as error:
            raise translate(error if isinstance(error, RedisError) else RedisError(str(error))) from error
        finally:
            await pubsub.aclose()  # type: ignore[no-untyped-call]
