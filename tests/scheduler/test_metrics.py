"""What the steps of a scheduler count."""

from __future__ import annotations

import random

import pytest

from bench.jobs import item, put_all
from rsched.core.jobs.model import ScheduleSpec
from rsched.runtime.metrics import ALERTS, CLAIMED, MISFIRES, REAPED, RELEASED
from rsched.scheduler.reap import Reaper
from rsched.scheduler.release import Releaser
from tests.scheduler.test_isolation import LOG, claimer, make_unreadable
from tests.store.world import World

pytestmark = pytest.mark.anyio


async def test_claims_releases_misfires_and_invalidated_jobs_are_counted(world: World) -> None:
    count = world.store.connection.metrics.number
    for i in range(3):
        await world.put(f"due {i}", due_in=0)
    now = await world.store.clock.read()
    late, _ = item("late", ScheduleSpec(every=60), function="f", now=now - 900_000)
    await put_all(world.store, [late])
    await make_unreadable(world, await world.put("bad", kind="c", due_in=0))
    tick = claimer(world)
    while await tick.step():
        pass
    assert count(MISFIRES).child().value == 1
    assert count(ALERTS).child("job_invalid").value == 1
    claimed = count(CLAIMED).child().value
    assert claimed >= 3
    release = Releaser(world.store, batch=100)
    while await release.step():
        pass
    assert count(RELEASED).child().value >= 3
    waiting = await world.client.zcard(world.keys.staged)
    assert count(RELEASED).child().value + waiting == await world.client.hlen(world.keys.runs)


async def test_reaped_attempts_are_counted(world: World) -> None:
    job, _ = await world.running("a")
    await world.client.zadd(world.keys.leases, {job.run: 1})
    reaper = Reaper(world.store, after_ms=0, rng=random.Random(1), log=LOG)
    await reaper.step()
    await reaper.step()
    assert world.store.connection.metrics.number(REAPED).child().value == 1
