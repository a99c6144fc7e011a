"""A Redis that comes back in an older state."""

from __future__ import annotations

from rsched.recorder.recovery.recovery import Recovery
from tests.recorder.stepped_shard import CLOCK, Shard


async def snapshot(s: Shard) -> dict[bytes, bytes]:
    """All of the shard's keys."""
    found = {k: await s.redis.dump(k) async for k in s.redis.scan_iter(match=f"{s.keys.prefix}:*")}
    return {k: v for k, v in found.items() if v is not None}


async def back_to(s: Shard, then: dict[bytes, bytes]) -> None:
    """As another server that starts with an older file."""
    for key in [k async for k in s.redis.scan_iter(match=f"{s.keys.prefix}:*")]:
        await s.redis.delete(key)
    for key, value in then.items():
        await s.redis.restore(key, 0, value)
    await another_server(s)


async def another_server(s: Shard) -> None:
    await s.redis.hset(s.keys.marker, "run_id", "another")


async def stale_generation(s: Shard, *, all_back: bool = True) -> None:
    """Open again, all definitions back (or those that the recovery waits for), and nothing held for workers any more."""
    s.__post_init__()
    recovery = Recovery(s.store, s.ledger, shard=s.shard, clock=CLOCK, lease_ms=1000)
    opened = await recovery.ensure_open(list(s.streams.values()))
    while all_back and opened.background_restore and await opened.background_restore.step():
        pass
    await s.redis.delete(s.keys.unconfirmed)
    s.__post_init__()
