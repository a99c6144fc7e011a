"""Each page of the reconciler finds what is wrong, repairs it, and leaves alone what is right or has changed since."""

from __future__ import annotations

from typing import Any

import pytest

from rsched.core.ids import JobId, RunId, derive_job_id
from rsched.core.jobs.packed import QuarantineEvent, RangeEvent, SkipEvent
from rsched.core.states import RunState
from rsched.store.findings import Finding
from rsched.store.run_repair import EntrySet, KeptSet, SeenRun
from tests.support.store_world import World, changed

pytestmark = pytest.mark.anyio
LANE = "default:default:1"


async def _runs(w: World, *, write: bool = True) -> tuple[list[Finding], dict[str, SeenRun]]:
    cursor, found, seen = await w.store.run_repair.check_records(0, count=1000, lease_ms=60_000, write=write)
    assert cursor == 0
    return found, {s.run: s for s in seen}


async def _entries(w: World, kind: EntrySet, *, write: bool = True) -> list[Finding]:
    return (await w.store.run_repair.check_entries(kind, 0, count=1000, write=write))[1]


async def _everything(w: World, *, write: bool) -> list[Finding]:
    """All that the verbs find on their own."""
    found: list[Finding] = []
    for p in range(1024):
        found += (await w.store.job_repair.check_due_times(p, 0, count=100, write=write))[1]
    for kind in ("staged", "retries", "leases", "catchup", "heads"):
        found += await _entries(w, kind, write=write)
    for queue_key in [LANE]:
        found += (await w.store.run_repair.check_queue(queue_key, "-", count=100, write=write))[1]
    found += (await w.store.run_repair.check_ready_teams("default", 0, count=100, write=write))[1]
    found += (await _runs(w, write=write))[0]
    _, names = await w.store.reconciliation.read_names("active", cursor=0, count=100_000)
    for job in names:
        found += (await w.store.run_repair.check_active_runs(JobId(job), 0, count=100, write=write))[1]
    kept: tuple[KeptSet, ...] = ("workers", "requests", "finishes", "unconfirmed", "payloads", "triggers")
    for name in kept:
        found += (await w.store.run_repair.check_leftovers(name, 0, count=100, silent_ms=3_600_000, write=write))[1]
    return found


async def _busy(w: World) -> None:
    """Runs in every state, some of a job whose runs must not overlap, a paused job that resumes by itself."""
    await w.put("later", kind="e", due_in=3_600_000)
    await w.running("running")
    job = await w.queued("serial", kind="e", every=500, overlap="w")
    await w.claim(job)
    await w.put("staged", due_in=4000)
    await w.claim()
    await w.store.jobs.trigger(derive_job_id("default", "later", 1), suffix="aaaa", repeat_key="k", payload=b"\xc0")
    _, failing = await w.running("failing")
    assert await w.finish(failing, RunState.RETRYING, delay_ms=60_000) == "ok"
    paused = await w.put("paused", kind="e")
    await w.queued("queued")
    assert (await w.store.jobs.pause(paused.id, until=await w.store.clock.read() + 60_000)).tag == "ok"


@pytest.mark.parametrize("write", [True, False])
async def test_a_healthy_shard_is_left_as_it_is(world: World, write: bool) -> None:
    await _busy(world)
    before = await world.snapshot()
    assert await _everything(world, write=write) == []
    assert changed(before, await world.snapshot()) == set()


async def test_finding_alone_changes_nothing(world: World) -> None:
    await _busy(world)
    c, k = world.client, world.keys
    await c.zadd(k.heads, {"7": 5, "x": 1})
    await c.zadd(k.leases, {"nobody": 1})
    await c.zadd(k.staged, {"junk": 1, f"j_0000000000000:1|{LANE}": 2})
    await c.hset(k.payloads, "j_0000000000000:1", b"x")
    await c.delete(k.ready("default"))
    before = await world.snapshot()
    found = await _everything(world, write=False)
    assert {kind for kind, _ in found} == {
        "head_wrong", "head_without_partition", "lease_without_run", "unreadable_entry", "entry_without_run",
        "payload_without_run", "team_not_ready",
    }  # fmt: skip
    assert changed(before, await world.snapshot()) == set()


