"""What the verbs promise together: order, repeats, cancels, leases, recoveries."""

from __future__ import annotations

from collections import Counter

import pytest

from rsched.core.ids import WorkerId, derive_job_id
from rsched.core.jobs.packed import RunEvent
from rsched.core.states import JobState, RunState
from rsched.store.jobs import PutItem
from rsched.store.run_values import ReapItem
from tests.store.world import FENCE, Job, W, World, record

pytestmark = pytest.mark.anyio
W2 = WorkerId("w2")


async def fill(world: World, team: str, count: int, *, priority: str = "normal") -> list[Job]:
    """`count` runs of a team in the queue; their definitions are one job's."""
    job = await world.put(f"{team}-{priority}", kind="e", team=team, due_in=60_000, priority=priority)
    now = await world.store.clock.read()
    pipe = world.client.pipeline()
    for i in range(count):
        run = f"{job.id}:{now - i}"
        pipe.hset(world.keys.runs, run, f"1|Q|1048577|{job.record.head.queue_key}|1|0|0||{now}|{now}|0|")
        pipe.zadd(world.keys.staged, {f"{run}|{job.record.head.queue_key}": now})
    await pipe.execute()
    await world.store.runs.release(limit=100_000)
    return [job]


async def test_nothing_is_released_before_its_instant(world: World) -> None:
    job = await world.put("a", due_in=400)
    await world.claim(job)
    released, now = 0, 0
    while not released:
        reply = await world.store.runs.release(limit=10)
        released, now = reply.total, reply.now
        assert released == (1 if now >= job.due else 0)
    assert now >= job.due


async def test_a_team_with_few_runs_does_not_wait_for_one_with_many(world: World) -> None:
    await fill(world, "many", 1000)
    await fill(world, "few", 10)
    first = Counter([r.definition.team for _ in range(4) for r in (await world.fetch(5)).runs])
    assert first["few"] == 10


async def test_higher_priority_goes_first_and_the_lowest_keeps_its_floor(world: World) -> None:
    for priority in ("high", "normal", "low"):
        await fill(world, "t", 100, priority=priority)
    runs = [r.definition.priority for _ in range(4) for r in (await world.fetch(16)).runs]
    share = Counter(runs)
    assert share["high"] >= 64 * 3 // 4
    assert share["low"] + share["normal"] >= 64 // 8 - 1
    assert share["low"] >= 64 // 16


@pytest.mark.parametrize("slots", [1, 3, 8, 20])
async def test_low_runs_get_an_eighth_minus_one_whatever_the_slots(world: World, slots: int) -> None:
    await fill(world, "t", 150, priority="high")
    await fill(world, "t", 50, priority="low")
    rounds = 80 // slots
    given = [r.definition.priority for _ in range(rounds) for r in (await world.fetch(slots)).runs]
    assert given.count("low") >= rounds * slots // 8 - 1


async def test_ten_thousand_teams_with_one_run_each_cost_a_bounded_number_of_visits(world: World) -> None:
    job = await world.put("a", due_in=60_000)
    now = await world.store.clock.read()
    pipe = world.client.pipeline(transaction=False)
    for i in range(10_000):
        run, queue_key = f"{job.id}:{now - i}", f"default:t{i}:1"
        pipe.hset(world.keys.runs, run, f"1|Q|1|{queue_key}|1|0|0||{now}|{now}|0|")
        pipe.xadd(world.keys.queue(queue_key), {"r": run})
        pipe.zadd(world.keys.ready("default"), {f"t{i}": 0})
    await pipe.execute()
    await world.client.config_resetstat()
    reply = await world.fetch(100)
    stats = await world.client.info("commandstats")
    calls = sum(v["calls"] for v in stats.values())
    assert len(reply.runs) == 100
    assert reply.more
    assert calls < 2000


