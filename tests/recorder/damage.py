"""A shard with jobs and runs of every kind, and what hands may do to it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from rsched.core.ids import JobId, partition_of
from rsched.core.states import RunState
from tests.recorder.stepped_shard import HOUR, WORKER, Shard


async def populate(s: Shard) -> dict[str, JobId]:
    """Jobs and runs of every kind: running, retrying, queued, staged, waiting for their turn, due later."""
    jobs = {}
    jobs["running"] = await s.put("running", kind="o")
    jobs["retrying"] = await s.put("retrying")
    jobs["serial"] = await s.put("serial", overlap="w", every=4000, due_in=-100)
    jobs["cron"] = await s.put("cron", kind="c")
    await s.schedule()
    fetched = (await s.world.fetch(10, worker=WORKER)).runs
    assert len(fetched) == 3
    retrying = next(r for r in fetched if r.run.startswith(jobs["retrying"]))
    assert await s.world.finish(retrying, RunState.RETRYING, delay_ms=60_000) == "ok"
    s.request = s.world.requests
    jobs["queued"] = await s.put("queued", kind="o")
    await s.schedule()
    await s.store.runs.release(limit=100)
    jobs["staged"] = await s.put("staged", due_in=4500)
    await s.world.claim()
    jobs["later"] = await s.put("later", due_in=HOUR)
    jobs["once"] = await s.put("once", kind="o", due_in=HOUR)
    trigger = await s.store.jobs.trigger(jobs["later"], suffix="aaaa", repeat_key="", payload=b"\xc0")
    assert trigger.run
    paused = jobs["paused"] = await s.put("paused", due_in=HOUR)
    assert (await s.store.jobs.pause(paused)).tag == "ok"
    resting = jobs["resting"] = await s.put("resting", due_in=HOUR)
    assert (await s.store.jobs.pause(resting, until=await s.store.clock.read() + HOUR)).tag == "ok"
    await s.store.partitions.cache_occurrences(
        "hourly", after=0, occurrences=[HOUR * i for i in range(1, 60)], ended=False
    )
    await s.record()
    return jobs


Damage = Callable[[Shard, dict[str, JobId]], Awaitable[object]]


async def run_of(s: Shard, job: JobId) -> str:
    return next(r.decode() for r in await s.redis.hkeys(s.keys.runs) if r.startswith(job.encode()))


def _hdel_run(name: str) -> Damage:
    async def damage(s: Shard, jobs: dict[str, JobId]) -> object:
        return await s.redis.hdel(s.keys.runs, await run_of(s, jobs[name]))

    return damage


def _spoil_run(name: str) -> Damage:
    async def damage(s: Shard, jobs: dict[str, JobId]) -> object:
        return await s.redis.hset(s.keys.runs, await run_of(s, jobs[name]), "1|Q|junk")

    return damage


def _job_key(change: Callable[[Shard, JobId, int], Awaitable[object]], name: str) -> Damage:
    async def damage(s: Shard, jobs: dict[str, JobId]) -> object:
        return await change(s, jobs[name], partition_of(jobs[name]))

    return damage


async def _older(s: Shard, job: JobId, p: int) -> object:
    head, _, body = (await s.redis.hget(s.keys.jobs(p), job)).partition(b"\n")
    return await s.redis.hset(s.keys.jobs(p), job, head.replace(b"1|a|1|1|", b"1|a|0|0|") + b"\n" + body)


async def _newer(s: Shard, job: JobId, p: int) -> object:
    head, _, body = (await s.redis.hget(s.keys.jobs(p), job)).partition(b"\n")
    return await s.redis.hset(s.keys.jobs(p), job, head.replace(b"1|a|1|1|", b"1|a|2|1|") + b"\n" + body)


DAMAGE: dict[str, tuple[Damage, dict[str, int]]] = {
    "staged entries gone": (lambda s, j: s.redis.delete(s.keys.staged), {"run_not_queued": 3}),
    "retry entries gone": (lambda s, j: s.redis.delete(s.keys.retries), {"run_not_queued": 1}),
    "a queue stream gone": (
        lambda s, j: s.redis.delete(s.keys.queue("default:default:1")),
        {"run_not_queued": 1, "team_without_work": 1},
    ),
    "leases gone": (lambda s, j: s.redis.delete(s.keys.leases), {"run_without_lease": 2}),
    "ready gone": (lambda s, j: s.redis.delete(s.keys.ready("default")), {"team_not_ready": 1}),
    "a team with nothing": (lambda s, j: s.redis.zadd(s.keys.ready("default"), {"idle": 1}), {"team_without_work": 1}),
    "entries of no run": (
        lambda s, j: s.redis.zadd(s.keys.staged, {"j_0000000000000:1|default:default:1": 1, "x": 2}),
        {"entry_without_run": 1, "unreadable_entry": 1},
    ),
    "a lease of no run": (lambda s, j: s.redis.zadd(s.keys.leases, {"j_0000000000000:1": 1}), {"lease_without_run": 1}),
    "heads gone": (lambda s, j: s.redis.delete(s.keys.heads), {}),
    "heads that lie": (
        lambda s, j: s.redis.zadd(s.keys.heads, {"9": 1, "junk": 1}),
        {"head_wrong": 1, "head_without_partition": 1},
    ),
    "a running run gone": (_hdel_run("running"), {"run_missing": 1}),
    "a staged run gone": (_hdel_run("staged"), {"run_missing": 1}),
    "a running record spoilt": (_spoil_run("running"), {"unreadable_run": 1}),
    "a due entry gone": (
        _job_key(lambda s, j, p: s.redis.zrem(s.keys.due(p), j), "later"),
        {"job_without_due": 1, "head_wrong": 1},
    ),
    "a pause that would not end": (
        _job_key(lambda s, j, p: s.redis.zrem(s.keys.pauses, j), "resting"),
        {"pause_lost": 1},
    ),
    "a pause that would end at another time": (
        _job_key(lambda s, j, p: s.redis.zadd(s.keys.pauses, {j: 5}), "resting"),
        {"pause_wrong": 1},
    ),
    "ends of no pause": (
        _job_key(lambda s, j, p: s.redis.zadd(s.keys.pauses, {j: 5, "x": 1, "j_0000000000000": 2}), "paused"),
        {"pause_wrong": 3},
    ),
    "the definition of a pause gone": (
        _job_key(lambda s, j, p: s.redis.hdel(s.keys.jobs(p), j), "resting"),
        {"job_missing": 1},
    ),
    "a definition and the end of its pause gone": (
        _job_key(lambda s, j, p: s.redis.delete(s.keys.jobs(p), s.keys.pauses), "resting"),
        {"job_missing": 1},
    ),
    "a pause with an end that is due": (
        _job_key(lambda s, j, p: s.redis.zadd(s.keys.due(p), {j: 1}), "resting"),
        {"due_of_inactive_job": 1, "head_wrong": 1},
    ),
    "a one-off's due entry gone": (
        _job_key(lambda s, j, p: s.redis.zrem(s.keys.due(p), j), "once"),
        {"job_without_due": 1, "head_wrong": 1},
    ),
    "a definition gone": (_job_key(lambda s, j, p: s.redis.hdel(s.keys.jobs(p), j), "later"), {"due_without_job": 1}),
    "a definition and its due entry gone": (
        _job_key(lambda s, j, p: s.redis.delete(s.keys.jobs(p), s.keys.due(p)), "later"),
        {"job_missing": 1, "head_wrong": 1},
    ),
    "a paused definition gone": (
        _job_key(lambda s, j, p: s.redis.hdel(s.keys.jobs(p), j), "paused"),
        {"job_missing": 1},
    ),
    "a definition spoilt": (
        _job_key(lambda s, j, p: s.redis.hset(s.keys.jobs(p), j, b"junk"), "later"),
        {"unreadable_job": 1},
    ),
    "a definition of before": (_job_key(_older, "later"), {"job_older": 1}),
    "a definition that the ledger lacks": (_job_key(_newer, "later"), {"ledger_behind": 1}),
    "a due entry of nothing": (
        lambda s, j: s.redis.zadd(s.keys.due(0), {"j_0000000000000": 1, "x": 2}),
        {"due_without_job": 2, "head_wrong": 1},
    ),
    "a paused job that is due": (
        _job_key(lambda s, j, p: s.redis.zadd(s.keys.due(p), {j: 1}), "paused"),
        {"due_of_inactive_job": 1, "head_wrong": 1},
    ),
    "a calendar with a gap": (
        lambda s, j: s.redis.zrem(s.keys.occurrences("hourly"), str(5 * HOUR)),
        {"occurrences_wrong": 1},
    ),
    "open sets gone": (_job_key(lambda s, j, p: s.redis.delete(s.keys.active(j)), "serial"), {"run_not_active": 1}),
    "an open run that is none": (
        _job_key(lambda s, j, p: s.redis.zadd(s.keys.active(j), {f"{j}:1": 0}), "serial"),
        {"active_without_run": 1},
    ),
    "a payload of no run": (
        lambda s, j: s.redis.hset(s.keys.payloads, "j_0000000000000:1", b"x"),
        {"payload_without_run": 1},
    ),
    "requests of no worker": (lambda s, j: s.redis.hset(s.keys.requests, "ghost", "1"), {"request_of_no_worker": 1}),
    "ranges of nothing": (
        lambda s, j: s.redis.zadd(s.keys.catchup, {"junk": 1, "j_0000000000000|1|2|1||1": 1}),
        {"unreadable_range": 1, "range_without_job": 1},
    ),
}
