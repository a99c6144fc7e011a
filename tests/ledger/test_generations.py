"""Generations and fences only grow, whatever the servers have forgotten and the clock says."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime

import psycopg
import pytest

from rsched.core.errors import Misconfigured
from rsched.ledger import Ledger
from rsched.ledger.recovery.generations import FENCE_PER_MS, MAX_FENCE
from tests.ledger.events import T0, WallClock


def opening_test(url: str, body: Callable[[Ledger, WallClock], Awaitable[None]], *, now: int = T0) -> None:
    async def main() -> None:
        clock = WallClock(now)
        async with Ledger(url, pool_max=1, clock=clock) as ledger:
            await body(ledger, clock)

    asyncio.run(main())


def test_generations_and_fences_only_grow_whatever_the_clock_says(database_url: str) -> None:
    async def body(ledger: Ledger, clock: WallClock) -> None:
        step = 2**36
        assert await ledger.recovery.generations.next("s0", redis_fence=7) == (1, 7 + step)
        assert await ledger.recovery.generations.next("s0", redis_fence=0) == (2, 7 + 2 * step)
        assert await ledger.recovery.generations.next("s0", redis_fence=5 * step, above=9) == (10, 6 * step)
        clock.now = T0
        assert await ledger.recovery.generations.next("s0", redis_fence=0) == (T0, T0 * FENCE_PER_MS)
        clock.now = T0 - 3_600_000
        assert await ledger.recovery.generations.next("s0", redis_fence=0) == (T0 + 1, T0 * FENCE_PER_MS + step)
        assert await ledger.recovery.generations.next("s0", redis_fence=0, above=T0 + 8) == (
            T0 + 9,
            T0 * FENCE_PER_MS + 2 * step,
        )

    opening_test(database_url, body, now=0)


def test_what_both_servers_have_forgotten_is_not_given_out_again(database_url: str) -> None:
    async def body(ledger: Ledger, clock: WallClock) -> None:
        first = await ledger.recovery.generations.next("s0", redis_fence=0)
        clock.now += 1000
        forgotten = await ledger.recovery.generations.next("s0", redis_fence=first[1])
        started = 1_000_000  # attempts, until the loss
        with psycopg.connect(database_url, autocommit=True) as c:
            c.execute("UPDATE shards SET generation = %s, fence = %s", first)
        clock.now += 40_000_000
        again = await ledger.recovery.generations.next("s0", redis_fence=0)
        assert again[0] > forgotten[0]
        assert again[1] > forgotten[1] + started

    opening_test(database_url, body)


def test_fences_stay_where_scripts_count_exactly_and_end_with_a_word(database_url: str) -> None:
    async def body(ledger: Ledger, clock: WallClock) -> None:
        await ledger.recovery.generations.next("s0", redis_fence=0)
        before = await ledger.recovery.generations.next("s0", redis_fence=0)
        assert before[1] + 2**36 <= MAX_FENCE
        clock.now = int(datetime(2109, 6, 1, tzinfo=UTC).timestamp()) * 1000
        with pytest.raises(Misconfigured, match="clock"):
            await ledger.recovery.generations.next("s0", redis_fence=0)
        clock.now = int(datetime(2109, 1, 1, tzinfo=UTC).timestamp()) * 1000
        _, fence = await ledger.recovery.generations.next("s0", redis_fence=0)
        assert before[1] < fence < MAX_FENCE

    opening_test(database_url, body)