async def test_a_repeated_fetch_gives_the_same_runs_and_a_repeated_finish_is_already_done(world: World) -> None:
    await fill(world, "t", 20)
    first = await world.fetch(5)
    world.requests -= 1
    before = await world.events()
    again = await world.fetch(5)
    assert [r[:4] for r in first.runs] == [r[:4] for r in again.runs]
    assert await world.events() == before
    assert await world.finish(first.runs[0], request=70) == "ok"
    assert await world.finish(first.runs[0], request=70) == "already"


async def test_cancel_ends_what_has_not_started_and_asks_for_the_rest(world: World) -> None:
    s = world.store
    staged = await world.put("staged", due_in=4000)
    await world.claim(staged)
    assert (await s.runs.cancel(staged.run)).tag == "ok"
    queued = await world.queued("queued")
    assert (await s.runs.cancel(queued.run)).tag == "ok"
    assert (await world.fetch()).runs == []
    assert (await s.runs.cancel(queued.run)).tag == "missing"
    job, run = await world.running("retrying")
    await world.finish(run, RunState.RETRYING, delay_ms=60_000)
    assert (await s.runs.cancel(job.run)).tag == "ok"
    assert await world.client.zcard(world.keys.retries) == await world.client.zcard(world.keys.staged) == 0
    job, run = await world.running("running")
    assert (await s.runs.cancel(job.run)).tag == "cancelling"
    assert (await s.runs.renew(W, lease_ms=60_000, items=[(run.run, run.fence)])).tags == ["cancel"]
    assert await world.finish(run, RunState.RETRYING) == "ok"
    last = [e for e in await world.events() if isinstance(e, RunEvent) and e.run == job.run][-1]
    assert last.record.state is RunState.CANCELLED
    for name in (staged, queued, job):
        got = await s.jobs.get(name.id)
        assert got is not None
        assert got.head.state is JobState.COMPLETED  # type: ignore[union-attr]


async def test_a_cancelled_run_that_is_requeued_is_not_started_again(world: World) -> None:
    job, run = await world.running()
    await world.store.runs.cancel(job.run)
    assert await world.store.runs.requeue(W, [(run.run, run.fence)]) == ["ok"]
    assert (await world.fetch()).runs == []
    assert await world.store.runs.get(job.run) is None


async def test_a_repeated_trigger_gives_the_same_run(world: World) -> None:
    job = await world.put("a", kind="e", due_in=60_000)
    first = await world.store.jobs.trigger(job.id, suffix="aaaa", repeat_key="k")
    again = await world.store.jobs.trigger(job.id, suffix="aaaa", repeat_key="k")
    other = await world.store.jobs.trigger(job.id, suffix="bbbb", repeat_key="l")
    assert (first.tag, again.tag, other.tag) == ("ok", "already", "ok")
    assert first.run == again.run != other.run
    assert await world.client.zcard(world.keys.staged) == 2


async def test_giving_back_does_not_use_up_an_attempt(world: World) -> None:
    _, run = await world.running()
    await world.store.runs.requeue(W, [(run.run, run.fence)])
    (again,) = (await world.fetch()).runs
    assert (again.attempt, again.fence > run.fence) == (1, True)


async def test_a_lost_attempt_counts_and_its_worker_is_fenced_off(world: World) -> None:
    _, run = await world.running(lease_ms=1)
    found: list = []  # type: ignore[type-arg]
    while not found:
        found, _ = await world.store.runs.expired_leases(after_ms=0, limit=10)
    assert await world.store.runs.reap([ReapItem(run.run, run.fence, "T", 0)], after_ms=0) == ["ok"]
    assert await world.finish(run) == "stale_fence"
    await world.store.runs.release(limit=10)
    (again,) = (await world.fetch(worker=W2)).runs
    assert (again.attempt, again.fence > run.fence) == (2, True)


