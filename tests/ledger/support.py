"""What tests of the ledger share: a ledger of a fresh database, events recorded, and what a look at every row finds."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import psycopg

from rsched.core.jobs.packed import Event
from rsched.core.states import RunState
from rsched.ledger import Ledger
from tests.ledger.events import T0, WallClock

SECOND, HOUR, DAY = 1000, 3_600_000, 86_400_000


def ledger_test(url: str, body: Callable[[Ledger], Awaitable[None]], *, now: int = T0) -> None:
    async def main() -> None:
        async with Ledger(url, pool_max=6, clock=WallClock(now)) as ledger:
            await body(ledger)

    asyncio.run(main())


async def record(ledger: Ledger, events: list[Event], *, n: int = 0) -> None:
    expected = "0-0" if n == 0 else f"1-{n - 1}"
    assert await ledger.write.record("s0", stream="journal", expected=expected, new=f"1-{n}", events=events)


async def unfinished_ids(ledger: Ledger, *, limit: int = 100) -> list[str]:
    """Each once, whether or not they came in several pages."""
    found: set[str] = set()
    async for page in ledger.recovery.unfinished.pages("s0", limit=limit):
        assert 0 < len(page) <= limit
        assert not [run for run, r in page if r.state.final]
        found.update(run for run, _ in page)
    return sorted(found)


def asked(url: str, query: str) -> list[tuple[object, ...]]:
    with psycopg.connect(url) as c:
        return c.execute(query.encode()).fetchall()


def naive(url: str) -> list[str]:
    latest = "SELECT DISTINCT ON (run_id) run_id, status FROM runs ORDER BY run_id, fence DESC, revision DESC"
    states = ", ".join(f"'{s.value}'" for s in RunState if not s.final)
    return sorted(str(r[0]) for r in asked(url, f"SELECT run_id FROM ({latest}) r WHERE status IN ({states})"))
