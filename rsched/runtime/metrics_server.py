"""Serves GET /metrics, and nothing else, for a process without an HTTP server; to a few readers at a time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Protocol

from prometheus_client import CONTENT_TYPE_LATEST

from rsched.core.errors import Misconfigured
from rsched.runtime.log import get_logger
from rsched.runtime.metrics import Metrics

_READERS = 8
_HEAD_BYTES = 8192
_TIMEOUT_S = 5.0


class MetricsSettings(Protocol):
    """The settings of a process that are used here."""

    @property
    def metrics_host(self) -> str:
        """The address to listen on."""

    @property
    def metrics_port(self) -> int:
        """The port to listen on; 0 for no metrics."""


@asynccontextmanager
async def served(metrics: Metrics, settings: MetricsSettings) -> AsyncIterator[None]:
    """Answers while the block runs.

    Args:
        metrics: What is served.
        settings: Where it is served.

    Raises:
        Misconfigured: The port cannot be listened on.
    """
    if not settings.metrics_port:
        yield
        return
    server = MetricsServer(metrics)
    await server.start(settings.metrics_host, settings.metrics_port)
    try:
        yield
    finally:
        server.close()


class MetricsServer:
    """A small HTTP server of one page.

    Args:
        metrics: What is served.

    Attributes:
        port: The port that it listens on; 0 before it is started.
    """

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._server: asyncio.Server | None = None
        # In the order of their arrival, so that one too many closes the oldest: idle readers must not keep a scrape out.
        self._writers: dict[asyncio.StreamWriter, None] = {}
        self.port = 0

    async def start(self, host: str, port: int) -> None:
        """Starts to listen.

        Args:
            host: The address to listen on.
            port: The port to listen on; 0 lets the system choose one.

        Raises:
            Misconfigured: The port cannot be listened on.
        """
        try:
            self._server = await asyncio.start_server(self._serve, host, port, limit=_HEAD_BYTES)
        except OSError as error:
            kind = self._metrics.kind.upper()
            raise Misconfigured(
                f"RSCHED_{kind}_METRICS_PORT: {host}:{port} can't be listened on ({error.strerror or error}); choose another "
                f"port or address (RSCHED_{kind}_METRICS_HOST), or 0 for no metrics"
            ) from None
        self.port = int(self._server.sockets[0].getsockname()[1])
        get_logger(f"rsched.{self._metrics.kind}").info("metrics are at http://%s:%d/metrics", host, self.port)

    def close(self) -> None:
        """Stops listening and ends all connections."""
        if self._server is not None:
            self._server.close()
        for writer in list(self._writers):
            writer.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._writers) >= _READERS:
            oldest = next(iter(self._writers))
            del self._writers[oldest]
            oldest.transport.abort()
        self._writers[writer] = None
        try:
            # A reader that is slow, gone or talks nonsense is dropped: it must not keep the process busy.
            with suppress(OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
                async with asyncio.timeout(_TIMEOUT_S):
                    head = await reader.readuntil(b"\r\n\r\n")
                    writer.write(self._answer(head))
                    await writer.drain()
                    writer.close()
                    await writer.wait_closed()
        finally:
            self._writers.pop(writer, None)
            writer.transport.abort()

    def _answer(self, head: bytes) -> bytes:
        method, _, rest = head.partition(b" ")
        path = rest.partition(b" ")[0].partition(b"?")[0]
        if path != b"/metrics":
            return _response("404 Not Found", b"only /metrics is here\n")
        if method not in (b"GET", b"HEAD"):
            return _response("405 Method Not Allowed", b"use GET\n")
        body = self._metrics.render()
        return _response("200 OK", body, kind=CONTENT_TYPE_LATEST, head_only=method == b"HEAD")


def _response(status: str, body: bytes, *, kind: str = "text/plain; charset=utf-8", head_only: bool = False) -> bytes:
    head = f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    return head.encode() + (b"" if head_only else body)