async def test_an_recovery_holds_older_runs_until_the_workers_have_adopted(world: World) -> None:
    _, run = await world.running()
    job = await world.queued("b")
    await world.client.zadd(world.keys.leases, {run.run: 1})
    await world.open(2, recovery_grace_ms=60_000, fence=2 * FENCE)
    assert (await world.store.runs.release(limit=10)).total == 0
    assert await world.store.runs.expired_leases(after_ms=0, limit=10) == ([], False)
    assert await world.store.runs.reap([ReapItem(run.run, run.fence, "D", 0)], after_ms=0) == ["stale_fence"]
    tags = await world.store.runs.adopt(W, lease_ms=60_000, queues=["default"], items=[(run.run, 1, run.fence)])
    assert tags == ["ok"]
    assert (await world.store.runs.release(limit=10)).total == 1
    assert [r.run for r in (await world.fetch()).runs] == [job.run]
    assert await world.finish(run) == "ok"


async def test_what_comes_due_after_an_recovery_is_not_held(world: World) -> None:
    await world.running()
    await world.open(2, recovery_grace_ms=60_000)
    job = await world.put("b", due_in=1)
    await world.claim(job)
    while not (await world.store.runs.release(limit=10)).total:
        pass
    assert [r.run for r in (await world.fetch(worker=W2)).runs] == [job.run]


async def test_an_adopted_attempt_that_redis_lost_is_running_again(world: World) -> None:
    job, run = await world.running()
    await world.client.delete(world.keys.runs, world.keys.leases)
    await world.open(2, lost=True)
    presented = [(run.run, 1, run.fence), (run.run, 1, run.fence - 1)]
    assert await world.store.runs.adopt(W, lease_ms=60_000, queues=[], items=presented[:1]) == ["ok"]
    assert await world.store.runs.adopt(W, lease_ms=60_000, queues=[], items=presented[1:]) == ["stale_fence"]
    assert await world.finish(run) == "ok"
    assert await world.store.runs.adopt(
        W, lease_ms=1, queues=[], items=[(job.run.replace("j_", "j_0")[:15] + ":1", 1, 1)]
    ) == ["missing"]


async def test_an_adopted_attempt_takes_the_place_of_an_older_one(world: World) -> None:
    job, run = await world.running()
    await world.open(2)
    assert await world.store.runs.adopt(W2, lease_ms=60_000, queues=[], items=[(run.run, 2, run.fence + 5)]) == ["ok"]
    assert await world.finish(run) == "stale_fence"
    got = await world.store.runs.get(job.run)
    assert got is not None
    assert (got.state, got.attempt, got.worker) == (RunState.RUNNING, 2, W2)


async def test_restaging_brings_back_the_runs_of_lost_streams(world: World) -> None:
    await fill(world, "t", 30)
    await world.client.delete(world.keys.queue("default:t:1"))
    await world.open(2)
    assert (await world.store.runs.release(limit=100)).total == 30
    assert len((await world.fetch(100)).runs) == 30


async def test_a_paused_or_deleted_jobs_later_runs_are_withdrawn_on_record(world: World) -> None:
    kept, gone = await world.put("p", kind="e", due_in=300), await world.put("d", kind="e", due_in=300)
    await world.claim(kept, gone)
    await world.store.jobs.pause(kept.id)
    await world.store.jobs.remove(gone.id)
    while await world.client.zcard(world.keys.staged):
        await world.store.runs.release(limit=10)
    assert (await world.fetch()).runs == []
    ends = {e.run: e.record.state for e in await world.events() if isinstance(e, RunEvent)}
    assert ends == {kept.run: RunState.SKIPPED, gone.run: RunState.CANCELLED}


@pytest.mark.parametrize("to_interval", [True, False])
async def test_a_run_claimed_again_after_an_edit_completes_its_job_only_if_nothing_follows(
    world: World, to_interval: bool
) -> None:
    kinds = ("o", "e") if to_interval else ("e", "o")
    job = await world.put("a", kind=kinds[0], due_in=200)
    await world.claim(job)
    now, arg = await world.store.clock.read(), f"{job.due},60000" if to_interval else str(job.due)
    edited = record("a", now=now, kind=kinds[1], arg=arg, version=2, schedule_version=2)  # type: ignore[arg-type]
    assert (await world.store.jobs.put([PutItem(job.id, 1, job.due, edited.pack())], atomic=True)).ok
    await world.claim(job)
    while not (await world.store.runs.release(limit=10)).total:
        pass
    (run,) = (await world.fetch()).runs
    await world.finish(run)
    got = await world.store.jobs.get(job.id)
    assert got is not None
    assert got.head.state is (JobState.ACTIVE if to_interval else JobState.COMPLETED)  # type: ignore[union-attr]


