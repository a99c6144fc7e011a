"""The API over HTTP, on a real Redis and a real Postgres."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from typing import Any

import anyio
import requests
from rsched_api.main import run_api

from rsched.core.settings import ApiSettings
from rsched.runtime.clock import SystemClock
from tests.api.pump import recording


class Served:
    """run_api and a small recorder on a thread of their own."""

    def __init__(self, options: ApiSettings) -> None:
        self.url = f"http://127.0.0.1:{options.port}"
        self._options = options
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_until_complete, args=(self._serve(),))

    async def _serve(self) -> None:
        self._stop, self._going = anyio.Event(), asyncio.Event()
        self._going.set()
        o = self._options
        async with recording(o.redis_url, o.database_url, prefix=o.prefix, going=self._going):
            await run_api(self._options, self._stop, clock=SystemClock())

    def __enter__(self) -> Served:
        self._thread.start()
        deadline = time.monotonic() + 20  # noqa: TID251
        while True:
            try:
                if requests.get(f"{self.url}/healthz", timeout=5).status_code == 200:
                    return self
            except requests.ConnectionError:
                assert self._thread.is_alive()
                assert time.monotonic() < deadline  # noqa: TID251
                threading.Event().wait(0.02)

    def __exit__(self, *error: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(10)
        assert not self._thread.is_alive()
        self._loop.close()

    def pause_recording(self) -> None:
        self._loop.call_soon_threadsafe(self._going.clear)

    def go_on_recording(self) -> None:
        self._loop.call_soon_threadsafe(self._going.set)

    def __call__(self, method: str, path: str, body: Any = None, **headers: str) -> requests.Response:
        data = None if body is None else json.dumps(body)
        named = {k.replace("_", "-"): v for k, v in headers.items()}
        return requests.request(method, self.url + path, data=data, headers=named, timeout=20)