async def test_a_running_run_without_a_lease_gets_a_full_one(world: World) -> None:
    job, _ = await world.running()
    await world.client.zrem(world.keys.leases, job.run)
    assert (await _runs(world))[0] == [("run_without_lease", job.run)]
    end = await world.client.zscore(world.keys.leases, job.run)
    assert end is not None
    assert 55_000 < end - await world.store.clock.read() <= 60_000
    assert (await _runs(world))[0] == []


async def test_a_run_that_nothing_will_start_is_staged_at_its_time(world: World) -> None:
    job = await world.put("a", due_in=3000)
    await world.claim(job)
    await world.client.delete(world.keys.staged)
    found, seen = await _runs(world)
    assert (found, seen[job.run].place) == ([], "queue")
    assert await world.store.run_repair.check_queued([(seen[job.run], False)], write=False) == [
        ("run_not_queued", job.run)
    ]
    assert await world.store.run_repair.check_queued([(seen[job.run], False)], write=True) == [
        ("run_not_queued", job.run)
    ]
    assert await world.client.zrange(world.keys.staged, 0, -1, withscores=True) == [
        (f"{job.run}|{LANE}".encode(), job.due)
    ]
    assert await world.store.run_repair.check_queued([(seen[job.run], False)], write=True) == []


async def test_a_run_that_has_moved_since_it_was_seen_is_left_alone(world: World) -> None:
    job = await world.queued()
    _, seen = await _runs(world)
    await world.fetch()
    assert await world.store.run_repair.check_queued([(seen[job.run], False)], write=True) == []
    assert await world.store.run_repair.drop([(job.run, seen[job.run].record)]) == []
    assert await world.store.run_repair.put_back([(job.run, b"", seen[job.run].record.decode(), b"")], lease_ms=1) == []
    assert (await _runs(world))[1][job.run].place == ""


async def test_a_retry_without_its_entry_is_told_and_comes_back(world: World) -> None:
    job, run = await world.running()
    await world.finish(run, RunState.RETRYING, delay_ms=0)
    await world.client.delete(world.keys.retries)
    _, seen = await _runs(world)
    assert seen[job.run].place == "queue"
    await world.store.run_repair.check_queued([(seen[job.run], False)], write=True)
    await world.store.runs.release(limit=10)
    (again,) = (await world.fetch()).runs
    assert (again.run, again.attempt) == (job.run, 2)


async def test_a_queue_that_nobody_would_look_at_is_fetched_again(world: World) -> None:
    job = await world.queued()
    await world.client.delete(world.keys.ready("default"))
    assert (await world.fetch()).runs == []
    _, found, runs = await world.store.run_repair.check_queue(LANE, "-", count=100, write=True)
    assert (found, runs) == ([("team_not_ready", LANE)], [job.run])
    assert [r.run for r in (await world.fetch()).runs] == [job.run]


async def test_entries_of_a_stream_without_a_run_are_dropped_and_an_empty_one_goes(world: World) -> None:
    job = await world.queued()
    await world.client.hdel(world.keys.runs, job.run)
    _, found, runs = await world.store.run_repair.check_queue(LANE, "-", count=100, write=True)
    assert (found, runs) == ([("queued_without_run", job.run)], [])
    assert not await world.client.exists(world.keys.queue(LANE), world.keys.ready("default"))


async def test_a_stream_is_looked_at_page_by_page(world: World) -> None:
    jobs = [await world.queued(f"a{i}") for i in range(5)]
    seen: list[RunId] = []
    after = "-"
    while after:
        after, found, runs = await world.store.run_repair.check_queue(LANE, after, count=2, write=True)
        assert found == []
        seen += runs
    assert seen == [j.run for j in jobs]