async def test_workers_that_fell_silent_are_forgotten_and_others_are_not(world: World) -> None:
    s = world.store
    for worker in ("w_alive", "w_dead", "w_busy"):
        await s.runs.fetch(WorkerId(worker), request=1, slots=0, lease_ms=60_000, queues=["default"])
    now = await s.clock.read()
    await s.connection.client.hset(s.keys.workers, "w_dead", f"{now - 200_000}|default|60000")
    await s.connection.client.hset(s.keys.workers, "w_busy", f"{now - 200_000}|default|3600000")
    assert await s.processes.forget_silent_workers(silent_ms=100_000) == 1
    assert set((await s.processes.list_live())[1]) == {"w_alive", "w_busy"}
    assert not await s.connection.client.hexists(s.keys.requests, "w_dead")


async def test_the_hold_after_an_recovery_lasts_the_longest_lease_of_the_workers_known(world: World) -> None:
    s = world.store
    await s.runs.fetch(WorkerId("w_short"), request=1, slots=0, lease_ms=3_000, queues=["default"])
    await s.runs.fetch(WorkerId("w_long"), request=1, slots=0, lease_ms=90_000, queues=["default"])
    for lost, held_ms in ((False, 90_000), (True, 90_000)):
        marker = await s.recovery.get_marker()
        assert marker is not None
        assert await s.recovery.begin(marker.generation + 1, fence=0, lost=lost)
        await s.recovery.finish(recovery_grace_ms=1_000)
        marker = await s.recovery.get_marker()
        assert marker is not None
        assert held_ms <= marker.recovery_grace_until - marker.closed_at < held_ms + 5_000


async def test_an_attempt_at_a_run_that_has_ended_is_not_adopted(world: World) -> None:
    _, run = await world.running()
    assert await world.finish(run) == "ok"
    await world.open(2)
    assert await world.store.runs.adopt(W, lease_ms=60_000, queues=[], items=[(run.run, 1, run.fence)]) == ["missing"]
    assert await world.store.runs.get(run.run) is None


async def test_each_queue_is_served_although_another_has_endless_work(world: World) -> None:
    s = world.store
    for name, team, count in (("flood", "default", 40), ("one", "other", 1)):
        for i in range(count):
            run = f"{derive_job_id(team, f'{name}{i}', 1)}:1"
            queue_key = f"{name}:{team}:1"
            await s.connection.client.zadd(s.keys.staged, {f"{run}|{queue_key}": 1})
            await s.connection.client.hset(s.keys.runs, run, f"1|Q|1|{queue_key}|1|0|0||1|1|0|M")
            await world.put(f"{name}{i}", team=team, due_in=3_600_000)
    await s.runs.release(limit=100)
    served = []
    for request in range(1, 4):
        reply = await s.runs.fetch(W, request=request, slots=4, lease_ms=60_000, queues=["flood", "one"])
        served += [r.run[:15] for r in reply.runs]
    assert str(derive_job_id("other", "one0", 1)) in served


async def test_virtual_times_behind_the_queue_are_dropped(world: World) -> None:
    for n in range(20):
        team = f"team{n}"
        job = await world.put(f"job{n}", team=team, due_in=0)
        await world.claim(job)
        await world.store.runs.release(limit=10)
        await world.fetch()
    assert await world.client.zcard(world.keys.virtual("default")) <= 3


async def test_a_count_of_starts_that_is_no_number_begins_anew(world: World) -> None:
    await world.client.hset(world.keys.starts, "default", "many")
    job = await world.queued()
    assert [r.run for r in (await world.fetch()).runs] == [job.run]
    assert await world.client.hget(world.keys.starts, "default") == b"1"
