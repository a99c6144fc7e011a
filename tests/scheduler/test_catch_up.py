"""Catch-up ranges are paid out at a pace, oldest first, and delay nobody."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Any

import pytest

from bench.jobs import item
from rsched.core.ids import JobId, RunId, split_run_id
from rsched.core.jobs.model import ScheduleSpec
from rsched.core.jobs.packed import JobRecord, RangeEvent, RunEvent, SkipEvent
from rsched.runtime.clock import SystemClock
from rsched.scheduler.catch_up import CatchUp
from rsched.store.jobs import PutItem
from tests.store.world import World

pytestmark = pytest.mark.anyio
LOG = logging.getLogger("test")


async def hourly(world: World, name: str = "job", *, hours: int, team: str = "default") -> tuple[JobId, int]:
    """A job that has missed `hours` occurrences, all of them in a catch-up range; with the first of them (ms)."""
    now = await world.store.clock.read()
    hour = now // 3_600_000 * 3_600_000
    spec = ScheduleSpec(every="1h", anchor="2020-01-01T00:00:00Z")
    put, _ = item(name, spec, function="f", now=now, team=team, misfire_policy="run_all")
    assert (await world.store.jobs.put([put], atomic=True)).ok
    first = hour - (hours - 1) * 3_600_000
    assert (await world.store.jobs.backfill(put.job, schedule_version=1, ranges=[(first, hour)])).tag == "ok"
    return put.job, first


def catch_up(world: World, **settings: Any) -> CatchUp:
    given = {"per_s": 10, "share": 0.2, "schedulers": lambda: 1, **settings}
    return CatchUp(world.store, clock=SystemClock(), log=LOG, **given)


async def runs(world: World) -> list[RunId]:
    return sorted(RunId(r.decode()) for r in await world.client.hkeys(world.keys.runs))


async def soon(world: World) -> None:
    """As if the pace's pause were over."""
    await world.client.delete(world.keys.paces)
    for member in await world.client.zrange(world.keys.catchup, 0, -1):
        await world.client.zadd(world.keys.catchup, {member: 0})


def hours(found: Iterable[RunId], first: int) -> list[int]:
    return [(split_run_id(r)[1] - first) // 3_600_000 for r in found]  # type: ignore[index]


async def test_a_job_gets_ten_a_second_oldest_first_until_all_are_paid(world: World) -> None:
    job, first = await hourly(world, hours=25)
    paying = catch_up(world)
    for expected in (10, 20, 25, 25):
        await paying.step()
        assert hours(await runs(world), first) == list(range(expected))
        # Nothing more before the pause is over, whoever asks.
        for scheduler in (paying, catch_up(world)):
            await scheduler.step()
        assert len(await runs(world)) == expected
        await soon(world)
    assert await world.store.catchup.list_due(limit=9) == []
    ranges = [e for e in await world.events() if isinstance(e, RangeEvent)]
    assert {r.job for r in ranges} == {job}
    assert max(r.start for r in ranges) > ranges[0].end  # on record as paid out


async def test_several_ranges_of_one_job_share_its_pace(world: World) -> None:
    job, first = await hourly(world, hours=4)
    now = await world.store.clock.read()
    assert first < now
    more = [(first - (n + 1) * 36_000_000, first - (n + 1) * 36_000_000 + 3 * 3_600_000) for n in range(5)]
    assert (await world.store.jobs.backfill(job, schedule_version=1, ranges=more)).tag == "ok"
    await catch_up(world, per_s=6).step()
    assert len(await runs(world)) == 6


async def test_a_queue_with_work_waiting_gives_a_share_of_its_starts(world: World) -> None:
    await hourly(world, "a", hours=25)
    await hourly(world, "b", hours=25)
    waiting = await world.queued("other")
    paying = catch_up(world, per_s=10, share=0.2)
    await paying.step()
    # Nothing was started yet: one, so that it goes on at all.
    assert len(await runs(world)) - 1 == 1
    await world.client.hincrby(world.keys.starts, "default", 10**9)
    await soon(world)
    await paying.step()
    assert len(await runs(world)) - 1 == 21  # a fifth of very many: the pace of each job
    assert [r.run for r in (await world.fetch(1)).runs] == [waiting.run]


async def test_of_a_paused_job_the_rest_is_skipped_with_its_count(world: World) -> None:
    job, first = await hourly(world, hours=25)
    paying = catch_up(world)
    await paying.step()
    await world.store.jobs.pause(job)
    await soon(world)
    await paying.step()
    (skip,) = [e for e in await world.events() if isinstance(e, SkipEvent)]
    assert (skip.first, skip.total, skip.reason) == (first + 10 * 3_600_000, 15, "paused")


async def test_what_has_a_run_already_is_not_run_twice(world: World) -> None:
    job, first = await hourly(world, hours=3)
    await catch_up(world).step()
    assert (await world.store.jobs.backfill(job, schedule_version=1, ranges=[(first, first + 7_200_000)])).tag == "ok"
    await catch_up(world).step()
    claimed = [e.run for e in await world.events() if isinstance(e, RunEvent)]
    assert len(claimed) == len(set(claimed)) == 3


async def test_very_many_ranges_of_one_job_keep_its_pace_and_hide_nobody(world: World) -> None:
    job, first = await hourly(world, hours=2)
    more = [(first - (n + 2) * 10 * 3_600_000, first - ((n + 2) * 10 - 3) * 3_600_000) for n in range(600)]
    assert (await world.store.jobs.backfill(job, schedule_version=1, ranges=more)).tag == "ok"
    other, _ = await hourly(world, "other", hours=5)
    two = [catch_up(world), catch_up(world)]
    while any([await paying.step() for paying in two]):
        pass
    found = await runs(world)
    assert sum(r.startswith(job) for r in found) <= 10
    assert sum(r.startswith(other) for r in found) == 5


async def test_a_full_queue_gives_its_share_by_time_and_hides_no_other_queue(world: World) -> None:
    for n in range(30):
        await hourly(world, f"job {n}", hours=3)
    await world.queued("other")
    paying = catch_up(world)
    began = await world.store.clock.read()
    for _ in range(10):
        await paying.step()
    assert len(await runs(world)) - 1 <= 1 + (await world.store.clock.read() - began) / 1000 + 1  # one a second


async def test_new_zone_data_lets_a_catch_up_go_on(world: World) -> None:
    job, first = await hourly(world, hours=25)
    record = await world.store.jobs.get(job)
    assert isinstance(record, JobRecord)
    paying = catch_up(world)
    await paying.step()
    head = record.head._replace(
        version=2, schedule_version=2, keeps=1, schedule_changed_at=await world.store.clock.read()
    )
    due = (await world.store.jobs.get_due_times([job]))[job]
    assert (await world.store.jobs.put([PutItem(job, 1, due, record._replace(head=head).pack())], atomic=True)).ok
    await soon(world)
    await paying.step()
    assert hours(await runs(world), first) == list(range(20))
