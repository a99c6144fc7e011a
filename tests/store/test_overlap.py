"""Overlap policies on the real scripts: judged at release by live runs."""

from __future__ import annotations

import random
from typing import Any

import pytest

from rsched.core.ids import RunId, run_id_of
from rsched.core.jobs.packed import RunEvent
from rsched.core.states import JobState, RunState
from rsched.store.run_values import FetchedRun, ReapItem
from tests.store.world import Job, W, World

pytestmark = pytest.mark.anyio
EVERY = 1000


async def looped(world: World, overlap: str, *, late: int = 10_000, **put: Any) -> Job:
    """A job that is due each second since `late` ms ago, all within its grace."""
    return await world.put("a", kind="e", every=EVERY, due_in=-late, overlap=overlap, **put)


async def occurs(world: World, job: Job, times: int = 1) -> None:
    """Claims the next `times` occurrences and releases them one after the other."""
    for _ in range(times):
        await world.claim(job, horizon_ms=0, limit=1)
        await world.store.runs.release(limit=100)


def nth(job: Job, n: int) -> RunId:
    return run_id_of(job.id, job.due + n * EVERY)


async def fetched(world: World) -> dict[RunId, FetchedRun]:
    return {r.run: r for r in (await world.fetch()).runs}


async def ended(world: World) -> dict[str, tuple[RunState, str]]:
    """The last event of each run, where it is final."""
    events = [e for e in await world.events() if isinstance(e, RunEvent)]
    last = {e.run: e for e in sorted(events, key=lambda e: (e.record.fence, e.record.revision))}
    return {run: (e.record.state, e.detail) for run, e in last.items() if e.record.state.final}


async def stale_generation(world: World, generation: int, *held: FetchedRun) -> None:
    """The shard opened anew, its worker heard of."""
    await world.open(generation, fence=0)
    items = [(r.run, r.attempt, r.fence) for r in held]
    assert set(await world.store.runs.adopt(W, lease_ms=60_000, queues=["default"], items=items)) <= {"ok"}


async def end(world: World, run: FetchedRun, outcome: RunState = RunState.SUCCEEDED) -> None:
    assert await world.finish(run, outcome) == "ok"
    await world.store.runs.release(limit=100)


async def test_skip_puts_on_record_what_comes_due_while_a_run_is_open(world: World) -> None:
    job = await looped(world, "s")
    await occurs(world, job, 3)
    runs = await fetched(world)
    assert list(runs) == [nth(job, 0)]
    assert await ended(world) == {nth(job, n): (RunState.SKIPPED, "overlap") for n in (1, 2)}
    await end(world, runs[nth(job, 0)])
    await occurs(world, job)
    assert list(await fetched(world)) == [nth(job, 3)]


async def test_queue_one_lets_one_wait_and_skips_the_others(world: World) -> None:
    job = await looped(world, "q")
    await occurs(world, job, 4)
    runs = await fetched(world)
    assert list(runs) == [nth(job, 0)]
    assert await ended(world) == {nth(job, n): (RunState.SKIPPED, "overlap") for n in (2, 3)}
    await end(world, runs[nth(job, 0)])
    assert list(await fetched(world)) == [nth(job, 1)]


async def test_queue_all_runs_every_one_of_them_in_order(world: World) -> None:
    job = await looped(world, "w")
    await occurs(world, job, 5)
    for n in range(5):
        runs = await fetched(world)
        assert list(runs) == [nth(job, n)]
        await end(world, runs[nth(job, n)])
    assert set(await ended(world)) == {nth(job, n) for n in range(5)}
    assert await world.client.exists(world.keys.active(job.id)) == 0


