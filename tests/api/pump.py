"""The least of a recorder: opens a shard and moves its definitions to the ledger, as long as it is asked to."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from rsched.core.jobs.packed import unpack_event
from rsched.ledger import Ledger
from rsched.runtime.clock import SystemClock
from rsched.store.store import Store


async def _pump(store: Store, ledger: Ledger, going: asyncio.Event) -> None:
    position = await ledger.write.position("s0", "definitions")
    while True:
        for stream, entry, pairs in await store.journal.read({"definitions": position}, block_ms=1000, count=100):
            events = [unpack_event(kind, payload) for kind, payload in pairs]
            await going.wait()
            assert await ledger.write.record("s0", stream=stream, expected=position, new=entry, events=events)
            position = entry


@asynccontextmanager
async def recording(
    redis_url: str, database_url: str, *, prefix: str, going: asyncio.Event | None = None
) -> AsyncIterator[Store]:
    """going: records only while it is set."""
    if going is None:
        going = asyncio.Event()
        going.set()
    clock = SystemClock()
    store = Store.open(redis_url, prefix=prefix, shard="s0", clock=clock)
    async with Ledger(database_url, clock=clock) as ledger:
        generation, fence = await ledger.recovery.generations.next("s0", redis_fence=0)
        assert await store.recovery.begin(generation, fence=fence)
        await store.recovery.finish(recovery_grace_ms=0)
        task = asyncio.create_task(_pump(store, ledger, going))
        try:
            yield store
        finally:
            task.cancel()
            (ended,) = await asyncio.gather(task, return_exceptions=True)
            await store.aclose()
            assert isinstance(ended, asyncio.CancelledError), ended
