"""A Redis that was stopped as planned has everything, unless it was opened again since, or put back in an older state."""

from __future__ import annotations

import anyio

from rsched.recorder.recovery.recovery import Recovery
from tests.recorder.rollback import another_server, back_to, snapshot
from tests.recorder.stepped_shard import CLOCK, Shard, within


async def unconfirmed(s: Shard) -> set[bytes]:
    """Who is waited for after another recovery; workers were not heard of."""
    s.__post_init__()
    await Recovery(s.store, s.ledger, shard=s.shard, clock=CLOCK, lease_ms=1000).ensure_open(list(s.streams.values()))
    return set(await s.redis.smembers(s.keys.unconfirmed))


def test_the_last_recovery_decides(redis_url: str, database_url: str, redis_prefix: str) -> None:
    async def body(s: Shard) -> None:
        await s.put("a")
        await s.record()
        await s.store.recovery.close()
        closed = await snapshot(s)
        await another_server(s)
        assert await unconfirmed(s) == set()
        # In use again, and not closed: what it lacks nobody can tell.
        await another_server(s)
        assert await unconfirmed(s) == {b""}
        # The state of the planned stop once more, after which there were recoveries.
        await back_to(s, closed)
        assert await unconfirmed(s) == {b""}

    anyio.run(within, redis_url, database_url, redis_prefix, body)


def test_a_postgres_that_forgot_the_last_recovery_proves_nothing(
    redis_url: str, database_url: str, redis_prefix: str
) -> None:
    async def body(s: Shard) -> None:
        await s.store.recovery.close()
        await s.ledger.database.execute("UPDATE shards SET generation = generation - 1", ())
        await another_server(s)
        assert await unconfirmed(s) == {b""}

    anyio.run(within, redis_url, database_url, redis_prefix, body)
