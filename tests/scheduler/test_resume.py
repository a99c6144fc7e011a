"""Pauses that end by themselves, through the scheduler's own steps."""

from __future__ import annotations

import logging

import msgspec
import pytest

from bench.jobs import item
from rsched.core.ids import partition_of, run_id_of
from rsched.core.jobs.model import MisfirePolicy, ScheduleSpec
from rsched.core.jobs.packed import JobHead, RangeEvent, RunEvent, SkipEvent, unpack_job
from rsched.core.schedule.misfire import MisfireOutcome, resolve_resumed
from rsched.core.schedule.schedule import Interval
from rsched.core.states import JobState, RunState
from rsched.runtime.clock import SystemClock
from rsched.scheduler.claim import Claimer
from rsched.scheduler.resume import Resumer
from rsched.store.jobs import PutItem
from tests.store.world import World

pytestmark = pytest.mark.anyio
EVERY = 60_000


async def paused_since(
    world: World, policy: MisfirePolicy | None, *, minutes: int, until_in: int
) -> tuple[PutItem, JobHead]:
    """A job of every minute, paused `minutes` ago, before any of the minutes since."""
    now = await world.store.clock.read()
    put, _ = item("job", ScheduleSpec(every="1m", anchor="2020-01-01T00:00:00Z"), function="f", now=now)
    first = now // EVERY * EVERY - (minutes - 1) * EVERY
    assert (await world.store.jobs.put([put._replace(due=first)], atomic=True)).ok
    reply = await world.store.jobs.pause(put.job, until=now + until_in, missed=policy, note="a | note\nof two lines")
    assert reply.tag == "ok"
    head = await world.store.jobs.get_head(put.job)
    assert head is not None
    assert (head.state, head.until, head.note) == (JobState.PAUSED, now + until_in, "a | note\nof two lines")
    return put, head


async def ticks(world: World) -> None:
    resumer = Resumer(world.store, log=logging.getLogger("test"))
    while await resumer.step():
        pass


async def state(world: World, put: PutItem) -> JobHead:
    head = await world.store.jobs.get_head(put.job)
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
    assert head.schedule_version == paused.schedule_version + 1
    last = paused.paused_from + 6 * EVERY
    events = await world.events()
    skips = [(e.first, e.last, e.total, e.reason) for e in events if isinstance(e, SkipEvent)]
    ranges = [(e.start, e.end) for e in events if isinstance(e, RangeEvent)]
    ran = await world.store.runs.get(run_id_of(put.job, last))
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
    assert (await world.store.jobs.pause(put.job, note="other")).tag == "ok"
    after = await state(world, put)
    assert (after.note, after.until, after.schedule_version, after.version) == (
        "other",
        0,
        before.schedule_version,
        before.version + 1,
    )
    assert await world.client.zscore(world.keys.pauses, put.job) is None
    assert (await world.store.jobs.pause(put.job, note="other")).tag == "already"


async def test_an_edit_of_a_paused_job_keeps_the_end_of_its_pause(world: World) -> None:
    put, _ = await paused_since(world, "run_once", minutes=3, until_in=3_600_000)
    head = await state(world, put)
    edited = head._replace(version=head.version + 1).pack().encode() + b"\n" + put.value.partition(b"\n")[2]
    assert (await world.store.jobs.put([PutItem(put.job, head.version, None, edited)], atomic=True)).ok
    assert await world.client.zscore(world.keys.pauses, put.job) == head.until
    assert await world.client.zscore(world.keys.due(partition_of(put.job)), put.job) is None


async def test_what_was_claimed_ahead_is_withdrawn_or_stands_as_the_resume_says(world: World) -> None:
    for policy, runs in (("skip", []), (None, []), ("run_once", [1]), ("run_all", [0, 1])):
        job = await world.put(f"job {policy}", kind="e", due_in=100, every=200)
        await world.claim(job, horizon_ms=100)
        await world.claim(job, horizon_ms=300)
        await world.store.jobs.pause(job.id)
        while await world.store.clock.read() <= job.due + 200:
            pass
        await world.store.runs.release(limit=10)  # in its queue, and no worker has a slot
        head = await world.store.jobs.get_head(job.id)
        assert head is not None
        schedule = Interval(anchor_ms=job.due, every_ms=200)
        due, settled = resolve_resumed(head, schedule, policy, now=job.due + 250)  # type: ignore[arg-type]
        assert due is not None
        assert settled.ahead == (job.due, job.due + 200)
        reply = await world.store.jobs.resume(job.id, expect=head.version, due=due + 3_600_000, missed=settled)
        assert reply.tag == "ok"
        await world.store.runs.release(limit=10)
        assert sorted(r.run for r in (await world.fetch()).runs) == [run_id_of(job.id, job.due + 200 * n) for n in runs]


