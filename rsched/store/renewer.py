"""Renews leases from a thread of its own: a synchronous twin of `Runs.renew`, so that a busy event loop cannot starve it.

Authority and errors are those of `runs`.
"""

from __future__ import annotations

from collections.abc import Sequence

import redis
from redis.backoff import NoBackoff
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import NoScriptError, RedisError
from redis.retry import Retry

from rsched.core.errors import ShardClosed
from rsched.core.ids import RunId, WorkerId
from rsched.store.failures import translate
from rsched.store.keys import Keys
from rsched.store.run_values import RenewReply
from rsched.store.scripts import load


class SyncRenewer:
    """Renews the leases of one worker in one shard, over a connection of its own."""

    def __init__(self, url: str, keys: Keys, *, timeout_s: float = 3) -> None:
        """Makes the client; nothing is connected before the first call.

        Args:
            url: Where Redis is.
            keys: The shard's keys.
            timeout_s: How long a call may take.
        """
        self._client = redis.Redis.from_url(
            url, protocol=2, socket_timeout=timeout_s, socket_connect_timeout=timeout_s, retry=Retry(NoBackoff(), 0)
        )
        self._keys = keys

    def renew(self, worker: WorkerId, *, lease_ms: int, items: Sequence[tuple[RunId, int]]) -> RenewReply:
        """Renews the leases of (run, fence) by lease_ms from now.

        Raises:
            ShardClosed: The shard is not open on this server.
            Unavailable: Redis does not answer.
        """
        script = load("renew")
        argv = script.argv({"generation": "0", "worker": worker, "lease_ms": lease_ms}, items)
        try:
            try:
                reply = self._client.evalsha(script.sha, 1, self._keys.marker, *argv)
            except NoScriptError:
                reply = self._client.eval(script.source, 1, self._keys.marker, *argv)
        except (RedisError, OSError) as error:
            known = error if isinstance(error, RedisError) else RedisConnectionError(str(error))
            raise translate(known, script=script, marker=self._keys.marker) from error
        if reply[0] == b"closed":
            raise ShardClosed(f"shard {self._keys.shard} is not open on this server")
        return RenewReply(int(reply[1]), int(reply[2]), [t.decode() for t in reply[3]])

    def close(self) -> None:
        """Closes the connection."""
        self._client.close()
