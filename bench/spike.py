"""One identical instant for N one-offs: how late they start, how fast they go through, and what each costs."""

from __future__ import annotations

from typing import Any

from bench.checker import Recorded, Verdict, check
from bench.figures import circumstances, latency, used
from bench.jobs import Expected, item, put_all
from bench.ledger import count_final, last_ended, read_recorded, read_skips
from bench.redis_cost import scripts_seen, watch_scripts
from bench.world import World, world
from rsched.core.instants import format_utc
from rsched.core.jobs.model import ScheduleSpec
from rsched.runtime.clock import Clock
from rsched.store.store import Store

APP = "bench.noop_app:app"
# Puts end before claiming begins, so that the two are not measured as one.
_LOOKAHEAD_MS = 5000


async def put_at_one_instant(store: Store, runs: int, *, teams: int, lead_ms: int) -> list[Expected]:
    """N one-offs, due at the next full second that is at least lead_ms ahead, spread evenly over teams."""
    now = await store.clock.read()
    due = (now + lead_ms) // 1000 * 1000 + 1000
    schedule = ScheduleSpec(at=format_utc(due))
    made = [
        item(f"spike-{i}", schedule, function="noop", now=now, team=f"team-{i % teams}" if teams > 1 else "default")
        for i in range(runs)
    ]
    await put_all(store, [put for put, _ in made])
    return [expected for _, expected in made]


async def until_done(w: World, expected: list[Expected], *, within_s: float) -> None:
    """Until nothing is left in Redis (asked there first, because it costs less), then until all of it is recorded."""

    async def all_ended() -> bool:
        await w.clock.sleep(100)
        return await w.store.connection.client.hlen(w.store.keys.runs) == 0

    async def all_recorded() -> bool:
        return await count_final(w.database_url) >= len(expected)

    while await w.store.clock.read() < max(o.due for o in expected):
        await w.clock.sleep(100)
    await w.fleet.until(all_ended, what="the end of all runs", within_s=within_s)
    await w.fleet.until(all_recorded, what="all runs in the ledger", within_s=within_s)


async def verdict_of(w: World, expected: list[Expected]) -> tuple[Verdict, list[Recorded]]:
    recorded = await read_recorded(w.database_url)
    skips = await read_skips(w.database_url)
    return check(None, recorded, expected={o.job: [o.due] for o in expected}, skips=skips), recorded


def _bound(script_us: float, wall_us: float) -> str:
    """What the time of a run went into; the two cores are shared by the servers and all processes."""
    share = script_us / wall_us
    return (
        f"{wall_us:.0f} us of wall time a start; Redis spends {script_us:.0f} us a run in scripts ({share:.0%}, claiming "
        "ahead of the instant included), the rest is waiting for the cores that workers, recorder and Postgres share with it"
    )


async def measure(*, runs: int, workers: int, teams: int, concurrency: int, clock: Clock) -> dict[str, Any]:
    env = {"RSCHED_WORKER_APP": APP, "RSCHED_WORKER_CONCURRENCY": str(concurrency)}
    async with world(env, clock=clock) as w:
        w.fleet.start("recorder")
        await w.until_open()
        w.fleet.start("scheduler")
        for i in range(workers):
            w.fleet.start(f"worker-{i + 1}")

        async def settled() -> bool:
            workers_seen = len((await w.store.processes.list_live())[1])
            return workers_seen >= workers and await w.store.partitions.count_owned() > 0

        await w.fleet.until(settled, what="a scheduler and all workers", within_s=20)
        before_puts = await w.redis_cpu_s()
        expected = await put_at_one_instant(w.store, runs, teams=teams, lead_ms=_LOOKAHEAD_MS + 2000 + runs // 5)
        await watch_scripts(w.store)
        before, redis_before = w.cpu(), await w.redis_cpu_s()
        await until_done(w, expected, within_s=60 + runs / 500)
        after, redis_after = w.cpu(), await w.redis_cpu_s()
        scripts = await scripts_seen(w.store, runs)
        verdict, recorded = await verdict_of(w, expected)
        due = expected[0].due
        took_s = (await last_ended(w.database_url) - due) / 1000
        started_s = (max(r.started_at for r in recorded) - due) / 1000
        memory = await w.store.connection.client.info("memory")
        return {
            "benchmark": "spike",
            **circumstances(clock),
            "runs": runs, "workers": workers, "teams": teams, "concurrency": concurrency,
            "lateness": latency([r.started_at - r.due_at for r in recorded]),
            "starts_per_s": round(runs / max(started_s, 0.001)),
            "runs_per_s": round(runs / max(took_s, 0.001)),
            "verdict": str(verdict).split("\n"),
            "bound_by": _bound(scripts["all_scripts_us_per_run"], started_s * 1e6 / runs),
            "redis_cpu_us_per_put": round((redis_before - before_puts) / runs * 1e6, 1),
            "redis_cpu_us_per_run": round((redis_after - redis_before) / runs * 1e6, 1),
            "scripts": scripts,
            "cpu_s": used(before, after),
            "cpu_us_per_run": {k: round(v / runs * 1e6, 1) for k, v in used(before, after).items()},
            "redis_peak_mb": round(memory["used_memory_peak"] / 2**20, 1),
        }  # fmt: skip
