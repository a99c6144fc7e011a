"""Calls an ASGI app without a server, one request at a time, on a loop of its own."""

from __future__ import annotations

import asyncio
import json
from typing import Any, NamedTuple
from urllib.parse import unquote

from starlette.applications import Starlette


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def fields(self) -> list[str]:
        return [e["field"] for e in self.json["errors"]]


class Caller:
    """Calls an app. runner: of a loop that outlives it; without one it has a loop of its own."""

    def __init__(self, app: Starlette, *, runner: asyncio.Runner | None = None) -> None:
        self.app = app
        self._runner = runner or asyncio.Runner()
        self._owns_runner = runner is None

    def __enter__(self) -> Caller:
        self.run(self._start())
        return self

    def __exit__(self, *error: object) -> None:
        self.run(self._end())
        if self._owns_runner:
            self._runner.close()

    async def _start(self) -> None:
        self._stop, started = asyncio.Event(), asyncio.Event()
        lifespan = self.app.router.lifespan_context(self.app)

        async def life() -> None:
            # One task from start to end: what the app opens may be bound to the task that opened it.
            async with lifespan:
                started.set()
                await self._stop.wait()

        self._life = asyncio.create_task(life())
        waiting = asyncio.create_task(started.wait())
        await asyncio.wait({self._life, waiting}, return_when=asyncio.FIRST_COMPLETED)
        if self._life.done():
            self._life.result()

    async def _end(self) -> None:
        self._stop.set()
        await self._life

    def run(self, coroutine: Any) -> Any:
        return self._runner.run(coroutine)

    def __call__(
        self, method: str, target: str, body: Any = None, *, raw: bytes | None = None, **headers: str
    ) -> Answer:
        return self.run(self.call(method, target, body, raw=raw, **headers))

    async def call(
        self, method: str, target: str, body: Any = None, *, raw: bytes | None = None, **headers: str
    ) -> Answer:
        payload = raw if raw is not None else b"" if body is None else json.dumps(body).encode()
        path, _, query = target.partition("?")
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": unquote(path),
            "raw_path": path.encode(),
            "query_string": query.encode(),
            "root_path": "",
            "headers": [(b"host", b"test")]
            + [(k.replace("_", "-").lower().encode(), v.encode()) for k, v in headers.items()],
            "client": ("127.0.0.1", 1),
            "server": ("test", 80),
        }
        sent: list[dict[str, Any]] = []
        chunks = [payload[i : i + 65_536] for i in range(0, len(payload), 65_536)] or [b""]

        async def receive() -> dict[str, Any]:
            chunk = chunks.pop(0)
            return {"type": "http.request", "body": chunk, "more_body": bool(chunks)}

        async def send(message: Any) -> None:
            sent.append(message)

        await self.app(scope, receive, send)
        start = sent[0]
        return Answer(
            start["status"],
            {k.decode(): v.decode() for k, v in start["headers"]},
            b"".join(m.get("body", b"") for m in sent[1:]),
        )
