"""What each verb costs Redis when nothing else runs: its own count of CPU before and after a phase of one verb only."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from bench.figures import circumstances
from bench.jobs import item, put_all
from bench.world import World, world
from rsched.core.ids import WorkerId
from rsched.core.instants import format_utc
from rsched.core.jobs.model import ScheduleSpec
from rsched.core.states import RunState
from rsched.runtime.clock import Clock
from rsched.store.run_values import FetchedRun, FinishItem
from rsched.store.store import Store

_LEASE_MS = 60_000
_BATCH = 200
_WORKER = WorkerId("w_bench")


class _Phases:
    """Redis CPU, wall time and calls of each phase, in us a run."""

    def __init__(self, w: World, runs: int) -> None:
        self._w, self._runs = w, runs
        self.found: dict[str, dict[str, float]] = {}

    async def measure(self, name: str, phase: Callable[[], Awaitable[None]]) -> None:
        cpu, began = await self._w.redis_cpu_s(), self._w.clock.perf_s()
        await phase()
        wall = self._w.clock.perf_s() - began
        spent = await self._w.redis_cpu_s() - cpu
        self.found[name] = {
            "redis_cpu_us_per_run": round(spent / self._runs * 1e6, 1),
            "wall_us_per_run": round(wall / self._runs * 1e6, 1),
        }


async def measure(*, runs: int, teams: int, clock: Clock) -> dict[str, Any]:
    async with world({}, clock=clock) as w:
        store = w.store
        await store.recovery.begin(1, fence=2**36)
        await store.recovery.restage(0, lease_ms=_LEASE_MS)
        await store.recovery.finish(recovery_grace_ms=0)
        now = await store.clock.read()
        due = now + 1000 + runs // 5
        schedule = ScheduleSpec(at=format_utc(due))
        puts = [item(f"cost-{i}", schedule, function="noop", now=now, team=f"team-{i % teams}")[0] for i in range(runs)]
        phases = _Phases(w, runs)
        await phases.measure("put", lambda: put_all(store, puts))
        await phases.measure("claim", lambda: _claim(store, runs))
        while await store.clock.read() < due:
            await clock.sleep(10)
        await phases.measure("release", lambda: _release(store, runs))
        fetched: list[FetchedRun] = []
        await phases.measure("fetch", lambda: _fetch(store, runs, fetched))
        await phases.measure("renew", lambda: _renew(store, fetched))
        await phases.measure("finish", lambda: _finish(store, fetched))
        way = ("claim", "release", "fetch", "finish")
        return {
            "benchmark": "scripts",
            **circumstances(clock),
            "runs": runs,
            "teams": teams,
            "append_only": "everysec",
            "phases": phases.found,
            "claim_to_finish_us_per_run": round(sum(phases.found[p]["redis_cpu_us_per_run"] for p in way), 1),
        }


async def _claim(store: Store, runs: int) -> None:
    left = runs
    while left > 0:
        heads, _ = await store.partitions.list_due(within_ms=60_000)
        reply = await store.runs.claim("s_bench", horizon_ms=60_000, limit=300, partitions=[(p, 0) for p in heads])
        left -= reply.total


async def _release(store: Store, runs: int) -> None:
    left = runs
    while left > 0:
        left -= (await store.runs.release(limit=300)).total


async def _fetch(store: Store, runs: int, fetched: list[FetchedRun]) -> None:
    request = 0
    while len(fetched) < runs:
        request += 1
        reply = await store.runs.fetch(_WORKER, request=request, slots=_BATCH, lease_ms=_LEASE_MS, queues=["default"])
        fetched += reply.runs


async def _renew(store: Store, fetched: list[FetchedRun]) -> None:
    for i in range(0, len(fetched), _BATCH):
        held = [(r.run, r.fence) for r in fetched[i : i + _BATCH]]
        await store.runs.renew(_WORKER, lease_ms=_LEASE_MS, items=held)


async def _finish(store: Store, fetched: list[FetchedRun]) -> None:
    now = store.clock.now_ms()
    for request, i in enumerate(range(0, len(fetched), _BATCH), 1_000_000):
        done = [FinishItem(r.run, r.fence, RunState.SUCCEEDED, 0, now, "") for r in fetched[i : i + _BATCH]]
        await store.runs.finish(_WORKER, request=request, items=done)
