"""Redis' clock steps: what it says to be over, leases and occurrences, is let be for one lease."""

from __future__ import annotations

import logging
import random
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest

from rsched.core.ids import JobId, derive_job_id, run_id_of
from rsched.core.instants import format_utc
from rsched.core.jobs.model import ScheduleSpec
from rsched.core.jobs.packed import misfire_code
from rsched.runtime.metrics import Metrics
from rsched.scheduler.reap import Reaper
from rsched.store.jobs import PutItem
from rsched.store.redis_clock import UNSURE_MS
from tests.sim.world import LOG, Sim
from tests.store.world import W, World, record

pytestmark = pytest.mark.anyio
START = 1_793_000_000_000
MINUTE, HOUR = 60_000, 3_600_000
STEPS = [HOUR, 10 * MINUTE]


@pytest.fixture
async def sim(
    anyio_backend: str, redis_url: str, redis_prefix: str, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Sim]:
    found = Sim(redis_url, prefix=redis_prefix, start_ms=START, monkeypatch=monkeypatch)
    await found.open()
    found.store.connection.metrics = Metrics("scheduler")
    yield found
    await found.store.aclose()


async def put_minutely(sim: Sim, policy: str) -> JobId:
    """Due each minute from one after the start on."""
    kind: Any = misfire_code(policy)  # type: ignore[arg-type]
    found = record("a", now=START, kind="e", arg=f"{START},{MINUTE}", misfire=kind)
    spec = ScheduleSpec(every="60s", anchor=format_utc(START))
    whole = found._replace(definition=msgspec.structs.replace(found.definition, schedule=spec, misfire_policy=policy))
    job = derive_job_id("default", "a", 1)
    assert (await sim.store.jobs.put([PutItem(job, 0, START + MINUTE, whole.pack())], atomic=True)).ok
    return job


def alerts(sim: Sim) -> int:
    (line,) = [x for x in sim.store.connection.metrics.render().decode().splitlines() if 'kind="clock_step"' in x]
    return int(float(line.split()[-1]))


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("policy", ["skip", "run_once", "run_all"])
async def test_a_clock_that_steps_ahead_and_is_set_right_in_time_makes_no_occurrence_late(
    sim: Sim, policy: str, step: int
) -> None:
    job = await put_minutely(sim, policy)
    await sim.run_until(START + 3 * MINUTE + 10_000)
    await sim.step_clock(step)
    await sim.run_until(sim.clock.ms + UNSURE_MS // 2)
    assert (sim.skips, sum(sim.succeeded.values())) == ([], 3)
    await sim.step_clock(-step)
    await sim.run_until(START + 7 * MINUTE)
    assert alerts(sim) == 2
    assert sim.skips == []
    assert sim.succeeded == {run_id_of(job, START + n * MINUTE): 1 for n in range(1, 8)}


@pytest.mark.parametrize("step", STEPS)
async def test_what_a_step_made_late_is_settled_one_lease_after_it(sim: Sim, step: int) -> None:
    await put_minutely(sim, "skip")
    await sim.run_until(START + MINUTE)
    await sim.step_clock(step)
    await sim.run_until(sim.clock.ms + UNSURE_MS - 1)
    assert sim.skips == []
    await sim.run_until(sim.clock.ms + 2000)
    assert sum(s.total for s in sim.skips) in (step // MINUTE - 1, step // MINUTE)


async def test_no_lease_is_over_by_a_step_alone(sim: Sim, caplog: pytest.LogCaptureFixture) -> None:
    world = World(sim.store)
    reaper = Reaper(sim.store, after_ms=1000, rng=random.Random(1), log=LOG)
    _, ended = await world.running("ended")
    _, left = await world.running("left")
    assert not await reaper.step()
    await sim.step_clock(HOUR)
    with caplog.at_level(logging.ERROR):
        assert not await reaper.step()
    assert alerts(sim) == 1
    assert [r.levelname for r in caplog.records if "has stepped" in r.getMessage()] == ["ERROR"]
    await sim.at(sim.clock.ms + UNSURE_MS // 2)
    assert not await reaper.step()
    # Its worker has not heard of any step, and presents what it has done.
    assert await world.finish(ended) == "ok"
    await sim.at(sim.clock.ms + UNSURE_MS // 2)
    await reaper.step()
    assert await sim.store.connection.client.zcard(sim.store.keys.leases) == 0
    assert await world.finish(left) == "stale_fence"
    assert alerts(sim) == 1


async def test_a_lease_goes_on_where_the_clock_is_set_right_in_time(sim: Sim) -> None:
    world = World(sim.store)
    reaper = Reaper(sim.store, after_ms=1000, rng=random.Random(1), log=LOG)
    _, run = await world.running()
    await sim.step_clock(HOUR)
    assert not await reaper.step()
    await sim.step_clock(-HOUR)
    assert not await reaper.step()
    assert (await sim.store.runs.renew(W, lease_ms=60_000, items=[(run.run, run.fence)])).tags == ["ok"]
    assert await world.finish(run) == "ok"


async def test_a_pause_is_not_ended_by_a_step(sim: Sim) -> None:
    world = World(sim.store)
    job = await world.put("a", kind="e", due_in=MINUTE)
    await sim.store.jobs.pause(job.id, until=START + 10 * MINUTE)
    await sim.step_clock(HOUR)
    await sim.resumer.step()
    assert await sim.store.pauses.list_ended(limit=1) == [job.id]
    await sim.step_clock(-HOUR)
    await sim.run_until(START + 12 * MINUTE)
    assert await sim.store.pauses.list_ended(limit=1) == []
