from __future__ import annotations

import asyncio
import json
import re
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from rsched.core.jobs.model import HttpTarget
from rsched.core.states import RunState
from rsched.worker.app import App
from tests.worker.fake_store import definition, fetched
from tests.worker.harness import running


class Site:
    """A target: what it answers depends on the path; what it got is in `calls`."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, str, dict[str, str], bytes]] = []
        self.connections = 0
        self.over = threading.Event()
        site = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def setup(self) -> None:
                site.connections += 1
                super().setup()

            def log_message(self, *_: Any) -> None: ...

            def answer(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                site.calls.append((self.command, self.path, {k.lower(): v for k, v in self.headers.items()}, body))
                path = self.path
                try:
                    if path == "/huge":
                        self.send_response(200)
                        self.send_header("Connection", "close")
                        self.end_headers()
                        while not site.over.is_set():
                            self.wfile.write(b"x" * 65536)
                        return
                    if path == "/slow":
                        self.send_response(200)
                        self.send_header("Content-Length", "10")
                        self.end_headers()
                        self.wfile.write(b"1")
                        self.wfile.flush()
                        site.over.wait(10)
                        return
                    text = b"" if self.command == "HEAD" else b"said " + path.encode() + b"!" * 1000
                    self.send_response({"/500": 500, "/302": 302}.get(path, 200))
                    if path == "/302":
                        self.send_header("Location", "/elsewhere")
                    self.send_header("Content-Length", str(len(text)))
                    self.end_headers()
                    self.wfile.write(text)
                except OSError:
                    self.close_connection = True

            do_GET = do_POST = do_PUT = do_HEAD = do_DELETE = do_PATCH = answer

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}"


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    site = Site()
    thread = threading.Thread(target=site.server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield site
    site.over.set()
    site.server.shutdown()
    thread.join()
    site.server.server_close()


def loops() -> list[Any]:
    import uvloop

    return [asyncio.new_event_loop, uvloop.new_event_loop]


@pytest.fixture(params=loops(), ids=["asyncio", "uvloop"])
def call(request: pytest.FixtureRequest) -> Any:
    """Runs targets as one worker's attempts; gives (outcome, error) in their order."""

    def call(*targets: HttpTarget, **changes: Any) -> list[tuple[RunState, str]]:
        async def test() -> list[tuple[RunState, str]]:
            async with running(App(), http=True) as bench:
                bench.store.add(*(fetched(i, definition(t, **changes)) for i, t in enumerate(targets, 1)))
                await bench.until(lambda: len(bench.store.finished) == len(targets))
                done = sorted(bench.store.finished, key=lambda item: item.fence)
                return [(item.outcome, item.error) for item in done]

        with asyncio.Runner(loop_factory=request.param) as runner:
            return runner.run(test())

    return call


def test_a_call_carries_the_payload_and_the_identity_of_its_run(site: Site, call: Any) -> None:
    headers = {
        "X-Mine": "1",
        "idempotency-key": "forged",
        "X-RSCHED-Fence": "9",
        "Traceparent": "forged",
        "X-Empty": "",
    }
    target = HttpTarget(url=site.url + "/a?b=c", headers=headers)
    assert call(target, payload={"n": 1}) == [(RunState.SUCCEEDED, "")]
    ((method, path, got, body),) = site.calls
    assert (method, path, json.loads(body)) == ("POST", "/a?b=c", {"n": 1})
    run = "j_0123456789abc:1793000000001"
    expected = {
        "content-type": "application/json", "idempotency-key": run, "x-rsched-run-id": run,
        "x-rsched-job-id": "j_0123456789abc", "x-rsched-attempt": "1", "x-rsched-fence": "1", "x-mine": "1",
        "x-rsched-scheduled-at": "2026-10-26T07:33:20.001Z", "x-empty": "",
    }  # fmt: skip
    assert {k: got.get(k) for k in expected} == {**expected, "x-rsched-scheduled-at": got["x-rsched-scheduled-at"]}
    assert re.fullmatch(r"2026-\d\d-\d\dT\d\d:\d\d:\d\d\.001Z", got["x-rsched-scheduled-at"])
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", got["x-rsched-deadline"])
    assert re.fullmatch(r"00-[0-9a-f]{32}-[0-9a-f]{16}-01", got["traceparent"])
    assert "expect" not in got


