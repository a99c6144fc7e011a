from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import psycopg

from rsched.ledger import Ledger, Waiter
from rsched.runtime.clock import SystemClock

CUT_OF = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE"
CUT = f"{CUT_OF} datname = current_database() AND (query LIKE 'SELECT shard%' OR query LIKE 'LISTEN%')"


def waiter_test(url: str, body: Callable[[Ledger, Waiter], Awaitable[None]]) -> None:
    async def main() -> None:
        clock = SystemClock()
        async with Ledger(url, pool_max=4, clock=clock) as ledger, Waiter(url, clock=clock) as waiter:
            await body(ledger, waiter)

    asyncio.run(main())


async def record(ledger: Ledger, expected: str, new: str) -> None:
    assert await ledger.write.record("s0", stream="definitions", expected=expected, new=new, events=[])


async def forgotten(waiter: Waiter, entry: str) -> None:
    """Returns once the waiter has noticed that its connection is gone."""
    async with asyncio.timeout(10):
        while await waiter.wait_recorded("s0", "definitions", entry, 0.05):
            await SystemClock().sleep(10)


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


def test_nothing_is_taken_for_recorded_that_a_server_put_back_from_a_backup_does_not_have(database_url: str) -> None:
    async def body(ledger: Ledger, waiter: Waiter) -> None:
        await record(ledger, "0-0", "1-0")
        await record(ledger, "1-0", "2-900")
        assert await waiter.wait_recorded("s0", "definitions", "2-900", 5)
        open_wait = asyncio.ensure_future(waiter.wait_recorded("s0", "definitions", "2-901", 10))
        await SystemClock().sleep(0)
        with psycopg.connect(database_url, autocommit=True) as c:
            c.execute("UPDATE positions SET generation = 1, sequence = 0")
            c.execute("DELETE FROM position_ends")
            c.execute(CUT)
        await forgotten(waiter, "2-900")
        assert await waiter.wait_recorded("s0", "definitions", "1-0", 5)
        for lost in ("1-1", "2-5", "2-900"):
            assert not await waiter.wait_recorded("s0", "definitions", lost, 0.3)
        assert not open_wait.done()
        await record(ledger, "1-0", "2-5")
        assert await waiter.wait_recorded("s0", "definitions", "2-5", 5)
        assert not await waiter.wait_recorded("s0", "definitions", "1-1", 0.3)
        await record(ledger, "2-5", "2-901")
        assert await open_wait

    waiter_test(database_url, body)


def test_while_the_connection_is_away_nothing_is_answered_from_memory(database_url: str) -> None:
    async def body(ledger: Ledger, waiter: Waiter) -> None:
        await record(ledger, "0-0", "1-0")
        assert await waiter.wait_recorded("s0", "definitions", "1-0", 5)
        name = psycopg.conninfo.conninfo_to_dict(database_url)["dbname"]
        admin = psycopg.conninfo.make_conninfo(database_url, dbname="postgres")
        with psycopg.connect(admin, autocommit=True) as c:
            allow = psycopg.sql.SQL("ALTER DATABASE {} ALLOW_CONNECTIONS {}")
            c.execute(allow.format(psycopg.sql.Identifier(name), psycopg.sql.SQL("false")))
            try:
                c.execute(f"{CUT_OF} datname = %s", (name,))
                await forgotten(waiter, "1-0")
            finally:
                c.execute(allow.format(psycopg.sql.Identifier(name), psycopg.sql.SQL("true")))
        assert await waiter.wait_recorded("s0", "definitions", "1-0", 10)

    waiter_test(database_url, body)


def test_a_wait_survives_a_lost_connection(database_url: str) -> None:
    async def body(ledger: Ledger, waiter: Waiter) -> None:
        await record(ledger, "0-0", "1-0")
        assert await waiter.wait_recorded("s0", "definitions", "1-0", 5)
        wait = asyncio.ensure_future(waiter.wait_recorded("s0", "definitions", "1-1", 10))
        with psycopg.connect(database_url, autocommit=True) as c:
            c.execute(CUT)
        await record(ledger, "1-0", "1-1")
        assert await wait

    waiter_test(database_url, body)
