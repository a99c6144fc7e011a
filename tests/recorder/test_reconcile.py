"""Whatever hands have done to a shard, a pass repairs it, counts it by kind, and the work then really is done."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Awaitable, Callable

import anyio
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rsched.core.ids import JobId, RunId, WorkerId, partition_of
from rsched.core.jobs.packed import JobRecord, unpack_run
from rsched.core.settings import RecorderSettings
from rsched.core.states import RunState
from rsched.recorder.main import run_recorder
from rsched.recorder.reconcile.reconciler import Reconciler
from rsched.store.store import Store
from rsched.store.work import FinishItem
from tests.recorder.invariants import problems
from tests.recorder.steps import CLOCK, HOUR, WORKER, InShard, Shard, within


async def _populate(s: Shard) -> dict[str, JobId]:
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
    await s.store.release(limit=100)
    jobs["staged"] = await s.put("staged", due_in=4500)
    await s.world.claim()
    jobs["later"] = await s.put("later", due_in=HOUR)
    jobs["once"] = await s.put("once", kind="o", due_in=HOUR)
    trigger = await s.store.trigger(jobs["later"], suffix="aaaa", repeat_key="", payload=b"\xc0")
    assert trigger.run
    paused = jobs["paused"] = await s.put("paused", due_in=HOUR)
    assert (await s.store.pause(paused)).tag == "ok"
    resting = jobs["resting"] = await s.put("resting", due_in=HOUR)
    assert (await s.store.pause(resting, until=await s.store.time() + HOUR)).tag == "ok"
    await s.store.cache_occurrences("hourly", after=0, occurrences=[HOUR * i for i in range(1, 60)], ended=False)
    await s.record()
    return jobs


Damage = Callable[[Shard, dict[str, JobId]], Awaitable[object]]


async def _run_of(s: Shard, job: JobId) -> str:
    return next(r.decode() for r in await s.redis.hkeys(s.keys.runs) if r.startswith(job.encode()))


def _hdel_run(name: str) -> Damage:
    async def damage(s: Shard, jobs: dict[str, JobId]) -> object:
        return await s.redis.hdel(s.keys.runs, await _run_of(s, jobs[name]))

    return damage


def _spoil_run(name: str) -> Damage:
    async def damage(s: Shard, jobs: dict[str, JobId]) -> object:
        return await s.redis.hset(s.keys.runs, await _run_of(s, jobs[name]), "1|Q|junk")

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
        {"head_lies": 1, "head_of_no_partition": 1},
    ),
    "a running run gone": (_hdel_run("running"), {"run_missing": 1}),
    "a staged run gone": (_hdel_run("staged"), {"run_missing": 1}),
    "a running record spoilt": (_spoil_run("running"), {"unreadable_run": 1}),
    "a due entry gone": (
        _job_key(lambda s, j, p: s.redis.zrem(s.keys.due(p), j), "later"),
        {"job_without_due": 1, "head_lies": 1},
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
        {"due_of_inactive_job": 1, "head_lies": 1},
    ),
    "a one-off's due entry gone": (
        _job_key(lambda s, j, p: s.redis.zrem(s.keys.due(p), j), "once"),
        {"job_without_due": 1, "head_lies": 1},
    ),
    "a definition gone": (_job_key(lambda s, j, p: s.redis.hdel(s.keys.jobs(p), j), "later"), {"due_without_job": 1}),
    "a definition and its due entry gone": (
        _job_key(lambda s, j, p: s.redis.delete(s.keys.jobs(p), s.keys.due(p)), "later"),
        {"job_missing": 1, "head_lies": 1},
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
        {"due_without_job": 2, "head_lies": 1},
    ),
    "a paused job that is due": (
        _job_key(lambda s, j, p: s.redis.zadd(s.keys.due(p), {j: 1}), "paused"),
        {"due_of_inactive_job": 1, "head_lies": 1},
    ),
    "a calendar with a gap": (
        lambda s, j: s.redis.zrem(s.keys.occurrences("hourly"), str(5 * HOUR)),
        {"calendar_wrong": 1},
    ),
    "open sets gone": (_job_key(lambda s, j, p: s.redis.delete(s.keys.active(j)), "serial"), {"run_not_open": 1}),
    "an open run that is none": (
        _job_key(lambda s, j, p: s.redis.zadd(s.keys.active(j), {f"{j}:1": 0}), "serial"),
        {"open_without_run": 1},
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


def test_a_healthy_shard_is_left_alone(shard: InShard) -> None:
    async def body(s: Shard) -> None:
        await _populate(s)
        assert problems(await s.world.snapshot()) == []
        assert await s.reconcile() == {}
        told = await s.store.reconciled()
        assert (told.passes, told.found, told.phase) == (1, 0, "")

    shard(body)


@pytest.mark.parametrize("name", DAMAGE)
def test_each_damage_is_found_repaired_and_counted_once_and_the_work_is_done(shard: InShard, name: str) -> None:
    async def body(s: Shard) -> None:
        jobs = await _populate(s)
        damage, kinds = DAMAGE[name]
        unfinished = {r.decode() for r in await s.redis.hkeys(s.keys.runs)}
        partitions = len(
            {partition_of(j) for n, j in jobs.items() if n not in ("running", "queued", "paused", "resting")}
        )
        await damage(s, jobs)
        expected = {"head_lies": partitions} if name == "heads gone" else kinds
        assert await s.reconcile(write=False) == expected
        assert await s.reconcile() == expected
        assert problems(await s.world.snapshot()) == []
        assert await s.reconcile() == {}
        await s.drain()
        assert unfinished <= set(s.done)
        assert max(s.done.values()) == 1

    shard(body)


def test_all_damage_together_is_repaired(shard: InShard) -> None:
    async def body(s: Shard) -> None:
        jobs = await _populate(s)
        unfinished = {r.decode() for r in await s.redis.hkeys(s.keys.runs)}
        for name, (damage, _) in DAMAGE.items():
            if name not in ("a definition of before", "a definition that the ledger lacks", "a running record spoilt"):
                await damage(s, jobs)
        await _fixpoint(s)
        await s.drain()
        assert unfinished <= set(s.done)
        assert max(s.done.values()) == 1

    shard(body)


async def _fixpoint(s: Shard) -> None:
    for _ in range(5):
        if not await s.reconcile():
            break
    assert await s.reconcile() == {}
    assert problems(await s.world.snapshot()) == []


@settings(
    max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(seed=st.integers(0, 2**32))
def test_whatever_members_are_taken_by_hand_every_run_is_done_once(
    redis_url: str, database_url: str, redis_prefix: str, seed: int
) -> None:
    async def body(s: Shard) -> None:
        rng = random.Random(seed)
        await _populate(s)
        unfinished = {r.decode() for r in await s.redis.hkeys(s.keys.runs)}
        stem = s.keys.marker.removesuffix("shard")
        kept = (
            "shard",
            "journal",
            "definitions",
            "fence",
            "reconcile",
            "restore",
            "owners",
            "schedulers",
            "quarantine",
            "starts",
        )
        names = sorted([k.decode() async for k in s.redis.scan_iter(match=f"{s.keys.prefix}:*")])
        for name in names:
            if name.removeprefix(stem) not in kept and rng.random() < 0.5:
                await _take(s, name, rng)
        await _fixpoint(s)
        await s.drain()
        assert unfinished <= set(s.done), unfinished - set(s.done)
        assert max(s.done.values()) == 1

    asyncio.run(within(redis_url, database_url, f"{redis_prefix}:{seed}", body))


async def _take(s: Shard, name: str, rng: random.Random) -> None:
    kind = (await s.redis.type(name)).decode()
    if rng.random() < 0.3:
        await s.redis.delete(name)
    elif kind == "zset":
        await s.redis.zrem(name, rng.choice(await s.redis.zrange(name, 0, -1)))
    elif kind == "hash":
        await s.redis.hdel(name, rng.choice(await s.redis.hkeys(name)))
    elif kind == "stream":
        await s.redis.xdel(name, (await s.redis.xrange(name, count=1))[0][0])


def test_live_work_is_never_found(shard: InShard) -> None:
    """2,000 runs and more are claimed, fetched, retried and ended while passes follow each other."""

    async def body(s: Shard) -> None:
        for i in range(40):
            await s.put(f"plain{i}", every=100)
        for i, letter in enumerate("sqwk"):
            await s.put(f"serial{i}", every=300, overlap=letter)
        stopped, found = anyio.Event(), Counter[str]()
        ends: Counter[str] = Counter()

        async def scheduling() -> None:
            while not stopped.is_set():
                await s.schedule()
                await CLOCK.sleep(1)

        async def working(name: str) -> None:
            request, worker = 0, WorkerId(name)
            rng = random.Random(name)
            while not stopped.is_set():
                request += 1
                runs = (
                    await s.store.fetch(worker, request=request, slots=30, lease_ms=60_000, queues=["default"])
                ).runs
                await CLOCK.sleep(5)
                back, items = [], []
                for r in runs:
                    outcome = rng.choice([RunState.SUCCEEDED] * 8 + [RunState.RETRYING, RunState.DEAD])
                    if rng.random() < 0.05:
                        back.append((r.run, r.fence))
                    else:
                        items.append(FinishItem(r.run, r.fence, outcome, rng.choice([0, 50]), 0, ""))
                        ends[outcome] += 1
                await s.store.requeue(worker, back)
                await s.store.finish(worker, request=request, items=items)

        async def passing() -> None:
            while not stopped.is_set():
                r = Reconciler(s.store, s.ledger, shard="s0", clock=CLOCK, lease_ms=60_000)
                counts = await r.run_pass()
                assert counts is not None
                found.update(counts)
                found["unsure"] += r.unsure
                found["passes"] += 1
                if ends.total() >= 2000 and found["passes"] >= 3:
                    stopped.set()

        async with s.recording(), anyio.create_task_group() as group:
            group.start_soon(scheduling)
            group.start_soon(working, "w1")
            group.start_soon(working, "w2")
            with anyio.fail_after(90):
                await passing()
        assert ends.total() >= 2000
        assert {k: n for k, n in found.items() if n and k != "passes"} == {}

    shard(body)


def test_a_run_that_ended_by_the_ledger_is_dropped_and_frees_the_next(shard: InShard) -> None:
    async def body(s: Shard) -> None:
        jobs = await _populate(s)
        run = await _run_of(s, jobs["serial"])
        old = await s.redis.hget(s.keys.runs, run)
        assert old is not None
        fence = unpack_run(old.decode()).fence
        assert await s.store.finish(
            WORKER, request=99, items=[FinishItem(RunId(run), fence, RunState.SUCCEEDED, 0, 0, "")]
        ) == ["ok"]
        await s.record()
        await s.redis.hset(s.keys.runs, run, old)
        await s.redis.zadd(s.keys.leases, {run: 9e12})
        await s.redis.zadd(s.keys.active(jobs["serial"]), {run: 0})
        assert await s.reconcile(write=False) == {"run_ended_by_ledger": 1}
        assert await s.reconcile() == {"run_ended_by_ledger": 1}
        assert problems(await s.world.snapshot()) == []
        assert not await s.redis.hexists(s.keys.runs, run)

    shard(body)


@pytest.mark.parametrize("forgotten", [False, True], ids=["just now", "so long ago that it was forgotten"])
def test_a_deletion_that_redis_forgot_is_done_again(shard: InShard, forgotten: bool) -> None:
    async def body(s: Shard) -> None:
        jobs = await _populate(s)
        job, p = jobs["later"], partition_of(jobs["later"])
        value, due = await s.redis.hget(s.keys.jobs(p), job), await s.redis.zscore(s.keys.due(p), job)
        assert value is not None
        assert due is not None
        assert (await s.store.remove(job)).tag == "ok"
        await s.record()
        if forgotten:
            await s.ledger.mark_forgotten([(job, 2)])
        await s.redis.hset(s.keys.jobs(p), job, value)
        await s.redis.zadd(s.keys.due(p), {job: due})
        await s.redis.zadd(s.keys.heads, {str(p): due})
        assert await s.reconcile() == {"job_older": 1}
        assert not await s.redis.zscore(s.keys.due(p), job)
        assert await s.reconcile() == {}
        # For housekeeping, which forgets what Redis has.
        assert (await s.ledger.jobs_known([job]))[job].forgotten is False

    shard(body)


def test_what_the_ledger_is_too_far_behind_to_judge_is_left_for_the_next_pass(
    shard: InShard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rsched.recorder.reconcile.passes._PATIENCE_MS", 50)

    async def body(s: Shard) -> None:
        job = await s.put("new", due_in=HOUR)
        await s.redis.hdel(s.keys.jobs(partition_of(job)), job)
        reconciler = Reconciler(s.store, s.ledger, shard=s.shard, clock=CLOCK, lease_ms=60_000)
        assert await reconciler.run_pass() == {}
        assert reconciler.unsure == 1
        assert await s.reconcile() == {"due_without_job": 1}
        stored = await s.store.get_job(job)
        assert isinstance(stored, JobRecord)

    shard(body)


def test_many_of_a_kind_are_repaired_over_many_pages(shard: InShard) -> None:
    async def body(s: Shard) -> None:
        for i in range(1200):
            await s.put(f"j{i}", overlap="w" if i % 4 == 0 else "")
        await s.schedule()
        await s.redis.delete(s.keys.queue("default:default:1"), s.keys.ready("default"))
        assert await s.reconcile() == {"run_not_queued": 1200}
        assert await s.reconcile() == {}
        await s.schedule()
        while await s.work():
            pass
        assert len(s.done) == 1200

    shard(body)


def test_a_key_of_another_type_stops_neither_the_rest_nor_the_recorder(shard: InShard) -> None:
    async def body(s: Shard) -> None:
        await _populate(s)
        await s.redis.delete(s.keys.catchup)
        await s.redis.set(s.keys.catchup, "junk")
        await s.redis.hset(s.keys.payloads, "j_0000000000000:1", b"x")
        reconciler = Reconciler(s.store, s.ledger, shard=s.shard, clock=CLOCK, lease_ms=60_000)
        assert await reconciler.run_pass() == {"payload_without_run": 1}
        assert reconciler.unsure > 0

    shard(body)


def test_the_recorder_makes_passes_and_counts_what_it_repairs(
    redis_url: str, database_url: str, redis_prefix: str
) -> None:
    async def main() -> None:
        settings = RecorderSettings(
            database_url=database_url, redis_url=redis_url, prefix=redis_prefix, block_ms=20, reconcile_every_s=0.05,
            reconcile_pace_ms=0,
        )  # fmt: skip
        store, stop = Store.open(redis_url, prefix=redis_prefix, shard="s0", clock=CLOCK), anyio.Event()
        try:
            async with anyio.create_task_group() as group:
                group.start_soon(lambda: run_recorder(settings, stop, clock=CLOCK))
                with anyio.fail_after(20):
                    while not await store.is_open():
                        await CLOCK.sleep(10)
                    await store.client.zadd(store.keys.leases, {"j_0000000000000:1": 1})
                    while await store.client.zcard(store.keys.leases):
                        await CLOCK.sleep(10)
                    while not (await store.reconciled()).passes:
                        await CLOCK.sleep(10)
                stop.set()
        finally:
            await store.aclose()

    asyncio.run(main())
