"""HTTP calls: 2xx is success. No redirects, no proxy from the environment, http and https only, bodies bounded."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec
import pycurl

from rsched.core.jobs.model import HttpTarget
from rsched.worker.attempt import Attempt
from rsched.worker.context import JobContext, header_instant
from rsched.worker.targets.base import Begin, TargetFailed
from rsched.worker.targets.curl import CurlLoop

KEPT_BODY = 64 * 1024
MAX_BODY = 1024 * 1024
SHOWN_BODY = 500
CONNECT_TIMEOUT_MS = 10_000
_BACKSTOP_S = 1.0  # curl's own timeout gives the better message; ours comes after it

# Those that carry the run's identity, and those that frame the message.
_RESERVED = re.compile(r"idempotency-key|x-rsched-.*|traceparent|content-length|transfer-encoding", re.IGNORECASE)
_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+", re.ASCII)
_encode = msgspec.json.Encoder().encode


def request_headers(user: Mapping[str, str], context: JobContext, *, has_body: bool) -> list[bytes]:
    """Header lines; those of the user can't override the run's. TargetFailed on a malformed one."""
    lines = {
        "Idempotency-Key": context.idempotency_key,
        "X-Rsched-Job-Id": context.job_id,
        "X-Rsched-Run-Id": context.run_id,
        "X-Rsched-Scheduled-At": header_instant(context.scheduled_at),
        "X-Rsched-Attempt": str(context.attempt),
        "X-Rsched-Fence": str(context.fence),
        "X-Rsched-Deadline": header_instant(context.deadline),
        "traceparent": context.traceparent,
    }
    given = set()
    for name, value in user.items():
        if not _NAME.fullmatch(name) or any(c in value for c in "\r\n\0"):
            raise TargetFailed(f"header {name[:60]!r} is malformed")
        if not _RESERVED.fullmatch(name):
            lines[name] = value
            given.add(name.lower())
    if has_body and "content-type" not in given:
        lines["Content-Type"] = "application/json"
    # curl drops a header without a value unless it ends in a semicolon, and takes "Name:" for "leave out your own":
    # it would wait for a 100 before a larger body, and call an empty one a form.
    out = [f"{name}: {value}".encode() if value else f"{name};".encode() for name, value in lines.items()]
    out.extend(
        f"{name}:".encode() for name in ("Expect", "Content-Type") if name not in lines and name.lower() not in given
    )
    return out


class _Body:
    """Keeps the first KEPT_BODY bytes; refuses to go on after MAX_BODY."""

    def __init__(self) -> None:
        self.kept = bytearray()
        self.size = 0

    def write(self, data: bytes) -> int | None:
        self.size += len(data)
        if len(self.kept) < KEPT_BODY:
            self.kept += data[: KEPT_BODY - len(self.kept)]
        return -1 if self.size > MAX_BODY else None

    def shown(self) -> str:
        return self.kept[: SHOWN_BODY * 4].decode(errors="replace")[:SHOWN_BODY]


class HttpCalls:
    def __init__(self) -> None:
        self._curl = CurlLoop()

    async def call(self, attempt: Attempt, begin: Begin) -> None:
        """TargetFailed with the status and the start of the body, or with what the network said."""
        target = attempt.definition.target
        assert isinstance(target, HttpTarget)
        begin(attempt, spare_s=_BACKSTOP_S)
        handle, body = self._curl.handle(), _Body()
        timeout_ms = max(1, int(attempt.definition.timeout_s * 1000))
        try:
            self._prepare(handle, target, attempt, timeout_ms=timeout_ms, body=body)
            code, text = await self._curl.perform(handle)
            status = handle.getinfo(pycurl.RESPONSE_CODE)
        finally:
            self._curl.done(handle)
        if code == 0 and 200 <= status < 300:
            return
        if body.size > MAX_BODY:
            raise TargetFailed(f"HTTP {status}: the response body is over {MAX_BODY} bytes")
        if code == pycurl.E_OPERATION_TIMEDOUT:
            raise TargetFailed(f"timed out after {attempt.definition.timeout_s:g} s: {text}")
        if code != 0:
            raise TargetFailed(f"the call failed: {text or f'curl error {code}'}")
        raise TargetFailed(f"HTTP {status}: {body.shown()}" if body.size else f"HTTP {status}")

    def _prepare(self, handle: Any, target: HttpTarget, attempt: Attempt, *, timeout_ms: int, body: _Body) -> None:
        value = target.body if target.body is not None else attempt.definition.payload
        method = target.method
        data = None
        if method != "HEAD" and value is not None:
            data = _encode(value)
        elif method in ("POST", "PUT", "PATCH"):
            data = b""
        try:
            handle.setopt(pycurl.URL, target.url.encode())
            handle.setopt(pycurl.PROTOCOLS, pycurl.PROTO_HTTP | pycurl.PROTO_HTTPS)
        except (pycurl.error, ValueError) as error:
            raise TargetFailed(f"the URL cannot be used: {error.args[-1]}") from error
        handle.setopt(pycurl.FOLLOWLOCATION, 0)
        handle.setopt(pycurl.PROXY, "")
        handle.setopt(pycurl.NOPROXY, "*")
        handle.setopt(pycurl.NOSIGNAL, 1)
        handle.setopt(pycurl.TIMEOUT_MS, timeout_ms)
        handle.setopt(pycurl.CONNECTTIMEOUT_MS, min(CONNECT_TIMEOUT_MS, timeout_ms))
        handle.setopt(pycurl.USERAGENT, "rsched")
        handle.setopt(pycurl.HTTPHEADER, request_headers(target.headers, attempt.context(), has_body=bool(data)))
        handle.setopt(pycurl.WRITEFUNCTION, body.write)
        if data is not None:
            handle.setopt(pycurl.POSTFIELDS, data)
        if method == "HEAD":
            handle.setopt(pycurl.NOBODY, 1)
        else:
            handle.setopt(pycurl.CUSTOMREQUEST, method)

    def close(self) -> None:
        self._curl.close()