async def test_cancel_running_asks_the_worker_and_starts_when_it_has_stopped(world: World) -> None:
    job = await looped(world, "k")
    await occurs(world, job)
    (run,) = (await fetched(world)).values()
    await occurs(world, job, 2)
    assert (await world.store.runs.renew(W, lease_ms=60_000, items=[(run.run, run.fence)])).tags == ["cancel"]
    assert await fetched(world) == {}
    # The latest takes the turn of the one that waited.
    assert await ended(world) == {nth(job, 1): (RunState.SKIPPED, "overlap")}
    await end(world, run, RunState.CANCELLED)
    assert list(await fetched(world)) == [nth(job, 2)]


async def test_cancel_running_takes_the_place_of_a_run_that_waits_for_its_retry_or_has_not_started(
    world: World,
) -> None:
    job = await looped(world, "k")
    await occurs(world, job)
    (run,) = (await fetched(world)).values()
    assert await world.finish(run, RunState.RETRYING, delay_ms=3_600_000) == "ok"
    await occurs(world, job)
    assert await ended(world) == {nth(job, 0): (RunState.CANCELLED, "cancelled for the next run")}
    assert await world.client.zcard(world.keys.retries) == 0
    await occurs(world, job)  # the one before is in its queue
    assert list(await fetched(world)) == []
    await world.store.runs.release(limit=100)
    assert list(await fetched(world)) == [nth(job, 2)]
    assert (await ended(world))[nth(job, 1)][0] is RunState.CANCELLED


@pytest.mark.parametrize("overlap", ["s", "q", "w"])
async def test_a_run_that_waits_for_its_retry_is_open(world: World, overlap: str) -> None:
    job = await looped(world, overlap)
    await occurs(world, job)
    (run,) = (await fetched(world)).values()
    assert await world.finish(run, RunState.RETRYING, delay_ms=3_600_000) == "ok"
    await occurs(world, job)
    assert await fetched(world) == {}


async def test_a_dead_workers_run_ends_with_its_lease_and_lets_the_next_go(world: World) -> None:
    job = await looped(world, "w")
    await occurs(world, job, 2)
    (run,) = (await world.fetch(lease_ms=1)).runs
    while not (await world.store.runs.expired_leases(after_ms=0, limit=9))[0]:
        pass
    assert await world.store.runs.reap([ReapItem(run.run, run.fence, "D", 0)], after_ms=0) == ["ok"]
    await world.store.runs.release(limit=100)
    assert list(await fetched(world)) == [nth(job, 1)]


async def test_what_counts_is_a_live_run_and_not_a_mark_it_left(world: World) -> None:
    job = await looped(world, "s")
    await world.client.zadd(world.keys.active(job.id), {nth(job, -1): 0})
    await occurs(world, job)
    assert list(await fetched(world)) == [nth(job, 0)]


async def test_cancelling_a_run_that_waits_its_turn_or_holds_it_moves_the_others_on(world: World) -> None:
    job = await looped(world, "w")
    await occurs(world, job, 3)
    assert (await world.store.runs.cancel(nth(job, 1))).tag == "ok"  # it waits
    assert (await world.store.runs.cancel(nth(job, 0))).tag == "ok"  # in its queue, not started
    await world.store.runs.release(limit=100)
    assert list(await fetched(world)) == [nth(job, 2)]


async def test_deleting_the_job_withdraws_those_that_wait(world: World) -> None:
    job = await looped(world, "w")
    await occurs(world, job, 3)
    (run,) = (await fetched(world)).values()
    await world.store.jobs.remove(job.id)
    await end(world, run)
    for _ in range(3):
        assert await fetched(world) == {}
        await world.store.runs.release(limit=100)
    assert [s for s, _ in (await ended(world)).values()].count(RunState.CANCELLED) == 2
    assert await world.client.exists(world.keys.active(job.id), world.keys.runs) == 0


