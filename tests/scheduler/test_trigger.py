"""Manual runs with a payload and an overlap policy of their own, from the trigger to the worker."""

from __future__ import annotations

import pytest

from rsched.core.ids import RunId
from rsched.core.jobs.model import Overlap
from tests.store.world import World

pytestmark = pytest.mark.anyio


async def test_the_worker_gets_the_payload_of_the_trigger_and_the_jobs_own_otherwise(world: World) -> None:
    job = await world.put("a", due_in=3_600_000, payload={"own": True})
    one = await world.store.jobs.trigger(job.id, suffix="aaaa", repeat_key="", payload=b"\x2a")
    two = await world.store.jobs.trigger(job.id, suffix="bbbb", repeat_key="")
    await world.store.runs.release(limit=10)
    got = {r.run: r.definition.payload for r in (await world.fetch()).runs}
    assert got == {one.run: 42, two.run: {"own": True}}


@pytest.mark.parametrize(("overlap", "starts"), [(None, False), ("allow", True)])
async def test_a_trigger_runs_beside_an_open_run_only_where_it_says_so(
    world: World, overlap: Overlap | None, starts: bool
) -> None:
    job, _ = await world.running("a", kind="e", overlap="s")
    reply = await world.store.jobs.trigger(job.id, suffix="aaaa", repeat_key="", overlap=overlap)
    await world.store.runs.release(limit=10)
    fetched: set[RunId] = {r.run for r in (await world.fetch()).runs}
    assert (reply.run in fetched) is starts
