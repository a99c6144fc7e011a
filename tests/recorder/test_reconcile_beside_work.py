"""The reconciler beside live work, a ledger that is behind and keys that are not what they should be."""

from __future__ import annotations

import asyncio
import random
import urllib.request
from collections import Counter

import anyio
import pytest

from rsched.core.ids import RunId, WorkerId, partition_of
from rsched.core.jobs.packed import JobRecord, unpack_run
from rsched.core.settings import RecorderSettings
from rsched.core.states import RunState
from rsched.embedded.process import free_port
from rsched.recorder.main import run_recorder
from rsched.recorder.reconcile.reconciler import Reconciler
from rsched.store.run_values import FinishItem
from rsched.store.store import Store
from tests.recorder.damage import populate, run_of
from tests.recorder.invariants import problems
from tests.recorder.stepped_shard import CLOCK, HOUR, WORKER, InShard, Shard


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
                    await s.store.runs.fetch(worker, request=request, slots=30, lease_ms=60_000, queues=["default"])
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
                await s.store.runs.requeue(worker, back)
                await s.store.runs.finish(worker, request=request, items=items)

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
        jobs = await populate(s)
        run = await run_of(s, jobs["serial"])
        old = await s.redis.hget(s.keys.runs, run)
        assert old is not None
        fence = unpack_run(old.decode()).fence
        assert await s.store.runs.finish(
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
        jobs = await populate(s)
        job, p = jobs["later"], partition_of(jobs["later"])
        value, due = await s.redis.hget(s.keys.jobs(p), job), await s.redis.zscore(s.keys.due(p), job)
        assert value is not None
        assert due is not None
        assert (await s.store.jobs.remove(job)).tag == "ok"
        await s.record()
        if forgotten:
            await s.ledger.recovery.unfinished.mark_forgotten([(job, 2)])
        await s.redis.hset(s.keys.jobs(p), job, value)
        await s.redis.zadd(s.keys.due(p), {job: due})
        await s.redis.zadd(s.keys.heads, {str(p): due})
        assert await s.reconcile() == {"job_older": 1}
        assert not await s.redis.zscore(s.keys.due(p), job)
        assert await s.reconcile() == {}
        # For housekeeping, which forgets what Redis has.
        assert (await s.ledger.recovery.compare.jobs([job]))[job].forgotten is False

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
        stored = await s.store.jobs.get(job)
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
        await populate(s)
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
            reconcile_pace_ms=0, metrics_port=free_port(),
        )  # fmt: skip
        store, stop = Store.open(redis_url, prefix=redis_prefix, shard="s0", clock=CLOCK), anyio.Event()
        try:
            async with anyio.create_task_group() as group:
                group.start_soon(lambda: run_recorder(settings, stop, clock=CLOCK))
                with anyio.fail_after(20):
                    while not await store.recovery.is_open():
                        await CLOCK.sleep(10)
                    await store.connection.client.zadd(store.keys.leases, {"j_0000000000000:1": 1})
                    while await store.connection.client.zcard(store.keys.leases):
                        await CLOCK.sleep(10)
                    while not (await store.reconciliation.get_progress()).passes:
                        await CLOCK.sleep(10)
                    while not (counted := await asyncio.to_thread(_repairs_counted, settings.metrics_port)):
                        await CLOCK.sleep(10)
                stop.set()
        finally:
            await store.aclose()

        assert counted == ['rsched_repairs_total{kind="lease_without_run"} 1.0']

    asyncio.run(main())


def _repairs_counted(port: int) -> list[str]:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        lines = answer.read().decode().splitlines()
    return [line for line in lines if line.startswith("rsched_repairs_total{")]