async def test_a_team_without_work_is_not_ready(world: World) -> None:
    await world.queued()
    await world.client.zadd(world.keys.ready("default"), {"idle": 3})
    assert (await world.store.run_repair.check_ready_teams("default", 0, count=10, write=True))[1] == [
        ("team_without_work", "idle")
    ]
    assert await world.client.zrange(world.keys.ready("default"), 0, -1) == [b"default"]


@pytest.mark.parametrize("kind", ["staged", "retries"])
async def test_what_has_no_queue_key_is_quarantined_on_record(world: World, kind: EntrySet) -> None:
    before = await world.snapshot()
    await world.client.zadd(getattr(world.keys, kind), {"junk": 1})
    assert await _entries(world, kind) == [("unreadable_entry", "junk")]
    assert await world.client.hexists(world.keys.quarantine, "junk")
    assert [type(e) for e in await world.events(before)] == [QuarantineEvent]


@pytest.mark.parametrize(
    ("kind", "member"), [("staged", f"{{}}|{LANE}|s"), ("staged", "{}|other:default:1"), ("retries", f"{{}}|{LANE}")]
)
async def test_an_entry_that_is_not_the_runs_own_is_dropped(world: World, kind: EntrySet, member: str) -> None:
    job = await world.put("a")
    await world.claim(job)
    await world.client.zadd(getattr(world.keys, kind), {member.format(job.run): 1})
    assert await _entries(world, kind) == [("entry_without_run", member.format(job.run))]
    assert (await world.store.runs.release(limit=10)).total == 1


async def test_heads_are_made_true(world: World) -> None:
    early, late = await world.put("a", due_in=50_000), await world.put("b", due_in=60_000)
    await world.client.zadd(world.keys.heads, {str(early.p): 1})
    await world.client.zrem(world.keys.heads, str(late.p))
    await world.client.zadd(world.keys.heads, {"1023": 1})
    for p in (early.p, late.p, 1023):
        _, found, lost = await world.store.job_repair.check_due_times(p, 0, count=10, write=True)
        assert (found, lost) == ([("head_wrong", str(p))], [])
    assert dict(await world.client.zrange(world.keys.heads, 0, -1, withscores=True)) == {
        str(early.p).encode(): early.due,
        str(late.p).encode(): late.due,
    }


async def test_a_due_entry_of_a_job_that_is_not_active_is_dropped(world: World) -> None:
    job = await world.put("a", kind="e")
    await world.store.jobs.pause(job.id)
    await world.client.zadd(world.keys.due(job.p), {job.id: job.due})
    await world.client.zadd(world.keys.heads, {str(job.p): job.due})
    assert (await world.store.job_repair.check_due_times(job.p, 0, count=10, write=True))[1] == [
        ("due_of_inactive_job", job.id)
    ]
    assert not await world.client.exists(world.keys.due(job.p), world.keys.heads)


@pytest.mark.parametrize("raw", [b"", b"junk"])
async def test_what_the_ledger_lacks_too_is_quarantined_on_record(world: World, raw: bytes) -> None:
    job = await world.put("a", kind="e")
    await world.client.hdel(world.keys.jobs(job.p), job.id)
    if raw:
        await world.client.hset(world.keys.jobs(job.p), job.id, raw)
    before = await world.snapshot()
    ((lost,),) = ((await world.store.job_repair.check_due_times(job.p, 0, count=10, write=True))[2],)
    assert lost == (job.id, job.due, raw)
    assert await world.store.job_repair.quarantine([(job.p, job.id.encode(), b"other")]) == []
    assert await world.store.job_repair.quarantine([(job.p, job.id.encode(), raw)]) == [job.id.encode()]
    assert [type(e) for e in await world.events(before)] == [QuarantineEvent]
    assert not await world.client.exists(world.keys.due(job.p), world.keys.jobs(job.p), world.keys.heads)