async def test_a_last_run_that_a_pause_held_completes_its_job(world: World) -> None:
    job = await world.put("job", kind="c", due_in=100, schedule="SID")
    await world.store.partitions.cache_occurrences("SID", after=job.due, occurrences=[], ended=True)
    await world.claim(job)
    await world.store.jobs.pause(job.id)
    while await world.store.clock.read() <= job.due:
        pass
    await world.store.runs.release(limit=10)
    head = await world.store.jobs.get_head(job.id)
    assert head is not None
    reply = await world.store.jobs.resume(job.id, expect=head.version, due=None, missed=MisfireOutcome(run_at=job.due))
    assert reply.tag == "ok"
    (run,) = (await world.fetch()).runs
    assert await world.finish(run) == "ok"
    head = await world.store.jobs.get_head(job.id)
    assert head is not None
    assert head.state is JobState.COMPLETED


async def test_very_many_pauses_that_end_at_once_do_not_delay_a_claim(world: World) -> None:
    now = await world.store.clock.read()
    puts = []
    for n in range(3000):
        put, _ = item(f"job {n}", ScheduleSpec(cron="0 3 * * *", timezone="UTC"), function="f", now=now)
        record = unpack_job(put.value)
        head = record.head._replace(state=JobState.PAUSED, until=now, paused_from=put.due)
        puts.append(put._replace(value=record._replace(head=head).pack(), due=None))
    assert (await world.store.jobs.put(puts, atomic=True)).ok
    job = await world.put("due")
    claimer = Claimer(world.store, "", epochs=None, lookahead_ms=5000, batch=100, lost=lambda _: None,
                      claimed=lambda: None, clock=SystemClock(), log=logging.getLogger("test"))  # fmt: skip
    assert await claimer.step()
    assert await world.store.runs.get(job.run) is not None
    assert not await claimer.step()
    await ticks(world)
    assert await world.client.zcard(world.keys.pauses) == 0


async def test_a_pause_of_a_job_that_cannot_be_read_ends_once_as_invalid(world: World) -> None:
    now = await world.store.clock.read()
    put, _ = item("job", ScheduleSpec(every="1h", anchor="2020-01-01T00:00:00Z"), function="f", now=now)
    record = unpack_job(put.value)
    definition = msgspec.structs.replace(
        record.definition, schedule=ScheduleSpec(cron="0 3 * * *", timezone="UTC", exclude=["holidays"])
    )
    head = record.head._replace(kind="c", arg="X", state=JobState.PAUSED, until=now, paused_from=now - 5000)
    value = record._replace(definition=definition, head=head).pack()
    assert (await world.store.jobs.put([put._replace(value=value, due=None)], atomic=True)).ok
    await ticks(world)
    assert (await state(world, put)).state is JobState.INVALID
    (skip,) = [e for e in await world.events() if isinstance(e, SkipEvent)]
    assert (skip.first, skip.reason) == (now - 5000, "paused")
    assert await world.store.pauses.list_ended(limit=9) == []


async def test_an_end_of_a_pause_without_a_paused_job_stands_in_nobodys_way(world: World) -> None:
    job = await world.put("active", due_in=60_000)
    await world.client.zadd(world.keys.pauses, {job.id: 1})
    put, _ = await paused_since(world, "skip", minutes=2, until_in=-1)
    await ticks(world)
    assert (await state(world, put)).state is JobState.ACTIVE
    assert await world.store.pauses.list_ended(limit=9) == []


async def test_each_occurrence_that_a_pause_held_is_on_record_once(world: World) -> None:
    job = await world.put("job", kind="e", due_in=100, every=200)
    await world.claim(job, horizon_ms=100)
    await world.store.jobs.pause(job.id)
    while await world.store.clock.read() <= job.due + 800:
        pass
    head = await world.store.jobs.get_head(job.id)
    assert head is not None
    schedule = Interval(anchor_ms=job.due, every_ms=200)
    due, settled = resolve_resumed(head, schedule, "run_once", now=job.due + 850)
    assert due is not None
    reply = await world.store.jobs.resume(job.id, expect=head.version, due=due + 3_600_000, missed=settled)
    assert reply.tag == "ok"
    events = await world.events()
    (skip,) = [e for e in events if isinstance(e, SkipEvent)]
    withdrawn = [e.run for e in events if isinstance(e, RunEvent) and e.record.state is RunState.SKIPPED]
    # The first was claimed ahead and has a record of its own; the fifth runs.
    assert withdrawn == [job.run]
    assert (skip.first, skip.last, skip.total) == (job.due + 200, job.due + 600, 3)
    assert await world.store.runs.get(run_id_of(job.id, job.due + 800)) is not None
