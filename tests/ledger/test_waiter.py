from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import psycopg

from rsched.ledger import Ledger, Waiter
from rsched.runtime.clock import SystemClock


def waiter_test(url: str, body: Callable[[Ledger, Waiter], Awaitable[None]]) -> None:
    async def main() -> None:
        clock = SystemClock()
        async with Ledger(url, pool_max=4, clock=clock) as ledger, Waiter(url, clock=clock) as waiter:
            await body(ledger, waiter)

    asyncio.run(main())


async def record(ledger: Ledger, expected: str, new: str) -> None:
    assert await ledger.record("s0", stream="definitions", expected=expected, new=new, events=[])


def test_a_wait_ends_when_its_entry_is_recorded(database_url: str) -> None:
    async def body(ledger: Ledger, waiter: Waiter) -> None:
        waits = [asyncio.ensure_future(waiter.wait_recorded("s0", "definitions", f"1-{n}", 5)) for n in (2, 0, 1)]
        await record(ledger, "0-0", "1-1")
        assert await waits[1]
        assert await waits[2]
        assert not waits[0].done()
        await record(ledger, "1-1", "1-2")
        assert await waits[0]

    waiter_test(database_url, body)


def test_what_was_recorded_before_is_known(database_url: str) -> None:
    async def before() -> None:
        async with Ledger(database_url, clock=SystemClock()) as ledger:
            await record(ledger, "0-0", "1-7")

    async def body(_: Ledger, waiter: Waiter) -> None:
        assert await waiter.wait_recorded("s0", "definitions", "1-7", 5)
        assert not await waiter.wait_recorded("s0", "definitions", "1-8", 0.05)
        assert not await waiter.wait_recorded("s0", "journal", "1-7", 0.05)

    asyncio.run(before())
    waiter_test(database_url, body)


def test_an_entry_that_a_failover_lost_is_not_answered_by_the_next_generation(database_url: str) -> None:
    async def body(ledger: Ledger, waiter: Waiter) -> None:
        lost = asyncio.ensure_future(waiter.wait_recorded("s0", "definitions", "1-9", 5))
        await record(ledger, "0-0", "1-5")
        await record(ledger, "1-5", "2-3")
        assert not await lost
        assert await waiter.wait_recorded("s0", "definitions", "1-5", 5)
        assert not await waiter.wait_recorded("s0", "definitions", "1-6", 5)

    waiter_test(database_url, body)


def test_a_wait_survives_a_lost_connection(database_url: str) -> None:
    async def body(ledger: Ledger, waiter: Waiter) -> None:
        await record(ledger, "0-0", "1-0")
        assert await waiter.wait_recorded("s0", "definitions", "1-0", 5)
        wait = asyncio.ensure_future(waiter.wait_recorded("s0", "definitions", "1-1", 10))
        with psycopg.connect(database_url, autocommit=True) as c:
            c.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'SELECT shard%' OR query LIKE 'LISTEN%'"
            )
        await record(ledger, "1-0", "1-1")
        assert await wait

    waiter_test(database_url, body)