async def test_a_job_is_due_again_only_as_it_was_seen(world: World) -> None:
    job = await world.put("a", kind="e")
    head = job.record.head.pack().encode()
    assert await world.store.job_repair.set_missing_due_times([(job.id, head, 5)]) == []
    await world.client.delete(world.keys.due(job.p), world.keys.heads)
    assert await world.store.job_repair.set_missing_due_times([(job.id, head + b"x", 5)]) == []
    assert await world.store.job_repair.set_missing_due_times([(job.id, head, job.due)]) == [job.id]
    assert (await world.claim(job)).total == 1


async def test_an_open_run_that_is_none_lets_the_next_one_go(world: World) -> None:
    job, first = await world.running("a", kind="e", every=1000, due_in=-3000, overlap="w")
    await world.claim(job)
    await world.store.runs.release(limit=10)
    waiting = await world.client.zrange(world.keys.active(job.id), 1, 1)
    await world.client.hdel(world.keys.runs, first.run)
    assert (await world.store.run_repair.check_active_runs(job.id, 0, count=10, write=True))[1] == [
        ("active_without_run", first.run)
    ]
    await world.store.runs.release(limit=10)
    assert [r.run.encode() for r in (await world.fetch()).runs] == waiting


async def test_a_turn_that_was_lost_is_given(world: World) -> None:
    job, first = await world.running("a", kind="e", every=1000, due_in=-3000, overlap="w")
    await world.claim(job)
    await world.store.runs.release(limit=10)
    assert (await _runs(world))[0] == []
    assert await world.finish(first) == "ok"
    await world.client.delete(world.keys.staged)
    found = (await _runs(world))[0]
    assert [kind for kind, _ in found] == ["turn_lost"]
    await world.store.runs.release(limit=10)
    assert [(r.run) for r in (await world.fetch()).runs] == [found[0][1]]


async def test_a_live_run_that_its_open_set_lacks_is_added(world: World) -> None:
    job, run = await world.running("a", kind="e", overlap="s")
    await world.client.delete(world.keys.active(job.id))
    assert (await _runs(world))[0] == [("run_not_active", run.run)]
    assert await world.client.zscore(world.keys.active(job.id), run.run) == 0


async def test_a_released_run_that_its_open_set_lacks_is_added(world: World) -> None:
    job = await world.queued("a", kind="e", overlap="s")
    await world.client.delete(world.keys.active(job.id))
    _, seen = await _runs(world)
    assert await world.store.run_repair.check_queued([(seen[job.run], True)], write=True) == [
        ("run_not_active", job.run)
    ]
    assert await world.client.zscore(world.keys.active(job.id), job.run) == 0


async def test_ranges_that_nobody_can_pay_out_are_put_on_record(world: World) -> None:
    gone = "j_0000000000000|1000|2000|1||500"
    await world.client.zadd(world.keys.catchup, {gone: 1, "junk|1": 2})
    found = await _entries(world, "catchup")
    assert sorted(found) == [("range_without_job", gone), ("unreadable_range", "junk|1")]
    events: list[Any] = await world.events()
    skip = next(e for e in events if isinstance(e, SkipEvent))
    assert (skip.job, skip.first, skip.last, skip.reason) == (gone[:15], 1000, 2000, "deleted")
    left = next(e for e in events if isinstance(e, RangeEvent))
    assert left.start > left.end
    assert not await world.client.exists(world.keys.catchup)


async def test_what_belonged_to_a_dead_worker_goes(world: World) -> None:
    c, k = world.client, world.keys
    await world.running()
    now = await world.store.clock.read()
    await c.hset(k.workers, "old", f"{now - 4_000_000}|default|60000")
    for name in ("old", "ghost"):
        await c.hset(k.requests, name, "1 x")
        await c.hset(k.finishes, name, "1")
        await c.sadd(k.unconfirmed, name)
    await c.sadd(k.unconfirmed, "")  # a recovery after a loss leaves it, to the next one
    await c.zadd(k.triggers, {"j|old": now - 90_000_000, "j|new": now})
    await c.hset(k.payloads, "j_0000000000000:1", b"x")
    found = await _everything(world, write=True)
    assert sorted(kind for kind, _ in found) == [
        "finish_of_no_worker", "payload_without_run", "request_of_no_worker", "trigger_past_a_day", "unconfirmed_of_no_worker",
        "worker_silent",
    ]  # fmt: skip
    assert await _everything(world, write=True) == []
    assert await c.hkeys(k.workers) == await c.hkeys(k.requests) == [b"w1"]


