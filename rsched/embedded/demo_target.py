"""Serves the small HTTP target of the demo: /hello answers 200, /flaky fails the first attempt of each run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import anyio
from anyio.abc import SocketAttribute, SocketListener, SocketStream

from rsched.runtime.clock import Clock

_MOST = 65_536
_ANSWERS = {200: b"HTTP/1.1 200 OK", 404: b"HTTP/1.1 404 Not Found", 500: b"HTTP/1.1 500 Internal Server Error"}


class Arrival(NamedTuple):
    """One call of a run; at_ms is its instant by this machine's clock (ms, UTC)."""

    job_id: str
    run_id: str
    scheduled_at: str
    attempt: int
    at_ms: int


async def listen(folder: Path) -> tuple[SocketListener, int]:
    """Listens on the port of the last time where it is free, so that runs which were left over find their target.

    Returns:
        The listener and its port.
    """
    remembered = folder / "demo-port"
    try:
        last = int(remembered.read_text())
        listener = (await anyio.create_tcp_listener(local_host="127.0.0.1", local_port=last)).listeners[0]
    except (OSError, ValueError, OverflowError):
        listener = (await anyio.create_tcp_listener(local_host="127.0.0.1")).listeners[0]
    assert isinstance(listener, SocketListener)
    port = int(listener.extra(SocketAttribute.local_port))
    remembered.write_text(str(port))
    return listener, port


async def serve(listener: SocketListener, arrived: Callable[[Arrival], None], *, clock: Clock) -> None:
    """Answers calls until it is cancelled; `arrived` is called with each call of a run."""

    async def answer(stream: SocketStream) -> None:
        async with stream:
            try:
                path, headers = await _read(stream)
                arrival = _arrival(headers, clock.wall_ms())
                if arrival is not None:
                    arrived(arrival)
                failing = path == "/flaky" and arrival is not None and arrival.attempt == 1
                status = 500 if failing else 200 if path in ("/hello", "/flaky") else 404
                await stream.send(_ANSWERS[status] + b"\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            except (anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError):
                return

    await listener.serve(answer)


async def _read(stream: SocketStream) -> tuple[str, dict[str, str]]:
    """Returns the path, and the headers by lower-case name; the body is read and dropped."""
    raw = b""
    while b"\r\n\r\n" not in raw and len(raw) < _MOST:
        raw += await stream.receive()
    head, _, body = raw.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    length = headers.get("content-length", "0")
    left = min(int(length), _MOST) - len(body) if length.isdigit() else 0
    while left > 0:
        left -= len(await stream.receive())
    return first.partition(" ")[2].partition(" ")[0], headers


def _arrival(headers: dict[str, str], at_ms: int) -> Arrival | None:
    """Returns what a call says of its run; None where rsched did not make the call."""
    job, run = headers.get("x-rsched-job-id", ""), headers.get("x-rsched-run-id", "")
    attempt = headers.get("x-rsched-attempt", "")
    if not (job and run and attempt.isdigit()):
        return None
    return Arrival(job, run, headers.get("x-rsched-scheduled-at", ""), int(attempt), at_ms)
