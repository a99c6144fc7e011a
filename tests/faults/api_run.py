"""A fault run whose jobs are made through the HTTP API, by a process of its own, with all that a body may say."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import anyio

from rsched.embedded.process import free_port
from tests.faults.harness import Run, fault_run


def text_of(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="milliseconds")


def ms_of(text: str) -> int:
    return round(datetime.fromisoformat(text).timestamp() * 1000)


class Api:
    """The API process of a run, as little of it as these tests call."""

    def __init__(self, port: int) -> None:
        self._url = f"http://127.0.0.1:{port}"

    async def call(self, method: str, path: str, body: Any = None) -> Any:
        return await anyio.to_thread.run_sync(self._call, method, path, body)

    def _call(self, method: str, path: str, body: Any) -> Any:
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(self._url + path, data, headers, method=method)
        with urllib.request.urlopen(request, timeout=20) as answer:
            return json.load(answer)

    async def ready(self) -> bool:
        def asked() -> bool:
            try:
                with urllib.request.urlopen(self._url + "/readyz", timeout=5) as answer:
                    return bool(answer.status == 200)
            except OSError:
                return False

        return await anyio.to_thread.run_sync(asked)

    async def put(self, bodies: Sequence[dict[str, Any]]) -> list[tuple[str, int]]:
        """Creates all; of each its id and when it was created (ms): what comes after that is expected."""
        answer = await self.call("POST", "/v1/jobs:batch", {"jobs": bodies})
        return [(item["job_id"], ms_of(item["created_at"])) for item in answer["items"]]


@asynccontextmanager
async def with_api(env: dict[str, str]) -> AsyncIterator[tuple[Run, Api]]:
    """A fault run that has an API, too."""
    port = free_port()
    async with fault_run(workers=1, env={**env, "RSCHED_API_PORT": str(port)}) as run:
        run.fleet.start("api")
        api = Api(port)
        await run.fleet.until(api.ready, what="an API that is ready", within_s=20)
        yield run, api


async def until_time(run: Run, at_ms: int) -> None:
    while (left := at_ms - await run.w.store.clock.read()) > 0:
        await run.w.clock.sleep(min(left, 1000))