async def test_a_trigger_follows_the_jobs_policy_unless_it_says_another(world: World) -> None:
    job = await looped(world, "s")
    await occurs(world, job)
    held = await world.store.jobs.trigger(job.id, suffix="aaaa", repeat_key="")
    beside = await world.store.jobs.trigger(job.id, suffix="bbbb", repeat_key="", overlap="allow")
    waits = await world.store.jobs.trigger(job.id, suffix="cccc", repeat_key="", overlap="queue_one")
    await world.store.runs.release(limit=100)
    assert set(await fetched(world)) == {nth(job, 0), beside.run}
    assert await ended(world) == {held.run: (RunState.SKIPPED, "overlap")}
    assert (await world.store.runs.get(waits.run)).state is RunState.QUEUED  # type: ignore[union-attr, arg-type]
    # The one beside is open, too.
    await occurs(world, job)
    assert (await ended(world))[nth(job, 1)] == (RunState.SKIPPED, "overlap")
    free = await world.put("b", kind="e", due_in=60_000)
    assert (await world.store.jobs.trigger(free.id, suffix="aaaa", repeat_key="", overlap="skip")).tag == "untracked"


async def test_a_job_whose_last_run_is_skipped_completes(world: World) -> None:
    job = await world.put("a", due_in=-5000, overlap="s")
    beside = await world.store.jobs.trigger(job.id, suffix="aaaa", repeat_key="")
    await world.store.runs.release(limit=100)
    await world.claim(job)
    await world.store.runs.release(limit=100)
    assert await ended(world) == {job.run: (RunState.SKIPPED, "overlap")}
    found = await world.store.jobs.get_head(job.id)
    assert found is not None
    assert found.state is JobState.COMPLETED
    assert list(await fetched(world)) == [beside.run]


@pytest.mark.parametrize("lost", [False, True])
async def test_after_an_recovery_the_same_runs_are_open(world: World, lost: bool) -> None:
    job = await looped(world, "w")
    await occurs(world, job, 3)
    (run,) = (await fetched(world)).values()
    if lost:
        await world.client.delete(world.keys.active(job.id))
    await stale_generation(world, 2, run)
    await world.store.runs.release(limit=100)
    assert await fetched(world) == {}
    await end(world, run)
    assert list(await fetched(world)) == [nth(job, 1)]


@pytest.mark.parametrize("overlap", ["s", "q", "w", "k"])
@pytest.mark.parametrize("seed", range(6))
async def test_whatever_happens_one_run_is_active_and_each_occurrence_ends(
    world: World, overlap: str, seed: int
) -> None:
    rng = random.Random(seed)
    job = await looped(world, overlap, late=50_000)
    held: dict[RunId, FetchedRun] = {}
    for step in range(120):
        act = rng.choice(["claim", "claim", "release", "fetch", "fetch", "end", "retry", "cancel", "begin_recovery"])
        if act == "claim":
            await world.claim(job, horizon_ms=0, limit=rng.randint(1, 2))
        elif act == "release":
            await world.store.runs.release(limit=rng.randint(1, 5))
        elif act == "fetch":
            held |= {r.run: r for r in (await world.fetch(slots=rng.randint(1, 3))).runs}
            assert len(held) <= 1, f"step {step}: {sorted(held)} at once"
        elif act in ("end", "retry") and held:
            run = held.pop(rng.choice(sorted(held)))
            outcome = RunState.RETRYING if act == "retry" else RunState.SUCCEEDED
            assert await world.finish(run, outcome, delay_ms=rng.choice([0, 5])) == "ok"
        elif act == "cancel":
            waiting = [r.decode() for r in await world.client.hkeys(world.keys.runs)]
            if waiting:
                await world.store.runs.cancel(RunId(rng.choice(sorted(waiting))))
        elif act == "begin_recovery" and rng.random() < 0.3:
            await stale_generation(world, step + 2, *held.values())
    await world.store.jobs.pause(job.id)
    for _ in range(400):
        for run in held.values():
            assert await world.finish(run) == "ok"
        await world.store.runs.release(limit=100)
        held = await fetched(world)
        assert len(held) <= 1
        if not await world.client.hlen(world.keys.runs):
            break
    # What was claimed has ended, each in one of the states that its policy allows.
    states = {s for s, _ in (await ended(world)).values()}
    assert await world.client.hlen(world.keys.runs) == 0
    assert await world.client.exists(world.keys.active(job.id)) == 0
    assert RunState.SKIPPED not in states or overlap != "w"
    claimed = {e.run for e in await world.events() if isinstance(e, RunEvent)}
    assert claimed == set(await ended(world))


