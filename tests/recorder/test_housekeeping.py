from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import cast

import pytest

from rsched.core.ids import partition_of
from rsched.core.states import JobState, RunState
from rsched.ledger import Ledger
from rsched.recorder import housekeeping
from rsched.recorder.housekeeping import Housekeeping
from rsched.store.restore import RestoreProgress
from rsched.store.store import Store
from tests.ledger.events import T0, WallClock, job_id, run
from tests.ledger.support import DAY, HOUR, asked, naive, record, unfinished_ids
from tests.recorder.stepped_shard import CLOCK, InShard, Shard


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


async def until_idle(house: Housekeeping) -> None:
    for _ in range(100):
        if not await house.step():
            return
    raise AssertionError("there is always more")


def test_the_rows_of_runs_that_ended_are_freed_once_there_are_many(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def vacuums(ledger: Ledger) -> int:
        # Counts of other sessions are passed on when these end.
        query = "SELECT vacuum_count FROM pg_stat_user_tables WHERE relname = 'unfinished_runs'"
        row = await ledger.database.row(query, ())
        assert row is not None
        return int(row[0])

    async def body(ledger: Ledger, house: Housekeeping, clock: Timer) -> None:
        monkeypatch.setattr(housekeeping, "_VACUUM_MOVES", 100)
        await record(ledger, [run(T0 + n) for n in range(99)])
        await until_idle(house)
        assert await vacuums(ledger) == 0
        await record(ledger, [run(T0 + n, state=RunState.SUCCEEDED, revision=2, fence=1) for n in range(99)], n=1)
        await until_idle(house)
        async with asyncio.timeout(9):
            while await vacuums(ledger) != 1:
                pass
        await until_idle(house)
        assert await vacuums(ledger) == 1
        assert await unfinished_ids(ledger) == naive(database_url) == []

    housekeeping_test(database_url, body)


def test_a_row_of_a_run_that_ended_by_a_record_of_another_day_is_taken_out(database_url: str) -> None:
    async def body(ledger: Ledger, house: Housekeeping, clock: Timer) -> None:
        await record(ledger, [run(T0, state=RunState.SUCCEEDED, revision=9, fence=1)])
        await record(ledger, [run(T0, claimed_at=T0 + DAY), run(T0 + 1)], n=1)
        assert asked(database_url, "SELECT count(*) FROM unfinished_runs") == [(2,)]
        assert await unfinished_ids(ledger) == naive(database_url) == [f"{job_id()}:{T0 + 1}"]
        await until_idle(house)
        assert asked(database_url, "SELECT count(*) FROM unfinished_runs") == [(1,)]
        assert await unfinished_ids(ledger) == naive(database_url) == [f"{job_id()}:{T0 + 1}"]

    housekeeping_test(database_url, body)


def test_the_next_runs_of_recurring_jobs_follow_their_due_times_within_a_minute(shard: InShard) -> None:
    async def next_runs(s: Shard) -> dict[str, object]:
        return dict(await s.ledger.database.rows("SELECT job_id, ms_of(next_run_at) FROM jobs", ()))

    async def body(s: Shard) -> None:
        now = await s.store.clock.read()
        once = await s.put("once", kind="o", due_in=HOUR)
        every = [await s.put(f"every {n}", due_in=HOUR, every=2 * HOUR) for n in range(5)]
        await s.record()
        assert (await next_runs(s))[every[0]] is None
        first = (await next_runs(s))[once]
        assert isinstance(first, int)
        assert first > now
        clock = Timer(CLOCK.wall_ms())
        house = Housekeeping(s.store, s.ledger, shard=s.shard, clock=clock, forget_after_s=600)
        clock.uptime += 60_000
        await until_idle(house)
        dues = await s.store.jobs.get_due_times([*every, once])
        assert await next_runs(s) == dues
        # One that is due later is written once its time has come; the others are left alone.
        await s.redis.zadd(s.keys.due(partition_of(every[0])), {every[0]: dues[every[0]] + 2 * HOUR})
        clock.uptime += 60_000
        await until_idle(house)
        assert await next_runs(s) == dues
        clock.now = dues[every[0]] + 1
        clock.uptime += 60_000
        await until_idle(house)
        assert (await next_runs(s))[every[0]] == dues[every[0]] + 2 * HOUR

    shard(body)


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
