"""A store on a shard of its own, opened and empty."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.support.store_world import World


@pytest.fixture
async def world(anyio_backend: str, redis_url: str, redis_prefix: str) -> AsyncIterator[World]:
    w = World.at(redis_url, prefix=redis_prefix)
    await w.open()
    yield w
    await w.close()
