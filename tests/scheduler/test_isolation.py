"""One job that cannot be read, or whose range was withdrawn, stops nobody else and loses nothing silently."""

from __future__ import annotations

import logging

import pytest

from rsched.core.jobs.packed import SkipEvent, unpack_job
from rsched.core.states import JobState
from rsched.runtime.clock import SystemClock
from rsched.scheduler.catch_up import CatchUp
from rsched.scheduler.claim import Claimer
from rsched.store.jobs import PutItem
from rsched.store.run_values import MisfireItem
from tests.store.world import Job, World

pytestmark = pytest.mark.anyio
LOG = logging.getLogger("tests")
EVERY = 10_000


def claimer(world: World) -> Claimer:
    return Claimer(
        world.store, "s", epochs=None, lookahead_ms=5000, batch=100, lost=lambda _: None, claimed=lambda: None,
        clock=SystemClock(), log=LOG,
    )  # fmt: skip


async def make_unreadable(world: World, job: Job) -> None:
    """As a release that is newer than this one might leave it: a head that scripts read, a body that Python does not."""
    value = job.record.head.pack().encode() + b"\n\xff\xff"
    await world.client.hset(world.keys.jobs(job.p), job.id, value)


@pytest.mark.parametrize("late", [True, False], ids=["late", "without a calendar"])
async def test_an_unreadable_job_is_quarantined_and_the_others_are_claimed(world: World, late: bool) -> None:
    bad = await world.put("bad", kind="c", due_in=-100_000 if late else 0)
    good = await world.put("good", due_in=0)
    await make_unreadable(world, bad)
    tick = claimer(world)
    while await tick.step():
        pass
    assert await world.store.runs.get(good.run) is not None
    head = await world.store.jobs.get_head(bad.id)
    assert head is not None
    assert head.state is JobState.INVALID
    skips = [(e.first, e.reason) for e in await world.events() if isinstance(e, SkipEvent)]
    assert skips == [(bad.due, "invalid")]


async def catch_up_range(world: World, name: str = "job") -> Job:
    job = await world.put(name, kind="e", every=EVERY, due_in=-50 * EVERY)
    item = MisfireItem(job.id, 1, job.due, job.due + 60 * EVERY, None, 0, 0, 0, (job.due, job.due + 40 * EVERY))
    assert await world.store.runs.resolve_misfires([item]) == ["ok"]
    return job


@pytest.mark.parametrize("change", ["paused", "deleted", "withdrawn by an edit", "unreadable"])
async def test_the_rest_of_a_withdrawn_catch_up_is_skipped_on_record(world: World, change: str) -> None:
    job = await catch_up_range(world)
    if change == "paused":
        await world.store.jobs.pause(job.id)
    elif change == "deleted":
        await world.store.jobs.remove(job.id)
    elif change == "unreadable":
        await make_unreadable(world, job)
    else:
        head = job.record.head._replace(version=2, schedule_version=2, arg=f"{job.due},{3 * EVERY}")
        now = await world.store.clock.read()
        item = PutItem(job.id, 1, now + EVERY, job.record._replace(head=head).pack())
        assert (await world.store.jobs.put([item], atomic=True)).ok
    await CatchUp(world.store, per_s=10, share=0.2, schedulers=lambda: 1, clock=SystemClock(), log=LOG).step()
    skips = [e for e in await world.events() if isinstance(e, SkipEvent)]
    reason = "invalid" if change == "unreadable" else change
    assert [(s.first, s.last, s.reason) for s in skips] == [(job.due, job.due + 40 * EVERY, reason)]
    assert await world.store.catchup.list_due(limit=10) == []
    assert await world.client.hlen(world.keys.runs) == 0


async def test_an_edit_that_was_computed_before_an_occurrence_came_due_is_refused(world: World) -> None:
    job = await world.put("job", kind="e", every=EVERY, due_in=EVERY)
    head = job.record.head._replace(version=2, schedule_version=2)
    now = await world.store.clock.read()
    edited = job.record._replace(head=head).pack()
    assert (await world.store.jobs.put([PutItem(job.id, 1, now - 1, edited)], atomic=True)).tags == ["conflict"]
    assert (await world.store.jobs.put([PutItem(job.id, 1, now + EVERY, edited)], atomic=True)).tags == ["ok"]
    value = await world.client.hget(world.keys.jobs(job.p), job.id)
    assert unpack_job(value).head.version == 2


@pytest.mark.parametrize("change", ["delete", "edit"])
async def test_what_a_paused_job_missed_is_on_record_when_it_is_changed(world: World, change: str) -> None:
    job = await world.put("job", kind="e", every=EVERY, due_in=-3 * EVERY)
    await world.store.jobs.pause(job.id)
    if change == "delete":
        await world.store.jobs.remove(job.id)
    else:
        head = job.record.head._replace(state=JobState.PAUSED, version=3, schedule_version=3)
        assert (
            await world.store.jobs.put([PutItem(job.id, 2, None, job.record._replace(head=head).pack())], atomic=True)
        ).ok
    (skip,) = [e for e in await world.events() if isinstance(e, SkipEvent)]
    assert (skip.first, skip.last, skip.total, skip.reason) == (job.due, job.due + 3 * EVERY, 4, "paused")
