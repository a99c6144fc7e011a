from __future__ import annotations

import asyncio

import pytest

from tests.recorder.stepped_shard import InShard, within


@pytest.fixture
def shard(redis_url: str, database_url: str, redis_prefix: str) -> InShard:
    """Runs a test's body on a shard that is open and empty."""
    return lambda body: asyncio.run(within(redis_url, database_url, redis_prefix, body))
