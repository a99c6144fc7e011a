"""Both clients behind the sync one's methods, so that a test is written once and run on each."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Callable
from types import TracebackType
from typing import Any

from rsched.client import AsyncClient, Client


class Driven:
    """An AsyncClient whose calls are awaited one by one, on an event loop of its own."""

    def __init__(self, url: str, **options: Any) -> None:
        self._client = AsyncClient(url, **options)
        self._runner = asyncio.Runner()

    def __enter__(self) -> Driven:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._runner.run(self._client.aclose())
        self._runner.close()

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._client, name)

        def call(*args: Any, **kwargs: Any) -> Any:
            made = method(*args, **kwargs)
            return self._runner.run(_listed(made) if isinstance(made, AsyncIterator) else made)

        return call


async def _listed(items: AsyncIterator[Any]) -> list[Any]:
    return [item async for item in items]


CLIENTS: dict[str, Callable[..., Any]] = {"sync": Client, "async": Driven}


def public(kind: type) -> dict[str, str]:
    """The public methods of a class with their signatures, as text without `async` words."""
    return {
        name: str(inspect.signature(method)).replace("AsyncIterator", "Iterator")
        for name, method in inspect.getmembers(kind, inspect.isfunction)
        if not name.startswith("_")
    }
