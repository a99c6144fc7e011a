"""A shard's Redis is emptied: how soon it is open again, how soon something is claimed, how fast the definitions come back."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from typing import Any

from bench.figures import circumstances
from rsched.core.instants import format_utc
from rsched.core.jobs.model import ScheduleSpec
from rsched.core.jobs.packed import JobEvent
from rsched.ledger import Ledger
from rsched.runtime.clock import Clock
from rsched.store.store import shard_tags
from tests.support.deployment import PREFIX, Deployment, deployment
from tests.support.factories import new_job

_BATCH = 5000
_SCHEDULES = 1000
_DAY_MS = 86_400_000


async def measure(*, jobs: int, clock: Clock) -> dict[str, Any]:
    """jobs: half of them cron in 1,000 schedules, a third one-offs within a day, the rest intervals of an hour and more."""
    async with deployment({}, clock=clock) as w:
        began = clock.perf_s()
        await _fill(w, jobs, clock=clock)
        filled_s = clock.perf_s() - began
        w.fleet.start("recorder-1")
        w.fleet.start("scheduler-1")
        await w.fleet.until(lambda: _back(w), what="all definitions back", within_s=60 + jobs / 2000)
        memory = int((await w.store.connection.client.info("memory"))["used_memory"])
        await w.store.connection.client.flushall()
        emptied = clock.perf_s()
        at: dict[str, float] = {}

        async def all_seen() -> bool:
            asked: dict[str, Callable[[], Awaitable[bool]]] = {
                "opened": w.store.recovery.is_open,
                "claimed": lambda: _claimed(w),
                "back": lambda: _back(w),
            }
            for name, found in asked.items():
                if name not in at and await found():
                    at[name] = clock.perf_s() - emptied
            return len(at) == len(asked)

        await w.fleet.until(all_seen, what="the end of the background restore", within_s=60 + jobs / 2000)
        there = sum([await w.store.connection.client.hlen(w.store.keys.jobs(p)) for p in range(1024)])
        return {
            "benchmark": "restore",
            "jobs": jobs,
            "opened_s": round(at["opened"], 2),
            "first_claim_s": round(at["claimed"], 2),
            "all_back_s": round(at["back"], 2),
            "definitions_per_s": round(jobs / at["back"]),
            "redis_mb": round(memory / 1e6),
            "recorded_per_s": round(jobs / filled_s),
            "verdict": ["ok" if there == jobs else f"BREACH: {there} of {jobs} jobs are back"],
            **circumstances(clock),
        }


async def _back(w: Deployment) -> bool:
    found = await w.store.restore.get_progress()
    return found is not None and found.phase == "done"


async def _claimed(w: Deployment) -> bool:
    return bool(await w.store.connection.client.exists(w.store.keys.journal))


async def _fill(w: Deployment, jobs: int, *, clock: Clock) -> None:
    """Straight into the ledger, as the recorder would have."""
    rng, now, shard = random.Random(1), clock.wall_ms(), shard_tags(1)[0]
    async with Ledger(w.database_url, clock=clock) as ledger:
        await ledger.recovery.generations.next(shard, redis_fence=0)
        at = "0-0"
        for first in range(0, jobs, _BATCH):
            events = []
            for i in range(first, min(jobs, first + _BATCH)):
                put, _ = new_job(f"job-{i}", _spec(i, rng, now=now), function="noop", now=now)
                events.append(JobEvent(put.job, put.value))
            new = f"1-{first // _BATCH + 1}"
            if not await ledger.write.record(shard, stream="definitions", expected=at, new=new, events=events):
                raise RuntimeError(f"{PREFIX}: somebody else recorded")
            at = new


def _spec(i: int, rng: random.Random, *, now: int) -> ScheduleSpec:
    if i < 5:
        return ScheduleSpec(every=1)  # so that something is due at every moment
    if i % 6 < 3:
        n = rng.randrange(_SCHEDULES)
        return ScheduleSpec(cron=f"{n % 60} {n // 60} * * *" if n % 60 else f"*/{5 + n // 60} * * * *")
    if i % 6 < 5:
        return ScheduleSpec(at=format_utc(now + 60_000 + rng.randrange(_DAY_MS)))
    return ScheduleSpec(every=3600 + 60 * rng.randrange(60), anchor=format_utc(now - rng.randrange(_DAY_MS)))
