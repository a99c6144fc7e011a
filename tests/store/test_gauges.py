from __future__ import annotations

import time

import pytest

from rsched.core.errors import Unavailable
from rsched.core.ids import WorkerId
from rsched.store.catchup import CatchupRange
from rsched.store.gauges import COMMANDS, TURN, Gauges, ShardGauges
from rsched.store.known_queues import MAX_QUEUE_KEYS, MAX_QUEUES
from tests.store.world import FENCE, World

pytestmark = pytest.mark.anyio


async def read(reader: Gauges, times: int = 1) -> ShardGauges:
    for _ in range(times - 1):
        await reader.read()
    return await reader.read()


async def test_a_shard_counts_what_it_holds(world: World) -> None:
    reader = Gauges(world.store.connection)
    now = await world.store.clock.read()
    for i in range(3):
        await world.put(f"later {i}", due_in=3_600_000)
    staged = await world.put("staged", due_in=4000)
    await world.claim(staged)
    await world.running("at work")
    for i in range(4):
        await world.queued(f"waiting {i}", team="a")
    await world.queued("urgent", team="b", priority="high")
    found = await read(reader, 16)
    assert (found.open, found.generation, found.load_level, found.in_recovery_grace) == (True, 1, 0, 0)
    assert (found.due, found.staged, found.leases, found.retries) == (3, 1, 1, 0)
    assert found.unfinished_runs == 7
    assert found.depth == {"default:a:1": 4, "default:b:0": 1}
    assert (found.workers, found.schedulers, found.owned) == (1, 0, 0)
    assert found.claim_lag_ms == 0
    assert abs(found.now - now) < 10_000
    assert found.memory > 100_000
    assert found.scripts_s > 0
    assert found.last["journal"].startswith("1-")
    assert found.last["definitions"].startswith("1-")


async def test_a_queue_that_no_worker_serves_is_seen(world: World) -> None:
    await world.queued("a")
    await world.queued("b")
    assert (await read(Gauges(world.store.connection), 3)).depth == {"default:default:1": 2}


async def test_late_jobs_and_catch_ups_show_how_late(world: World) -> None:
    now = await world.store.clock.read()
    await world.put("late", due_in=-30_000)
    job = await world.put("caught up", kind="e", due_in=3_600_000)
    expected = CatchupRange(job.id, now - 60_000, now, 1, "", now, 0)
    await world.client.zadd(world.keys.catchup, {expected.member: now - 20_000})
    found = await read(Gauges(world.store.connection))
    assert 30_000 <= found.claim_lag_ms < 60_000
    assert 20_000 <= found.catchup_lag_ms < 50_000
    assert found.catchup == 1


async def test_owned_partitions_are_those_of_live_schedulers(world: World) -> None:
    await world.store.partitions.acquire("s1", lease_ms=60_000, take=range(10))
    await world.store.partitions.acquire("s2", lease_ms=60_000, take=range(10, 15))
    assert (await read(Gauges(world.store.connection))).owned == 15
    await world.client.zadd(world.keys.schedulers, {"s2": 1})
    found = await read(Gauges(world.store.connection))
    assert (found.schedulers, found.owned) == (1, 10)


@pytest.mark.parametrize("field", ["run_id", "repl_id", "state"])
async def test_a_shard_is_closed_unless_its_marker_is_of_this_server(world: World, field: str) -> None:
    assert (await read(Gauges(world.store.connection))).open
    await world.client.hset(world.keys.marker, field, "another")
    assert not (await read(Gauges(world.store.connection))).open


async def test_an_empty_server_is_closed_and_has_nothing(redis_url: str, redis_prefix: str) -> None:
    world = World.at(redis_url, prefix=redis_prefix)
    found = await read(Gauges(world.store.connection), 16)
    await world.close()
    assert (found.open, found.generation, found.due, found.unfinished_runs, found.depth) == (False, 0, 0, 0, {})
    assert found.last == {"definitions": "0-0", "journal": "0-0"}


async def test_the_load_level_and_what_is_left_of_a_restore_show(world: World) -> None:
    await world.store.recovery.set_load_level(2)
    await world.client.hset(world.keys.restore, mapping={"phase": "jobs", "jobs_total": 100, "jobs_done": 30})
    found = await read(Gauges(world.store.connection))
    assert (found.load_level, found.restore_left) == (2, 70)
    await world.client.hset(world.keys.restore, "phase", "done")
    assert (await read(Gauges(world.store.connection))).restore_left == 0


async def test_runs_of_before_a_closing_are_held_until_the_workers_have_adopted(world: World) -> None:
    await world.running("at work")
    await world.put("waiting", due_in=0)
    await world.claim()
    await world.open(2, recovery_grace_ms=60_000, fence=2 * FENCE)
    found = await read(Gauges(world.store.connection))
    assert found.in_recovery_grace >= 1
    assert found.unconfirmed == 1
    await world.store.runs.adopt(WorkerId("w1"), lease_ms=60_000, queues=["default"], items=[])
    found = await read(Gauges(world.store.connection))
    assert (found.in_recovery_grace, found.unconfirmed) == (0, 0)


async def test_damaged_keys_of_workers_runs_and_queue_keys_do_not_hide_the_rest(world: World) -> None:
    await world.queued("a")
    await world.fetch(0)
    await world.client.hset(world.keys.runs, "j_x:1", "nonsense")
    await world.client.hset(world.keys.workers, "w9", "nonsense")
    await world.client.set(world.keys.due(3), "no set")
    await world.client.set(world.keys.ready("default"), "no set")
    found = await read(Gauges(world.store.connection), 16)
    assert found.unfinished_runs == 2
    assert found.workers == 1
    assert found.due == 0


async def test_one_read_is_one_pipeline_of_a_bounded_number_of_commands(world: World) -> None:
    for queue in range(2 * MAX_QUEUES):
        await world.client.hset(
            world.keys.workers, f"w{queue}", f"{await world.store.clock.read()}|queue-{queue}|60000"
        )
        await world.client.zadd(world.keys.ready(f"queue-{queue}"), {f"team-{i}": i for i in range(200)})
    reader = Gauges(world.store.connection)
    await read(reader, 3)
    info = await world.client.info("stats")
    await reader.read()
    after = await world.client.info("stats")
    sent = after["total_commands_processed"] - info["total_commands_processed"] - 1
    print(f"one read: {sent} commands")
    assert sent <= COMMANDS + MAX_QUEUES + MAX_QUEUE_KEYS + TURN
    assert sent > MAX_QUEUE_KEYS
    usec = (await world.client.info("cpu"))["used_cpu_user"], time.perf_counter()
    for _ in range(50):
        await reader.read()
    took = (await world.client.info("cpu"))["used_cpu_user"] - usec[0]
    print(
        f"one read: {took / 50 * 1e3:.2f} ms of Redis' CPU (user), {(time.perf_counter() - usec[1]) / 50 * 1e3:.1f} ms in all"
    )


async def test_a_server_that_is_away_is_unavailable(redis_prefix: str) -> None:
    world = World.at("redis://127.0.0.1:1/0", prefix=redis_prefix)
    with pytest.raises(Unavailable):
        await Gauges(world.store.connection).read()
    await world.close()
