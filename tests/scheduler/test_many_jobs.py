"""58,000 jobs of one instant on 1,000 distinct expressions."""

from __future__ import annotations

import logging
from collections import Counter
from typing import Any

import pytest

from bench.jobs import item
from rsched.core.ids import derive_job_id
from rsched.core.instants import format_utc
from rsched.core.jobs.model import ScheduleSpec
from rsched.core.jobs.packed import unpack_head
from rsched.runtime.clock import SystemClock
from rsched.scheduler.claim import Claimer
from rsched.store.jobs import PutItem
from rsched.store.partitions import Partitions
from tests.store.world import World

pytestmark = pytest.mark.anyio
JOBS, EXPRESSIONS = 58_000, 1000


def expression(n: int, minute: int, hour: int) -> str:
    """The nth of many that all fire at hour:minute, and not again within ten minutes."""
    other_minute, other_hour = (minute + 10 + n // 23) % 60, (hour + 1 + n % 23) % 24
    minutes, hours = sorted({minute, other_minute}), sorted({hour, other_hour})
    return f"{','.join(map(str, minutes))} {','.join(map(str, hours))} * * *"


async def stored(world: World) -> tuple[int, dict[str, str]]:
    """The instant (ms) that all jobs are due at, and the schedule of each job."""
    # All of them within the grace of a minute, however slow the machine: the minute has just begun.
    while (now := await world.store.clock.read()) % 60_000 > 20_000:
        pass
    due = now // 60_000 * 60_000
    at = format_utc(due)
    hour, minute = int(at[11:13]), int(at[14:16])
    patterns = []
    for n in range(EXPRESSIONS):
        spec = ScheduleSpec(cron=expression(n, minute, hour), timezone="UTC")
        put, _ = item(f"job {n}", spec, function="f", now=now)
        patterns.append((put.value, unpack_head(put.value).arg))
    items, args = [], {}
    for n in range(JOBS):
        # Their definitions differ in nothing that claiming looks at.
        job = derive_job_id("default", f"job {n}", 1)
        value, arg = patterns[n % EXPRESSIONS]
        items.append(PutItem(job, 0, due, value))
        args[job] = arg
    for start in range(0, JOBS, 2000):
        assert (await world.store.jobs.put(items[start : start + 2000], atomic=True)).ok
    return due, args


async def test_each_distinct_expression_is_computed_once(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    due, args = await stored(world)
    filled: Counter[str] = Counter()
    fill = Partitions.cache_occurrences

    async def counted(self: Partitions, schedule: str, **given: Any) -> None:
        filled[schedule] += 1
        await fill(self, schedule, **given)

    monkeypatch.setattr(Partitions, "cache_occurrences", counted)
    clock = SystemClock()
    claimer = Claimer(world.store, "", epochs=None, lookahead_ms=5000, batch=300, lost=lambda _: None,
                      claimed=lambda: None, clock=clock, log=logging.getLogger("test"))  # fmt: skip
    began = clock.perf_s()
    while await claimer.step():
        pass
    print(f"{JOBS} jobs on {EXPRESSIONS} expressions claimed in {clock.perf_s() - began:.2f} s")
    assert await world.client.hlen(world.keys.runs) == JOBS
    assert await world.client.zcard(world.keys.staged) == JOBS
    assert len(set(args.values())) == EXPRESSIONS
    assert set(filled) == set(args.values())
    assert set(filled.values()) == {1}
    assert await world.client.zcount(world.keys.heads, "-inf", due) == 0
