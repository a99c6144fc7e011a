from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import cast

import psycopg

from rsched.core.jobs.packed import Event
from rsched.core.states import JobState, RunState
from rsched.ledger import Ledger
from rsched.recorder.housekeeping import Housekeeping
from rsched.store.restore import RestoreProgress
from rsched.store.store import Store
from tests.ledger.events import T0, WallClock, run
from tests.ledger.test_open_runs import naive, open_ids, record
from tests.recorder.stepped_shard import CLOCK, InShard, Shard

SECOND, HOUR = 1000, 3_600_000


class Timer(WallClock):
    uptime = 0

    def boot_ms(self) -> int:
        return self.uptime


def housekeeping_test(url: str, body: Callable[[Ledger, Housekeeping, Timer], Awaitable[None]]) -> None:
    """Nothing is to be forgotten, so that no store is needed."""

    async def main() -> None:
        clock = Timer(T0 + HOUR)
        async with Ledger(url, pool_max=2, clock=clock) as ledger:
            house = Housekeeping(cast(Store, None), ledger, shard="s0", clock=clock, forget_after_s=600)
            await body(ledger, house, clock)

    asyncio.run(main())


def mark(url: str) -> int:
    with psycopg.connect(url) as c:
        row = c.execute("SELECT indexed_until FROM unfinished_high_water WHERE shard = 's0'").fetchone()
    return int(row[0]) if row else 0


def listed(url: str) -> int:
    with psycopg.connect(url) as c:
        row = c.execute("SELECT count(*) FROM unfinished_runs").fetchone()
    assert row is not None
    return int(row[0])


async def until_idle(house: Housekeeping) -> None:
    for _ in range(100):
        if not await house.step():
            return
    raise AssertionError("there is always more")


def test_the_mark_follows_what_is_recorded_20_s_behind(database_url: str) -> None:
    async def body(ledger: Ledger, house: Housekeeping, clock: Timer) -> None:
        await until_idle(house)
        assert mark(database_url) == 0
        await record(ledger, [run(T0)])
        await until_idle(house)
        assert mark(database_url) == T0 - 20 * SECOND
        await record(ledger, [run(T0 + 90 * SECOND)], n=1)
        await until_idle(house)
        assert mark(database_url) == T0 + 70 * SECOND
        assert await open_ids(ledger) == naive(database_url)

    housekeeping_test(database_url, body)


def test_the_mark_does_not_follow_a_claim_from_a_clock_that_leapt_ahead(database_url: str) -> None:
    async def body(ledger: Ledger, house: Housekeeping, clock: Timer) -> None:
        await record(ledger, [run(T0), run(T0 + 9 * HOUR)])
        await until_idle(house)
        assert mark(database_url) == clock.now - 20 * SECOND

    housekeeping_test(database_url, body)


def test_runs_that_are_over_leave_the_unfinished_runs(database_url: str) -> None:
    async def body(ledger: Ledger, house: Housekeeping, clock: Timer) -> None:
        begun: list[Event] = [run(T0 + n) for n in range(9)]
        await record(ledger, [*begun, run(T0 + HOUR)])
        await until_idle(house)
        assert listed(database_url) == 9
        ended: list[Event] = [run(T0 + n, state=RunState.SUCCEEDED, revision=2, fence=1) for n in range(7)]
        await record(ledger, ended, n=1)
        await until_idle(house)
        assert listed(database_url) == 2
        assert await open_ids(ledger) == naive(database_url)

    housekeeping_test(database_url, body)


def test_while_definitions_are_being_restored_no_job_is_forgotten(shard: InShard) -> None:
    async def body(s: Shard) -> None:
        job = await s.put("a", kind="o")
        await s.drain()
        await s.record()
        assert (await s.ledger.recovery.compare.jobs([job]))[job].state is JobState.COMPLETED
        clock = Timer(CLOCK.wall_ms() + HOUR)
        house = Housekeeping(s.store, s.ledger, shard=s.shard, clock=clock, forget_after_s=600)
        marker = await s.store.recovery.get_marker()
        assert marker is not None
        repair = RestoreProgress("jobs", marker.generation, 0, 1, 0, await s.store.clock.read())
        await s.store.restore.set_progress(repair)
        await until_idle(house)
        assert await s.store.jobs.get(job) is not None
        assert not (await s.ledger.recovery.compare.jobs([job]))[job].forgotten
        await s.store.restore.set_progress(repair._replace(phase="done"))
        await until_idle(house)
        assert await s.store.jobs.get(job) is None
        assert (await s.ledger.recovery.compare.jobs([job]))[job].forgotten

    shard(body)


def test_the_index_by_claim_is_kept_up_with_new_pages(database_url: str) -> None:
    async def body(ledger: Ledger, house: Housekeeping, clock: Timer) -> None:
        await record(ledger, [run(T0 + n) for n in range(50)])
        await house.step()
        clock.uptime += HOUR // 2
        await house.step()

    housekeeping_test(database_url, body)
    with psycopg.connect(database_url) as c:
        c.execute("CREATE EXTENSION pageinspect")
        found = c.execute(
            "SELECT value FROM brin_page_items(get_raw_page('runs_20261026_claimed_at_idx', 2), 'runs_20261026_claimed_at_idx')"
        ).fetchall()
    assert found == [(f"{{{T0} .. {T0 + 49}}}",)]