async def test_a_wrong_calendar_is_dropped_only_as_it_was_seen(world: World) -> None:
    await world.store.partitions.cache_occurrences("SID", after=0, occurrences=[10, 20], ended=True)
    entries, digest = await world.store.reconciliation.inspect_occurrences("SID")
    assert entries == [("from", 0), ("10", 10), ("20", 20), ("end", 2**53 - 1)]
    await world.store.partitions.cache_occurrences("SID", after=0, occurrences=[10, 20, 30], ended=True)
    assert not await world.store.job_repair.drop_occurrences("SID", digest=digest)
    _, digest = await world.store.reconciliation.inspect_occurrences("SID")
    assert await world.store.job_repair.drop_occurrences("SID", digest=digest)
    assert (await world.store.reconciliation.inspect_occurrences("SID"))[0] == []


async def test_an_ended_run_frees_what_waits_for_it(world: World) -> None:
    job, first = await world.running("a", kind="e", every=1000, due_in=-3000, overlap="w")
    await world.claim(job)
    await world.store.runs.release(limit=10)
    _, seen = await _runs(world)
    assert await world.store.run_repair.drop([(first.run, seen[first.run].record)]) == [first.run]
    await world.store.runs.release(limit=10)
    assert len((await world.fetch()).runs) == 1
    assert (await _runs(world))[0] == []


@pytest.mark.parametrize("state", ["QUEUED", "RUNNING", "RETRYING"])
async def test_a_run_comes_back_in_any_state(world: World, state: str) -> None:
    job, run = await world.running(overlap="w")
    if state == "RETRYING":
        await world.finish(run, RunState.RETRYING)
    if state == "QUEUED":
        await world.store.runs.requeue("w1", [(run.run, run.fence)])  # type: ignore[arg-type]
    record = (await world.client.hget(world.keys.runs, job.run) or b"").decode()
    await world.client.delete(
        world.keys.runs,
        world.keys.leases,
        world.keys.retries,
        world.keys.queue(LANE),
        world.keys.ready("default"),
        world.keys.active(job.id),
    )
    assert await world.store.run_repair.put_back([(job.run, b"", record, b"")], lease_ms=60_000) == [job.run]
    found, seen = await _runs(world)
    assert (found, seen[job.run].place) == ([], "")
    if state != "RUNNING":
        await world.store.runs.release(limit=10)
        assert [r.run for r in (await world.fetch()).runs] == [job.run]
    else:
        assert await world.finish(run) == "ok"


async def test_a_run_record_that_cannot_be_read_is_told_and_quarantined(world: World) -> None:
    await world.client.hset(world.keys.runs, mapping={"x": b"\xffjunk"})
    found, seen = await _runs(world)
    assert (found, seen["x"]) == ([], (RunId("x"), b"\xffjunk", "unreadable", ""))
    assert await world.store.run_repair.drop([(RunId("x"), b"\xffjunk")], quarantine=True) == [RunId("x")]
    assert await world.client.hget(world.keys.quarantine, "x") == b"\xffjunk"


async def test_a_definition_is_journalled_again_only_in_its_version(world: World) -> None:
    job = await world.put("a", payload="x" * 3000)
    before = await world.snapshot()
    assert await world.store.job_repair.journal_again([(job.id, 2)]) == []
    assert await world.store.job_repair.journal_again([(job.id, 1)]) == [job.id]
    (event,) = await world.events(before)
    assert getattr(event, "value", b"") == job.record.pack()
