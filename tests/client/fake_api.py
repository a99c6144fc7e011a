"""An API of canned answers on a real socket, which remembers every request."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

import msgspec

JOB: dict[str, Any] = {
    "job_id": "j_0123456789abc",
    "name": "nightly",
    "team": "default",
    "schedule": {"cron": "0 2 * * *", "timezone": "UTC"},
    "target": {"type": "http", "url": "http://x/run"},
    "payload": None,
    "timeout_s": 60,
    "retry": {},
    "misfire_policy": "run_once",
    "misfire": {},
    "overlap": "allow",
    "priority": "normal",
    "tags": [],
    "state": "active",
    "next_run_at": "2026-10-26T02:00:00+00:00",
    "version": 1,
    "created_at": "2026-10-25T00:00:00.000Z",
    "updated_at": "2026-10-25T00:00:00.000Z",
}
RUN: dict[str, Any] = {
    "run_id": "j_0123456789abc:1793000000000",
    "job_id": "j_0123456789abc",
    "scheduled_at": "2026-10-25T20:33:20.000Z",
    "status": "SUCCEEDED",
    "attempt": 1,
    "created_at": "2026-10-25T20:33:15.000Z",
    "started_at": "2026-10-25T20:33:20.004Z",
    "finished_at": "2026-10-25T20:33:20.104Z",
    "duration_s": 0.1,
    "lateness_ms": 4,
    "error": None,
}


class Seen(NamedTuple):
    method: str
    path: str
    headers: dict[str, str]
    body: Any
    port: int


class Reply(NamedTuple):
    status: int
    body: Any
    headers: dict[str, str] = {}
    hang_up: bool = False


def problem(status: int, code: str, **more: Any) -> Reply:
    return Reply(status, {"type": "x", "title": "T", "status": status, "code": code, "detail": f"about {code}", **more})


class FakeApi:
    def __init__(self, answer: Callable[[Seen], Reply]) -> None:
        self.seen: list[Seen] = []
        self.answer = answer
        fake = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def _do(self) -> None:
                raw = self.rfile.read(int(self.headers.get("content-length", 0)))
                headers = {k.lower(): v for k, v in self.headers.items()}
                body = msgspec.json.decode(raw) if raw else None
                seen = Seen(self.command, self.path, headers, body, self.client_address[1])
                fake.seen.append(seen)
                reply = fake.answer(seen)
                if reply.hang_up:
                    self.close_connection = True
                    return
                out = b"" if reply.body is None else msgspec.json.encode(reply.body)
                self.send_response(reply.status)
                for name, value in reply.headers.items():
                    self.send_header(name, value)
                self.send_header("content-length", str(len(out)))
                self.end_headers()
                self.wfile.write(out)

            do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _do

            def log_message(self, *args: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"


@contextmanager
def serving(*replies: Reply) -> Iterator[FakeApi]:
    """The replies in turn, the last one for ever."""
    queue = list(replies)
    fake = FakeApi(lambda _: queue.pop(0) if len(queue) > 1 else queue[0])
    thread = threading.Thread(target=fake.server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield fake
    finally:
        fake.server.shutdown()
        fake.server.server_close()
        thread.join()


class SteppedClock:
    """Sleeping is what moves it."""

    def __init__(self) -> None:
        self.now = 0.0
        self.slept: list[float] = []

    def wall_ms(self) -> int:
        return int(self.now)

    def boot_ms(self) -> int:
        return int(self.now)

    def perf_s(self) -> float:
        return self.now / 1000

    async def sleep(self, ms: float) -> None:
        self.sleep_sync(ms)

    def sleep_sync(self, ms: float) -> None:
        self.now += ms
        self.slept.append(ms)
