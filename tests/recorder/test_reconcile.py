"""Whatever hands have done to a shard, a pass repairs it, counts it by kind, and the work then really is done."""

from __future__ import annotations

import asyncio
import random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rsched.core.ids import partition_of
from tests.recorder.damage import DAMAGE, populate
from tests.recorder.invariants import problems
from tests.recorder.stepped_shard import InShard, Shard, within


def test_a_healthy_shard_is_left_alone(shard: InShard) -> None:
    async def body(s: Shard) -> None:
        await populate(s)
        assert problems(await s.world.snapshot()) == []
        assert await s.reconcile() == {}
        told = await s.store.reconciliation.get_progress()
        assert (told.passes, told.found, told.phase) == (1, 0, "")

    shard(body)


@pytest.mark.parametrize("name", DAMAGE)
def test_each_damage_is_found_repaired_and_counted_once_and_the_work_is_done(shard: InShard, name: str) -> None:
    async def body(s: Shard) -> None:
        jobs = await populate(s)
        damage, kinds = DAMAGE[name]
        unfinished = {r.decode() for r in await s.redis.hkeys(s.keys.runs)}
        partitions = len(
            {partition_of(j) for n, j in jobs.items() if n not in ("running", "queued", "paused", "resting")}
        )
        await damage(s, jobs)
        expected = {"head_wrong": partitions} if name == "heads gone" else kinds
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
        jobs = await populate(s)
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
        await populate(s)
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
