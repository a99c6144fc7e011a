"""Durable creates through the HTTP API: each is answered when it is in the ledger."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Coroutine
from contextlib import AsyncExitStack
from functools import partial
from typing import Any

import anyio

from bench.figures import circumstances, latency, used
from rsched.embedded.process import free_port
from rsched.runtime.clock import Clock
from tests.support.deployment import deployment

_CONCURRENT = 50
_BATCHES = 3


class _Connection:
    """As little of an HTTP client as will do: it shares the cores with what it measures."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    @classmethod
    async def open(cls, port: int) -> _Connection:
        return cls(*await asyncio.open_connection("127.0.0.1", port))

    async def request(self, method: str, path: str, body: bytes = b"") -> int:
        """The status; the answer's body is read and dropped."""
        head = (
            f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\n\r\n"
        )
        self._writer.write(head.encode() + body)
        answer = await self._reader.readuntil(b"\r\n\r\n")
        length = 0
        for line in answer.split(b"\r\n"):
            name, _, value = line.partition(b":")
            if name.lower() == b"content-length":
                length = int(value)
        await self._reader.readexactly(length)
        return int(answer.split(b" ", 2)[1])

    def close(self) -> None:
        self._writer.close()


def _spec(name: str) -> dict[str, Any]:
    return {
        "name": name,
        "schedule": {"cron": "0 2 * * *", "timezone": "Asia/Kolkata"},
        "target": {"type": "http", "url": "https://billing.internal/run-invoices"},
    }


def _body(name: str) -> bytes:
    return json.dumps(_spec(name)).encode()


async def _batches(name: str, *, jobs: int, batches: int, at_once: int, port: int, clock: Clock) -> dict[str, Any]:
    """Batches of `jobs` jobs, `at_once` under way; their bodies are made beforehand."""
    bodies = [
        json.dumps({"jobs": [_spec(f"{name}-{n}-{i}") for i in range(jobs)]}).encode() for n in range(batches * at_once)
    ]
    took_ms: list[float] = []
    refused = 0
    began = clock.perf_s()

    async def send() -> None:
        nonlocal refused
        connection = await _Connection.open(port)
        while bodies:
            body = bodies.pop()
            sent = clock.perf_s()
            status = await connection.request("POST", "/v1/jobs:batch", body)
            took_ms.append(round((clock.perf_s() - sent) * 1000, 2))
            refused += status != 201
        connection.close()

    async with anyio.create_task_group() as group:
        for _ in range(at_once):
            group.start_soon(send)
    return {
        "connections": at_once,
        "jobs_per_batch": jobs,
        "creates_per_s": round(len(took_ms) * jobs / (clock.perf_s() - began)),
        "answer": latency(took_ms),
        "refused": refused,
    }


async def _creates(name: str, *, connections: int, seconds: float, port: int, clock: Clock) -> dict[str, Any]:
    took_ms: list[float] = []
    refused = 0
    began = clock.perf_s()

    async def connected(k: int) -> None:
        nonlocal refused
        connection = await _Connection.open(port)
        n = 0
        while clock.perf_s() - began < seconds:
            n += 1
            sent = clock.perf_s()
            status = await connection.request("POST", "/v1/jobs", _body(f"{name}-{k}-{n}"))
            took_ms.append(round((clock.perf_s() - sent) * 1000, 2))
            refused += status != 201
        connection.close()

    async with anyio.create_task_group() as group:
        for k in range(connections):
            group.start_soon(connected, k)
    took = clock.perf_s() - began
    return {
        "connections": connections,
        "creates_per_s": round(len(took_ms) / took),
        "answer": latency(took_ms),
        "refused": refused,
    }


async def measure(*, seconds: float, batch: int, clock: Clock) -> dict[str, Any]:
    port = free_port()
    async with AsyncExitStack() as stack:
        w = await stack.enter_async_context(deployment({"RSCHED_API_PORT": str(port)}, clock=clock))
        for name in ("recorder", "scheduler", "worker-1", "api"):
            w.fleet.start(name)
        await w.until_open()

        async def ready() -> bool:
            try:
                connection = await _Connection.open(port)
                status = await connection.request("GET", "/readyz")
                connection.close()
            except (OSError, asyncio.IncompleteReadError):
                return False
            return status == 200

        await w.fleet.until(ready, what="an API that is ready", within_s=20)
        cpu: dict[str, dict[str, float]] = {}
        looks = [w.cpu()]

        async def phase(label: str, coroutine: Coroutine[Any, Any, dict[str, Any]]) -> dict[str, Any]:
            found = await coroutine
            looks.append(w.cpu())
            cpu[label] = used(looks[-2], looks[-1])
            return found

        creates = partial(_creates, port=port, clock=clock)
        batches = partial(_batches, jobs=batch, batches=_BATCHES, port=port, clock=clock)
        return {
            "benchmark": "creates",
            **circumstances(clock),
            "single": await phase("single", creates("one", connections=1, seconds=seconds)),
            "concurrent": await phase("concurrent", creates("many", connections=_CONCURRENT, seconds=seconds)),
            "batch": await phase("batch", batches("batch", at_once=1)),
            "batches_at_once": await phase("batches_at_once", batches("batches", at_once=2)),
            "cpu_s": cpu,
        }
