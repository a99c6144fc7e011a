"""While definitions that Redis had lost are being restored, what belongs to a job that is not there yet waits for it."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from rsched.core.jobs.packed import WatermarkEvent
from rsched.core.states import RunState
from rsched.scheduler.reap import Reaper
from rsched.store.catchup import CatchupRange
from rsched.store.restore import RestoreProgress
from rsched.store.run_values import ReapItem
from tests.recorder.steps import LOG
from tests.store.world import Job, World

pytestmark = pytest.mark.anyio


async def restoring(world: World, phase: str) -> None:
    await world.store.restore.set_progress(RestoreProgress(phase, 1, 0, 1, 0, await world.store.clock.read()))


@asynccontextmanager
async def without_its_definition(world: World, job: Job, *, phase: str = "jobs") -> AsyncIterator[None]:
    value = await world.client.hget(world.keys.jobs(job.p), job.id)
    await world.client.hdel(world.keys.jobs(job.p), job.id)
    await restoring(world, phase)
    yield
    await world.client.hset(world.keys.jobs(job.p), job.id, value)
    await restoring(world, "done")


async def overdue(world: World, name: str) -> None:
    """As if what waits in a set had waited long enough."""
    for member in await world.client.zrange(name, 0, -1):
        await world.client.zadd(name, {member: 1})


@pytest.mark.parametrize("overlap", ["", "s", "q", "w", "k"])
async def test_a_queued_run_comes_again(world: World, overlap: str) -> None:
    job = await world.queued(overlap=overlap)
    before = await world.store.runs.get(job.run)
    async with without_its_definition(world, job):
        assert (await world.fetch()).runs == []
        assert await world.store.runs.get(job.run) == before
        later = await world.client.zrange(world.keys.staged, 0, -1, withscores=True)
        assert [score - await world.store.clock.read() > 500 for _, score in later] == [True]
    await overdue(world, world.keys.staged)
    await world.store.runs.release(limit=10)
    assert [r.run for r in (await world.fetch()).runs] == [job.run]


@pytest.mark.parametrize("overlap", ["", "q"])
async def test_a_retry_comes_again(world: World, overlap: str) -> None:
    job, run = await world.running(overlap=overlap)
    assert await world.finish(run, RunState.RETRYING, error="no") == "ok"
    await world.store.runs.release(limit=10)
    async with without_its_definition(world, job):
        assert (await world.fetch()).runs == []
        found = await world.store.runs.get(job.run)
        assert found is not None
        assert found.state is RunState.RETRYING
    await overdue(world, world.keys.retries)
    await world.store.runs.release(limit=10)
    assert [(r.run, r.attempt) for r in (await world.fetch()).runs] == [(job.run, 2)]


async def test_the_others_of_a_fetch_are_given(world: World) -> None:
    job, other = await world.queued("a"), await world.queued("b")
    async with without_its_definition(world, job):
        assert [r.run for r in (await world.fetch()).runs] == [other.run]


async def test_a_lost_attempt_is_judged_once_its_retry_policy_is_known(world: World) -> None:
    job, _ = await world.running()
    other, _ = await world.running("b")
    await overdue(world, world.keys.leases)
    reaper = Reaper(world.store, after_ms=0, rng=random.Random(1), log=LOG)
    async with without_its_definition(world, job):
        while await reaper.step():
            pass
        states = [(await world.store.runs.get(j.run)).state for j in (job, other)]  # type: ignore[union-attr]
        assert states == [RunState.RUNNING, RunState.RETRYING]
        # Not looked at again at once, so that others get their turn.
        assert await world.store.runs.expired_leases(after_ms=0, limit=10) == ([], False)
    await overdue(world, world.keys.leases)
    while await reaper.step():
        pass
    found = await world.store.runs.get(job.run)
    assert found is not None
    assert found.state is RunState.RETRYING


async def test_a_definition_that_comes_between_the_look_and_the_reap_decides(world: World) -> None:
    job, run = await world.running()
    await overdue(world, world.keys.leases)
    async with without_its_definition(world, job):
        seen, _ = await world.store.runs.expired_leases(after_ms=0, limit=10)
        assert [(r, definition) for r, _, definition in seen] == [(job.run, None)]
    assert await world.store.runs.reap([ReapItem(run.run, run.fence, "N", 0)], after_ms=0) == ["later"]


async def test_without_a_restoration_a_run_without_definition_ends(world: World) -> None:
    job = await world.queued()
    async with without_its_definition(world, job, phase="done"):
        assert (await world.fetch()).runs == []
        assert await world.store.runs.get(job.run) is None
    other, _ = await world.running("b")
    await overdue(world, world.keys.leases)
    async with without_its_definition(world, other, phase="done"):
        await Reaper(world.store, after_ms=0, rng=random.Random(1), log=LOG).step()
        assert await world.store.runs.get(other.run) is None


async def test_a_catch_up_range_waits(world: World) -> None:
    now = await world.store.clock.read()
    job = await world.put("a", kind="e", due_in=60_000)
    expected = CatchupRange(job.id, now - 120_000, now - 60_000, 1, "", now, now)
    await world.client.zadd(world.keys.catchup, {expected.member: now})
    async with without_its_definition(world, job):
        tag = await world.store.catchup.enqueue(expected, occurrences=[], rest=None, pace_ms=1000, most=10)
        assert tag == "paced"
        assert await world.client.zscore(world.keys.catchup, expected.member) > now
    (again,) = await world.store.catchup.list_all()
    paid = await world.store.catchup.enqueue(
        again, occurrences=[expected.start, expected.end], rest=None, pace_ms=1000, most=10
    )
    assert paid == "ok"


@pytest.mark.parametrize(("phase", "marks"), [("runs", 0), ("jobs", 0), ("done", 1), (None, 1)])
async def test_no_mark_says_that_all_is_claimed_before_all_is_back(world: World, phase: str | None, marks: int) -> None:
    job = await world.put("a", kind="e")
    if phase is not None:
        await restoring(world, phase)
    await world.claim(job)
    found = [e for e in await world.events() if isinstance(e, WatermarkEvent)]
    assert len(found) == marks
