"""Scripts count in doubles: generations and fences are told apart up to the last ones that recoveries give out."""

from __future__ import annotations

import pytest

from rsched.ledger.recovery.generations import FENCE_PER_MS, MAX_FENCE
from tests.support.store_world import World

pytestmark = pytest.mark.anyio


async def test_generations_and_fences_near_the_end_are_exact(world: World) -> None:
    last = MAX_FENCE // FENCE_PER_MS
    await world.open(last - 1, fence=MAX_FENCE - 2**36)
    await world.open(last, fence=MAX_FENCE - 4)
    fences = []
    for name in ("a", "b", "c"):
        _, run = await world.running(name)
        assert await world.finish(run, fence=run.fence - 1) == "stale_fence"
        assert await world.finish(run) == "ok"
        fences.append(run.fence)
    assert fences == [MAX_FENCE - 3, MAX_FENCE - 2, MAX_FENCE - 1]
    assert (await world.store.journal.get_last_id("journal")).startswith(f"{last}-")
