"""Runs of one-offs, step by step: how each comes to be what a test wants it to be."""

from __future__ import annotations

from typing import Any

from rsched.core.ids import RunId
from rsched.core.states import RunState
from rsched.store.run_values import FetchedRun
from tests.recorder.rollback import stale_generation
from tests.recorder.stepped_shard import HOUR, WORKER, Shard


async def put_once(s: Shard, name: str, *, due_in: int = 0) -> RunId:
    job = await s.put(name, kind="o", due_in=due_in)
    return RunId(f"{job}:{(await s.store.jobs.get_due_times([job]))[job]}")


async def fetched(s: Shard) -> dict[RunId, FetchedRun]:
    s.world.requests = s.request = max(s.world.requests, s.request) + 1
    found = {r.run: r for r in (await s.world.fetch(100, worker=WORKER)).runs}
    s.request = s.world.requests
    return found


async def finished(s: Shard, run: FetchedRun, outcome: RunState = RunState.SUCCEEDED, *, delay_ms: int = 0) -> None:
    assert await s.world.finish(run, outcome, delay_ms=delay_ms, error="boom" * (outcome is RunState.DEAD)) == "ok"
    s.request = s.world.requests


async def brought_forward(s: Shard, run: RunId) -> None:
    """What waits for its instant need not any more."""
    for key in (s.keys.retries, s.keys.staged):
        for member in await s.redis.zrange(key, 0, -1):
            if member.decode().startswith(run):
                await s.redis.zadd(key, {member: 1})


async def emptied(s: Shard) -> None:
    """Redis loses everything, and is opened and rebuilt from the ledger."""
    await s.redis.delete(*[key async for key in s.redis.scan_iter(s.keys.prefix + ":*")])
    await stale_generation(s)


async def rows(s: Shard) -> dict[str, tuple[Any, ...]]:
    return {r[0]: r[1:] for r in await s.ledger.database.rows("SELECT run_id, status::text, error FROM runs", ())}


KINDS = ("staged", "queued", "running", "retrying")


async def of_every_kind(s: Shard) -> tuple[dict[str, RunId], dict[RunId, FetchedRun]]:
    """Three runs of each kind, recorded; and the attempts that are under way."""
    runs: dict[str, RunId] = {}
    for n in range(3):
        for kind in ("running", "retrying"):
            runs[f"{kind} {n}"] = await put_once(s, f"{kind} {n}")
    await s.schedule()
    active = await fetched(s)
    for n in range(3):
        await finished(s, active.pop(runs[f"retrying {n}"]), RunState.RETRYING, delay_ms=HOUR)
        runs[f"queued {n}"] = await put_once(s, f"queued {n}")
    await s.schedule()
    for n in range(3):
        runs[f"staged {n}"] = await put_once(s, f"staged {n}", due_in=4500)
    await s.world.claim()
    await s.record()
    return runs, active


async def in_the_gap(s: Shard, runs: dict[str, RunId], active: dict[RunId, FetchedRun]) -> set[RunId]:
    """One run of each kind ends by its worker (of those under way one each way), another is cancelled; those that ended."""
    await finished(s, active.pop(runs["running 0"]))
    for kind in ("staged", "retrying"):
        await brought_forward(s, runs[f"{kind} 0"])
    await s.schedule()
    now_active = await fetched(s)
    for kind in ("staged", "queued", "retrying"):
        await finished(s, now_active.pop(runs[f"{kind} 0"]), RunState.DEAD if kind == "queued" else RunState.SUCCEEDED)
    for kind in KINDS:
        await s.store.runs.cancel(runs[f"{kind} 1"])
    await finished(s, active.pop(runs["running 1"]), RunState.CANCELLED)
    await finished(s, now_active.pop(runs["queued 1"]), RunState.CANCELLED)
    active.update(now_active)
    records = await s.store.runs.read_packed(list(runs.values()))
    return {run for run, record in zip(runs.values(), records, strict=True) if record is None}
