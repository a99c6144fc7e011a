from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable

import pytest

from rsched.core.errors import Misconfigured
from rsched.core.settings import WorkerSettings
from rsched.runtime.metrics import Metrics
from rsched.runtime.metrics_server import MetricsServer, served


async def ask(port: int, request: str) -> str:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request.encode())
    try:
        answer = await reader.read()
    except ConnectionResetError:
        answer = b""
    writer.close()
    return answer.decode()


def serving(body: Callable[[MetricsServer], Awaitable[None]]) -> None:
    async def main() -> None:
        server = MetricsServer(Metrics("worker"))
        await server.start("127.0.0.1", 0)
        try:
            async with asyncio.timeout(10):
                await body(server)
        finally:
            server.close()

    asyncio.run(main())


def test_metrics_are_served_and_nothing_else() -> None:
    async def body(server: MetricsServer) -> None:
        answer = await ask(server.port, "GET /metrics?x=1 HTTP/1.1\r\nHost: x\r\n\r\n")
        head, _, text = answer.partition("\r\n\r\n")
        assert head.startswith("HTTP/1.1 200 OK\r\n")
        assert "Content-Type: text/plain" in head
        assert f"Content-Length: {len(text)}" in head
        assert "rsched_attempts_dropped_total 0.0\n" in text
        assert "process_cpu_seconds_total" in text
        assert (await ask(server.port, "HEAD /metrics HTTP/1.0\r\n\r\n")).endswith("\r\n\r\n")
        assert " 404 " in await ask(server.port, "GET / HTTP/1.1\r\n\r\n")
        assert " 405 " in await ask(server.port, "POST /metrics HTTP/1.1\r\n\r\n")

    serving(body)


def test_readers_that_talk_nonsense_or_hang_keep_nobody_else_out() -> None:
    async def body(server: MetricsServer) -> None:
        hanging = [await asyncio.open_connection("127.0.0.1", server.port) for _ in range(7)]
        assert await ask(server.port, "x" * 100_000) == ""
        assert " 200 " in await ask(server.port, "GET /metrics HTTP/1.1\r\n\r\n")
        for _, writer in hanging:
            writer.close()

    serving(body)


def test_a_scrape_is_answered_however_many_readers_sit_idle() -> None:
    async def body(server: MetricsServer) -> None:
        idle = [await asyncio.open_connection("127.0.0.1", server.port) for _ in range(30)]
        assert " 200 " in await ask(server.port, "GET /metrics HTTP/1.1\r\n\r\n")
        # The oldest made room, the newest are still served.
        assert await idle[0][0].read() == b""
        reader, writer = idle[-1]
        writer.write(b"GET /metrics HTTP/1.1\r\n\r\n")
        assert b" 200 " in await reader.read()
        for _, writer in idle:
            writer.close()

    serving(body)


def test_a_reader_that_sits_idle_is_closed_within_seconds() -> None:
    async def body(server: MetricsServer) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        assert await reader.read() == b""
        writer.close()

    serving(body)


def test_a_taken_port_is_refused_with_the_variable_to_change() -> None:
    async def main() -> None:
        with socket.create_server(("127.0.0.1", 0)) as taken:
            settings = WorkerSettings(metrics_port=taken.getsockname()[1])
            with pytest.raises(Misconfigured, match=r"RSCHED_WORKER_METRICS_PORT: 127\.0\.0\.1:"):
                async with served(Metrics("worker"), settings):
                    pass

    asyncio.run(main())


def test_port_0_serves_nothing() -> None:
    async def main() -> None:
        before = len(asyncio.all_tasks())
        async with served(Metrics("worker"), WorkerSettings()):
            assert len(asyncio.all_tasks()) == before

    asyncio.run(main())
