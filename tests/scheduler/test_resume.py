"""Pauses that end by themselves, through the scheduler's own steps."""

from __future__ import annotations

import logging

import pytest

from bench.jobs import item
from rsched.core.ids import partition_of, run_id_of
from rsched.core.model import MisfirePolicy, ScheduleSpec
from rsched.core.packed import JobHead, RangeEvent, SkipEvent
from rsched.core.states import JobState
from rsched.runtime.clock import SystemClock
from rsched.scheduler.claim import Claimer
from rsched.store.jobs import PutItem
from tests.store.world import World

pytestmark = pytest.mark.anyio
EVERY = 60_000


async def paused_since(
    world: World, policy: MisfirePolicy | None, *, minutes: int, until_in: int
) -> tuple[PutItem, JobHead]:
    """A job of every minute, paused `minutes` ago, before any of the minutes since."""
    now = await world.store.time()
    put, _ = item("job", ScheduleSpec(every="1m", anchor="2020-01-01T00:00:00Z"), function="f", now=now)
    first = now // EVERY * EVERY - (minutes - 1) * EVERY
    assert (await world.store.put([put._replace(due=first)], atomic=True)).ok
    reply = await world.store.pause(put.job, until=now + until_in, missed=policy, note="a | note\nof two lines")
    assert reply.tag == "ok"
    head = await world.store.get_head(put.job)
    assert head is not None
    assert (head.state, head.until, head.note) == (JobState.PAUSED, now + until_in, "a | note\nof two lines")
    return put, head


async def ticks(world: World) -> None:
    claimer = Claimer(world.store, "", epochs=None, lookahead_ms=5000, batch=100, lost=lambda _: None,
                      claimed=lambda: None, clock=SystemClock(), log=logging.getLogger("test"))  # fmt: skip
    while await claimer.step():
        pass


async def state(world: World, put: PutItem) -> JobHead:
    head = await world.store.get_head(put.job)
    assert head is not None
    return head


@pytest.mark.parametrize("policy", ["skip", "run_once", "run_all", None])
async def test_a_pause_ends_at_its_time_and_what_was_missed_is_settled(
    world: World, policy: MisfirePolicy | None
) -> None:
    put, paused = await paused_since(world, policy, minutes=7, until_in=-1)
    await ticks(world)
    head = await state(world, put)
    assert (head.state, head.until, head.note, head.missed, head.paused_from) == (JobState.ACTIVE, 0, "", "", 0)
    assert head.sv == paused.sv + 1
    last = paused.paused_from + 6 * EVERY
    events = await world.events()
    skips = [(e.first, e.last, e.total, e.reason) for e in events if isinstance(e, SkipEvent)]
    ranges = [(e.start, e.end) for e in events if isinstance(e, RangeEvent)]
    ran = await world.store.get_run(run_id_of(put.job, last))
    if policy == "run_once":
        assert (skips, ranges) == ([(paused.paused_from, last - EVERY, 6, "paused")], [])
        assert ran is not None
    elif policy == "run_all":
        assert (skips, ranges) == ([], [(paused.paused_from, last)])
    else:
        assert (skips, ranges, ran) == ([(paused.paused_from, last, 7, "paused")], [], None)
    due = await world.client.zscore(world.keys.due(partition_of(put.job)), put.job)
    assert due is not None
    assert due > last


async def test_a_pause_that_lasts_is_left_alone(world: World) -> None:
    put, _ = await paused_since(world, "run_once", minutes=3, until_in=3_600_000)
    await ticks(world)
    assert (await state(world, put)).state is JobState.PAUSED
    # Another end and note, without a new schedule version.
    before = await state(world, put)
    assert (await world.store.pause(put.job, note="other")).tag == "ok"
    after = await state(world, put)
    assert (after.note, after.until, after.sv, after.version) == ("other", 0, before.sv, before.version + 1)
    assert await world.client.zscore(world.keys.due(partition_of(put.job)), put.job) is None
    assert (await world.store.pause(put.job, note="other")).tag == "already"


async def test_an_edit_of_a_paused_job_keeps_the_end_of_its_pause(world: World) -> None:
    put, _ = await paused_since(world, "run_once", minutes=3, until_in=3_600_000)
    head = await state(world, put)
    edited = head._replace(version=head.version + 1).pack().encode() + b"\n" + put.value.partition(b"\n")[2]
    assert (await world.store.put([PutItem(put.job, head.version, None, edited)], atomic=True)).ok
    assert await world.client.zscore(world.keys.due(partition_of(put.job)), put.job) == head.until
