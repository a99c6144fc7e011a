"""When little happens: how late a run starts, and what doing nothing costs."""

from __future__ import annotations

import random
from contextlib import AsyncExitStack
from typing import Any

from bench.figures import circumstances, latency, used
from bench.jobs import item, put_all
from bench.spike import APP, until_done, verdict_of
from bench.world import World, world
from rsched.core.instants import format_utc
from rsched.core.jobs.model import ScheduleSpec
from rsched.runtime.clock import Clock

_WORKERS = 2
_LEAD_MS = 3000
# Half a year from any instant of the run there is no 15th of this month.
_MONTHS_AHEAD = 6


async def _everything(stack: AsyncExitStack, clock: Clock) -> World:
    """All kinds of processes, as `rsched up` would start them."""
    env = {"RSCHED_WORKER_APP": APP, "RSCHED_API_PORT": "0"}
    w = await stack.enter_async_context(world(env, clock=clock))
    w.fleet.start("recorder")
    await w.until_open()
    w.fleet.start("scheduler")
    w.fleet.start("api")
    for i in range(_WORKERS):
        w.fleet.start(f"worker-{i + 1}")

    async def settled() -> bool:
        return len((await w.store.processes.list_live())[1]) >= _WORKERS and await w.store.partitions.count_owned() > 0

    await w.fleet.until(settled, what="a scheduler and all workers", within_s=20)
    return w


async def measure(*, runs: int, window_s: float, clock: Clock) -> dict[str, Any]:
    """One-offs at random instants, one of them about every window_s / runs."""
    rng = random.Random(runs)
    async with AsyncExitStack() as stack:
        w = await _everything(stack, clock)
        now = await w.store.clock.read()
        made = [
            item(
                f"quiet-{i}",
                ScheduleSpec(at=format_utc(now + _LEAD_MS + int(rng.uniform(0, window_s * 1000)))),
                function="noop",
                now=now,
            )
            for i in range(runs)
        ]
        await put_all(w.store, [put for put, _ in made])
        expected = [o for _, o in made]
        before = w.cpu()
        await until_done(w, expected, within_s=30)
        after = w.cpu()
        verdict, recorded = await verdict_of(w, expected)
        return {
            "benchmark": "quiet",
            **circumstances(clock),
            "runs": runs,
            "window_s": window_s,
            "lateness": latency([r.started_at - r.due_at for r in recorded]),
            "verdict": str(verdict).split("\n"),
            "cpu_s": used(before, after),
        }


async def idle(*, jobs: int, seconds: float, clock: Clock) -> dict[str, Any]:
    """Cron jobs of many schedules, none of them due."""
    async with AsyncExitStack() as stack:
        w = await _everything(stack, clock)
        now = await w.store.clock.read()
        month = (int(format_utc(now)[5:7]) + _MONTHS_AHEAD - 1) % 12 + 1
        made = [
            item(f"idle-{i}", ScheduleSpec(cron=f"{i % 60} {i // 60 % 24} 15 {month} *"), function="noop", now=now)
            for i in range(jobs)
        ]
        await put_all(w.store, [put for put, _ in made])
        await clock.sleep(5000)
        before, began = w.cpu(), clock.perf_s()
        await clock.sleep(seconds * 1000)
        took, spent = clock.perf_s() - began, used(before, w.cpu())
        return {
            "benchmark": "idle",
            **circumstances(clock),
            "jobs": jobs,
            "seconds": round(took, 1),
            "cpu_s": spent,
            "cpu_s_total": round(sum(spent.values()), 2),
            "part_of_a_core": round(sum(spent.values()) / took, 4),
        }
