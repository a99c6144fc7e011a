"""The scheduler's loops as tests step them by hand, and what may stand in their way."""

from __future__ import annotations

import logging

from rsched.runtime.clock import SystemClock
from rsched.scheduler.claim import Claimer
from tests.support.store_world import Job, World

LOG = logging.getLogger("tests")


def claimer(world: World) -> Claimer:
    return Claimer(
        world.store, "s", epochs=None, lookahead_ms=5000, batch=100, lost=lambda _: None, claimed=lambda: None,
        clock=SystemClock(), log=LOG,
    )  # fmt: skip


async def make_unreadable(world: World, job: Job) -> None:
    """As a release that is newer than this one might leave it: a head that scripts read, a body that Python does not."""
    value = job.record.head.pack().encode() + b"\n\xff\xff"
    await world.client.hset(world.keys.jobs(job.p), job.id, value)
