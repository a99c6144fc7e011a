"""The least HTTP server that answers each request with one job, for measuring clients: `python -m bench.canned_server`."""

from __future__ import annotations

import asyncio
from typing import cast

import uvloop

_JOB = (
    b'{"job_id":"j_0123456789abc","name":"nightly","team":"default","target":{"type":"http","url":"http://x/run"},'
    b'"payload":null,"timeout_s":60,"retry":{"max_attempts":3},"misfire_policy":"run_once","misfire":{},"overlap":"allow",'
    b'"priority":"normal","tags":[],"state":"active","next_run_at":"2026-10-26T02:00:00+00:00","version":1,'
    b'"created_at":"2026-10-25T00:00:00.000Z","updated_at":"2026-10-25T00:00:00.000Z",'
    b'"schedule":{"cron":"0 2 * * *","timezone":"UTC"}}'
)
_ANSWER = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%s" % (len(_JOB), _JOB)


class _Connection(asyncio.Protocol):
    """One connection of GET requests, which have no body."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are no subclasses of asyncio.Transport.
        self._transport, self._received = cast("asyncio.Transport", transport), b""

    def data_received(self, data: bytes) -> None:
        self._received += data
        complete = self._received.count(b"\r\n\r\n")
        if complete:
            self._received = self._received.rpartition(b"\r\n\r\n")[2]
            self._transport.write(_ANSWER * complete)


async def _serve() -> None:
    server = await asyncio.get_running_loop().create_server(_Connection, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(_serve())
