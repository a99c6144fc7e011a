# Generated from rsched/client/aio/connection.py by tools/sync_client.py (`make docs`); do not edit.
"""Sends requests over a pool of kept connections, and tries again while that can help."""

from __future__ import annotations

from typing import TypeVar

from pyreqwest.client import SyncClientBuilder
from pyreqwest.exceptions import PyreqwestError

from rsched.client.attempts import Attempts
from rsched.client.request import Answer, Request, decode
from rsched.client.server import Server
from rsched.core.errors import RschedError
from rsched.runtime.clock import Clock

T = TypeVar("T")


class Connection:
    """The way to one server, for any number of calls at once.

    Args:
        server: Where it is and how it is reached.
        retry_for_s: How long to go on trying a request (seconds); 0 for a single try.
        clock: Waits between tries.
    """

    def __init__(self, server: Server, *, retry_for_s: float, clock: Clock) -> None:
        self._server, self._retry_for_ms, self._clock = server, retry_for_s * 1000, clock
        self._http = server.configure(SyncClientBuilder()).build()

    def close(self) -> None:
        """Closes all connections."""
        self._http.close()

    def call(self, request: Request, kind: type[T]) -> T:
        """Sends a request, and reads its answer as this type."""
        return decode(self.send(request), kind)

    def send(self, request: Request) -> Answer:
        """Sends a request until it is answered with a success.

        Raises:
            RschedError: What the last answer stands for.
        """
        attempts = Attempts(request.method, retry_for_ms=self._retry_for_ms, clock=self._clock)
        while True:
            verdict = attempts.after(self._try(request))
            if isinstance(verdict, Answer):
                return verdict
            if verdict:
                self._clock.sleep_sync(verdict)

    def _try(self, request: Request) -> Answer | RschedError:
        builder = self._http.request(request.method, self._server.url + request.target).headers(request.headers)
        if request.body is not None:
            builder = builder.header("Content-Type", "application/json").body_bytes(request.body)
        try:
            response = builder.build().send()
            body = bytes(response.bytes())
        except PyreqwestError as error:
            return self._server.error(error)
        return Answer(response.status, response.get_header("retry-after") or "", body)
