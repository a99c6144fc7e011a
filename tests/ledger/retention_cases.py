"""What tests of retention share: a day that is old enough to leave, and steps until nothing is left to do."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import psycopg

from rsched.core.jobs.packed import Event
from rsched.core.states import RunState
from rsched.ledger import Ledger
from rsched.ledger.retention.retention import Done
from tests.ledger.events import T0, WallClock, job, job_id, run

Q, R, T, S, D = RunState.QUEUED, RunState.RUNNING, RunState.RETRYING, RunState.SUCCEEDED, RunState.DEAD
DAY = 86_400_000
DAYS = 30
# The old day is T0's, 2026-10-26 UTC; "today" is 40 days later.
TODAY = T0 + 40 * DAY
OLD = "2026-10-26"


def retention_test(url: str, body: Callable[[Ledger], Awaitable[None]], *, clock: WallClock | None = None) -> None:
    async def main() -> None:
        async with Ledger(url, pool_max=4, clock=clock or WallClock(TODAY)) as ledger:
            await body(ledger)

    asyncio.run(main())


async def record(ledger: Ledger, events: list[Event], *, n: int = 0) -> None:
    expected = "0-0" if n == 0 else f"1-{n - 1}"
    assert await ledger.write.record("s0", stream="journal", expected=expected, new=f"1-{n}", events=events)


def rid(ms: int, name: str = "nightly") -> str:
    return f"{job_id(name)}:{ms}"


def succeeded(ms: int, name: str = "nightly") -> Event:
    return run(ms, name=name, state=S, revision=5, attempt=1, fence=5, started_at=ms + 5, worker='w,"1"', at=ms + 1000)


def dead(ms: int) -> Event:
    return run(ms, state=D, revision=5, attempt=3, fence=6, started_at=ms + 5, at=ms + 2000, detail='line\n"two", ü')


def old_day() -> list[Event]:
    """Of one day: 3 that succeeded, one with a failed attempt; one open with a failed attempt; one DEAD; one fresh."""
    failed = run(T0, state=T, revision=3, attempt=1, fence=3, started_at=T0 + 6, worker="w1", at=T0 + 50, detail="boom")
    waits = run(
        T0 + 3, state=T, revision=3, attempt=1, fence=3, started_at=T0 + 6, worker="w1", at=T0 + 50, detail="wait"
    )
    return [job(), failed, succeeded(T0), succeeded(T0 + 1), succeeded(T0 + 2), waits, dead(T0 + 4),
            succeeded(TODAY)]  # fmt: skip


async def all_steps(ledger: Ledger, folder: Path) -> list[Done]:
    """Until there is nothing left to do."""
    out = []
    while (done := await ledger.retention.retain(folder, days=DAYS)).kind in ("left", "archived"):
        out.append(done)
    assert done.kind == "pruned"
    return out


async def query(url: str, text: str) -> list[tuple[object, ...]]:
    async with await psycopg.AsyncConnection.connect(url) as c:
        return await (await c.execute(text.encode())).fetchall()
