"""Partitions are taken again where Redis may have forgotten who owned them."""

from __future__ import annotations

import logging

import pytest

from rsched.core.ids import PARTITIONS
from rsched.scheduler.ownership import Ownership
from tests.store.world import World

pytestmark = pytest.mark.anyio


async def owned(ownership: Ownership) -> None:
    while await ownership.step():
        pass
    await ownership.step()


async def test_after_an_recovery_on_an_emptied_server_all_partitions_have_an_owner_again(world: World) -> None:
    ownership = Ownership(world.store, "s_1", lease_ms=60_000, log=logging.getLogger("test"))
    await owned(ownership)
    assert await world.store.partitions.count_owned() == PARTITIONS
    async for key in world.client.scan_iter(match=f"{world.keys.prefix}:*", count=1000):
        await world.client.delete(key)
    known = world.store.connection.generation
    await world.open(2)
    world.store.connection.generation = known  # a process that was not there when it was opened
    await owned(ownership)
    assert len(ownership.epochs) == PARTITIONS
    assert await world.store.partitions.count_owned() == PARTITIONS