async def test_a_run_that_was_let_go_and_a_later_one_of_the_same_release_leave_the_later_one(world: World) -> None:
    job = await looped(world, "k")
    await occurs(world, job)
    (run,) = (await fetched(world)).values()
    await occurs(world, job)  # waits, while the first is asked to stop
    await world.claim(job, horizon_ms=0, limit=1)  # staged, and due before the first has stopped
    assert await world.finish(run, RunState.CANCELLED) == "ok"
    await world.store.runs.release(limit=100)
    assert list(await fetched(world)) == [nth(job, 2)]
    assert (await ended(world))[nth(job, 1)] == (RunState.SKIPPED, "overlap")


async def test_two_later_runs_in_one_release_ask_a_running_one_to_stop_once(world: World) -> None:
    job = await looped(world, "k")
    await occurs(world, job)
    (run,) = (await fetched(world)).values()
    await world.claim(job, horizon_ms=0, limit=1)
    await world.claim(job, horizon_ms=0, limit=1)
    await world.store.runs.release(limit=100)
    record = await world.store.runs.get(run.run)
    assert record is not None
    assert record.flags.count("X") == 1


@pytest.mark.parametrize(("overlap", "run"), [("w", [0, 1, 2]), ("q", [0, 1]), ("k", [2]), ("s", [0])])
async def test_runs_in_their_queue_when_the_shard_is_recovered_go_on_in_their_order(
    world: World, overlap: str, run: list[int]
) -> None:
    job = await looped(world, overlap)
    await occurs(world, job, 3)
    await world.open(2, fence=0)
    order = []
    for _ in range(6):
        await world.store.runs.release(limit=100)
        for found in (await world.fetch()).runs:
            order.append(found.run)
            assert await world.finish(found) == "ok"
    assert order == [nth(job, n) for n in run]
    assert set(await ended(world)) == {nth(job, n) for n in range(3)}
    assert await world.client.exists(world.keys.runs, world.keys.active(job.id)) == 0


@pytest.mark.parametrize("overlap", ["w", "q"])
async def test_those_that_wait_for_a_run_that_cannot_be_read_go(world: World, overlap: str) -> None:
    job = await looped(world, overlap)
    await occurs(world, job, 2)
    await world.client.hset(world.keys.runs, nth(job, 0), "garbage")
    assert await fetched(world) == {}  # sets it aside
    await world.store.runs.release(limit=100)
    assert list(await fetched(world)) == [nth(job, 1)]


async def test_those_that_wait_for_a_run_that_is_gone_go_when_the_next_one_comes(world: World) -> None:
    job = await looped(world, "w")
    await occurs(world, job, 2)
    await world.client.hdel(world.keys.runs, nth(job, 0))
    await occurs(world, job)
    await world.store.runs.release(limit=100)
    assert list(await fetched(world)) == [nth(job, 1)]


async def test_every_second_with_most_of_it_spent_working_skips_nothing(world: World) -> None:
    job = await world.put("a", kind="e", every=EVERY, due_in=500, overlap="s")
    until = job.due + 3 * EVERY + 700
    working: list[tuple[int, FetchedRun]] = []
    now = await world.store.clock.read()
    while now < until:
        await world.claim(job)
        await world.store.runs.release(limit=10)
        working += [(now + 600, r) for r in (await world.fetch()).runs]
        for done, run in [w for w in working if w[0] <= now]:
            assert await world.finish(run) == "ok"
            working.remove((done, run))
        now = await world.store.clock.read()
    outcomes = await ended(world)
    assert [outcomes[nth(job, n)] for n in range(4)] == [(RunState.SUCCEEDED, "")] * 4
