"""The real Store with its real scripts, on a Redis inside this process (fakeredis) whose clock is a test's.

fakeredis knows neither `INFO` nor the `#!lua` line. The first it is taught here; without the second the scripts are the same.
What only a server can show (memory, restarts, `allow-oom`, two processes) is tested on a real one.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import fakeredis
import fakeredis.aioredis
from fakeredis._commands import command
from fakeredis._socket._fakesocket import FakeSocket
from redis.exceptions import NoScriptError

from rsched.core.errors import Unavailable
from rsched.core.ids import RunId, WorkerId
from rsched.runtime.clock import Clock
from rsched.store.connection import Connection, Reply, _raw
from rsched.store.keys import Keys
from rsched.store.renewer import SyncRenewer
from rsched.store.run_values import RenewReply
from rsched.store.scripts import Value
from rsched.store.store import Store


class RedisInProcess(fakeredis.FakeServer):
    """One server. run_id: what INFO says of it; another one is what a restart looks like to the scripts."""

    def __init__(self, clock: Clock) -> None:
        super().__init__(version=(7, 0))
        self.clock = clock
        self.run_id = "a" * 40


@command(name="info", fixed=(), repeat=(bytes,))
def _info(self: Any, *sections: bytes) -> bytes:
    run_id = getattr(self._server, "run_id", "a" * 40)
    return f"redis_version:7.0.0\r\nrun_id:{run_id}\r\nmaster_replid:{run_id}\r\n".encode()


@command((), name="time")
def _time(self: Any) -> list[bytes]:
    seconds, ms = divmod(self._server.clock.wall_ms(), 1000)
    return [str(seconds).encode(), str(ms * 1000).encode()]


for _taught in (_info, _time):
    setattr(FakeSocket, _taught.__name__, _taught)


def connect(server: RedisInProcess) -> fakeredis.aioredis.FakeRedis:
    """Returns a client of that server, set up as `rsched.store.connection.connect` sets up one of a real server."""
    client = fakeredis.aioredis.FakeRedis(server=server, protocol=2, decode_responses=False)
    client.set_response_callback("XREAD", _raw)  # type: ignore[arg-type]
    return client


class OrderedConnection(Connection):
    """A connection whose verbs meet the faults that a test orders, by the name of their script.

    before, after: awaited once, right before or after the script has run. lose: replies that are lost after the script took
    effect, one a mention. away: nothing reaches the server.
    """

    def __init__(self, server: RedisInProcess, *, prefix: str = "t") -> None:
        super().__init__(connect(server), Keys(prefix, "s0"), server.clock, shebang=False)
        self.before: dict[str, Callable[[], Awaitable[object]]] = {}
        self.after: dict[str, Callable[[], Awaitable[object]]] = {}
        self.lose: list[str] = []
        self.away = False

    async def run(self, verb: str, argv: list[Value]) -> Reply:
        if self.away:
            raise Unavailable("Redis is away")
        if verb in self.before:
            await self.before.pop(verb)()
        reply = await super().run(verb, argv)
        if verb in self.after:
            await self.after.pop(verb)()
        if verb in self.lose:
            self.lose.remove(verb)
            raise Unavailable("the reply was lost")
        return reply


class OrderedStore(Store):
    """The store on a server in this process. orders: the faults that its verbs meet."""

    def __init__(self, server: RedisInProcess, *, prefix: str = "t") -> None:
        self.orders = OrderedConnection(server, prefix=prefix)
        super().__init__(self.orders)
        self.in_process = server


class _WithoutShebang:
    """A synchronous client that takes scripts as a real server does."""

    def __init__(self, server: RedisInProcess) -> None:
        self.redis = fakeredis.FakeRedis(server=server, protocol=2)

    def evalsha(self, sha: str, *_: Value) -> Any:
        raise NoScriptError(sha)

    def eval(self, source: str, *args: Value) -> Any:
        return self.redis.eval(source.partition("\n")[2] if source.startswith("#!") else source, *args)  # type: ignore[arg-type]

    def close(self) -> None:
        self.redis.close()


class OrderedRenewer(SyncRenewer):
    """The renewer of a worker's thread. away: it reaches no server. renewed: how often it was called."""

    def __init__(self, server: RedisInProcess, *, prefix: str = "t") -> None:
        self._client: Any = _WithoutShebang(server)
        self._keys = Keys(prefix, "s0")
        self.away = False
        self.renewed = 0

    def renew(self, worker: WorkerId, *, lease_ms: int, items: Sequence[tuple[RunId, int]]) -> RenewReply:
        self.renewed += 1
        if self.away:
            raise Unavailable("Redis is away")
        return super().renew(worker, lease_ms=lease_ms, items=items)
