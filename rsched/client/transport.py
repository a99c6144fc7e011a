"""One request over a pool of kept connections, tried again while that can help.

Every request is safe to repeat: POST carries an Idempotency-Key that stays the same over all tries, the other methods are
idempotent by nature. So whatever may pass (refused, broken off, 503) is tried again, up to a deadline.
"""

from __future__ import annotations

import contextlib
import http.client
import random
import ssl
import threading
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import urlencode, urlsplit

from rsched.client.problems import error_of
from rsched.core.errors import Misconfigured, NotFound, RschedError, Unavailable
from rsched.runtime.clock import Clock
from rsched.version import __version__

_FIRST_BACKOFF_MS = 100.0
_LAST_BACKOFF_MS = 3000.0
_KEPT = 16


class Answer(NamedTuple):
    status: int
    headers: Mapping[str, str]
    body: bytes


class Transport:
    """Thread-safe. timeout_s: for one try; retry_for_s: how long to go on trying, 0 for a single try."""

    def __init__(
        self,
        base_url: str,
        *,
        timeout_s: float,
        retry_for_s: float,
        headers: Mapping[str, str],
        ssl_context: ssl.SSLContext | None,
        clock: Clock,
    ) -> None:
        self.base_url = base_url
        try:
            parts = urlsplit(base_url)
            port = parts.port
        except ValueError:
            raise Misconfigured(f"{base_url!r} is no URL; write http://127.0.0.1:8080") from None
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise Misconfigured(
                f"the API's URL must be http:// or https://, such as http://127.0.0.1:8080, not {base_url!r}"
            )
        self._https = parts.scheme == "https"
        self._host, self._port, self._root = parts.hostname, port, parts.path.rstrip("/")
        self._timeout_s, self._retry_for_ms = timeout_s, retry_for_s * 1000
        self._headers = {"Accept": "application/json", "User-Agent": f"rsched-python/{__version__}", **headers}
        self._context = ssl_context
        self._clock = clock
        self._idle: list[http.client.HTTPConnection] = []
        self._lock = threading.Lock()
        self._closed = False

    def close(self) -> None:
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str | int | None] | None = None,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """The first answer that is no error. Raises what the problem document stands for, the last one when tries run out."""
        pairs = {k: v for k, v in (query or {}).items() if v is not None}
        url = f"{self._root}{path}" + (f"?{urlencode(pairs)}" if pairs else "")
        sent = {**self._headers, **(headers or {})}
        if body is not None:
            sent["Content-Type"] = "application/json"
        deadline = self._clock.boot_ms() + self._retry_for_ms
        pause, tried = _FIRST_BACKOFF_MS, False
        while True:
            error, wait_ms = self._once(method, url, body, sent)
            if isinstance(error, Answer):
                return error
            if method == "DELETE" and tried and isinstance(error, NotFound):
                return Answer(204, {}, b"")  # an earlier try, whose answer was lost, has done it
            tried = True
            wait_ms = max(wait_ms, pause * random.uniform(0.5, 1))
            if not error.retryable or self._clock.boot_ms() + wait_ms > deadline:
                raise error
            self._clock.sleep_sync(wait_ms)
            pause = min(pause * 2, _LAST_BACKOFF_MS)

    def _once(
        self, method: str, url: str, body: bytes | None, headers: Mapping[str, str]
    ) -> tuple[Answer | RschedError, float]:
        """The answer, or the error and the least ms to wait before another try."""
        try:
            answer = self._exchange(method, url, body, headers)
        except ssl.SSLCertVerificationError as error:
            return Misconfigured(f"{self.base_url}: {error.verify_message}; pass an ssl_context that trusts it"), 0
        except (OSError, http.client.HTTPException) as error:
            text = str(error) or type(error).__name__
            return Unavailable(f"{self.base_url} does not answer ({text}); is `rsched api` or `rsched up` running?"), 0
        if 200 <= answer.status < 300:
            return answer, 0
        after = answer.headers.get("retry-after", "")
        # Not the whole Retry-After at first: most outages here are a failover of a moment.
        wait_ms = min(float(after) * 1000, _LAST_BACKOFF_MS) * 0.25 if after.isascii() and after.isdigit() else 0
        return error_of(answer.status, answer.body), wait_ms

    def _exchange(self, method: str, url: str, body: bytes | None, headers: Mapping[str, str]) -> Answer:
        while True:
            connection, kept = self._take()
            try:
                connection.request(method, url, body=body, headers=dict(headers))
                response = connection.getresponse()
                answer = Answer(response.status, {k.lower(): v for k, v in response.getheaders()}, response.read())
            except BaseException as error:
                connection.close()
                # The server may close a kept connection at any time; that says nothing about the server.
                if kept and isinstance(error, ConnectionError | http.client.RemoteDisconnected):
                    continue
                raise
            self._requeue(connection, closing=response.will_close)
            return answer

    def _take(self) -> tuple[http.client.HTTPConnection, bool]:
        with self._lock:
            if self._closed:
                raise RuntimeError("this client is closed")
            if self._idle:
                return self._idle.pop(), True
        if self._https:
            context = self._context or ssl.create_default_context()
            return http.client.HTTPSConnection(self._host, self._port, timeout=self._timeout_s, context=context), False
        return http.client.HTTPConnection(self._host, self._port, timeout=self._timeout_s), False

    def _requeue(self, connection: http.client.HTTPConnection, *, closing: bool) -> None:
        with self._lock:
            if not closing and not self._closed and len(self._idle) < _KEPT:
                self._idle.append(connection)
                return
        with contextlib.suppress(OSError):
            connection.close()