def test_methods_and_bodies(site: Site, call: Any) -> None:
    done = call(
        HttpTarget(url=site.url, method="GET"),
        HttpTarget(url=site.url, method="HEAD", body=[1]),
        HttpTarget(url=site.url, method="POST"),
        HttpTarget(url=site.url, method="PUT", body=[1], headers={"Content-Type": "x/y"}),
        HttpTarget(url=site.url, method="DELETE"),
        HttpTarget(url=site.url, method="PATCH", body="é"),
    )
    assert {outcome for outcome, _ in done} == {RunState.SUCCEEDED}
    got = {method: (body, h.get("content-type")) for method, _, h, body in site.calls}
    assert got == {
        "GET": (b"", None), "HEAD": (b"", None), "POST": (b"", None), "PUT": (b"[1]", "x/y"),
        "DELETE": (b"", None), "PATCH": ('"é"'.encode(), "application/json"),
    }  # fmt: skip


def test_other_answers_than_2xx_fail_with_status_and_the_start_of_the_body(site: Site, call: Any) -> None:
    done = call(HttpTarget(url=site.url + "/500"), HttpTarget(url=site.url + "/302"))
    assert [outcome for outcome, _ in done] == [RunState.RETRYING] * 2
    assert done[0][1].startswith("HTTP 500: said /500!!!")
    assert len(done[0][1]) == len("HTTP 500: ") + 500
    assert done[1][1].startswith("HTTP 302")
    assert [path for _, path, _, _ in site.calls if path == "/elsewhere"] == []


def test_slow_and_endless_bodies_are_cut_off(site: Site, call: Any) -> None:
    ((_, slow),) = call(HttpTarget(url=site.url + "/slow"), timeout_s=0.2)
    assert slow.startswith("timed out after 0.2 s")
    ((_, huge),) = call(HttpTarget(url=site.url + "/huge"))
    assert huge == "HTTP 200: the response body is over 1048576 bytes"


def test_refused_connections_bad_schemes_and_bad_headers_say_so(call: Any) -> None:
    with socket.create_server(("127.0.0.1", 0)) as s:
        port = s.getsockname()[1]
    done = call(
        HttpTarget(url=f"http://127.0.0.1:{port}/"),
        HttpTarget(url="file:///etc/passwd"),
        HttpTarget(url="http://127.0.0.1/", headers={"a": "b\r\nX-Rsched-Fence: 9"}),
        HttpTarget(url="http://127.0.0.1/", headers={"a b": "c"}),
        HttpTarget(url="http://\0/"),
    )
    errors = [error for _, error in done]
    assert "connect" in errors[0]
    assert "file" in errors[1]
    assert errors[2:4] == ["header 'a' is malformed", "header 'a b' is malformed"]
    assert "URL" in errors[4]


def test_connections_are_reused(site: Site, call: Any) -> None:
    call(*(HttpTarget(url=site.url + f"/{i}") for i in range(100)))
    assert len(site.calls) == 100
    assert site.connections <= 10


def test_a_cancelled_call_is_aborted(site: Site) -> None:
    async def test() -> None:
        async with running(App(), http=True) as bench:
            one = fetched(1, definition(HttpTarget(url=site.url + "/slow")))
            bench.store.add(one)
            await bench.until(lambda: site.calls)
            bench.store.signal("cancel", one.run)
            await bench.until(lambda: [i.outcome for i in bench.store.finished] == [RunState.CANCELLED])

    asyncio.run(test())
