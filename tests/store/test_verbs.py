"""Each verb: its replies, the keys it touches and no others, and what it journals."""

from __future__ import annotations

from collections.abc import Awaitable

import pytest

from rsched.core.errors import ShardClosed
from rsched.core.ids import JobId, RunId, WorkerId, derive_job_id
from rsched.core.jobs.packed import JobEvent, JobHead, RunEvent, SkipEvent, unpack_head
from rsched.core.schedule.misfire import MisfireOutcome, SkippedRange
from rsched.core.states import JobState, RunState
from rsched.store.catchup import CatchupRange
from rsched.store.jobs import PutItem
from rsched.store.run_values import MisfireItem, ReapItem
from tests.store.world import FENCE, W, World, changed, record

pytestmark = pytest.mark.anyio
NO_JOB, NO_RUN = derive_job_id("x", "none", 1), RunId("j_0000000000000:1")
OTHER = WorkerId("w2")


async def test_every_verb_is_closed_on_another_server_and_on_a_closed_shard(world: World) -> None:
    s = world.store

    async def refused(marker: dict[str, str]) -> None:
        await world.client.hset(s.keys.marker, mapping=marker)
        before = await world.snapshot()
        for call in (
            s.jobs.pause(NO_JOB), s.jobs.remove(NO_JOB), s.jobs.resume(NO_JOB, expect=1, due=1),
            s.jobs.invalidate(NO_JOB, schedule_version=1), s.runs.cancel(NO_RUN),
            s.jobs.trigger(NO_JOB, suffix="aaaa", repeat_key=""), s.jobs.put([], atomic=True),
            s.partitions.acquire("s", lease_ms=1),
            s.runs.claim("s", horizon_ms=1, limit=1, partitions=[(0, 0)]), s.runs.resolve_misfires([]),
            s.runs.release(limit=1),
            s.partitions.cache_occurrences("S", after=1, occurrences=[2], ended=False),
            s.runs.expired_leases(after_ms=0, limit=1), s.runs.reap([], after_ms=0),
            s.catchup.enqueue(CatchupRange(NO_JOB, 1, 1, 1, "", 1, 1), occurrences=[1], rest=None, pace_ms=1, most=9),
            s.jobs.forget([]),
            s.runs.fetch(W, request=1, slots=1, lease_ms=1, queues=["default"]), s.runs.finish(W, request=1, items=[]),
            s.runs.requeue(W, []), s.runs.renew(W, lease_ms=1, items=[]), s.runs.adopt(W, lease_ms=1, queues=[], items=[]),
            s.recovery.restage(0, lease_ms=1), s.recovery.finish(recovery_grace_ms=1), s.restore.put_jobs([]),
            s.restore.put_runs([], lease_ms=1),
        ):  # fmt: skip
            with pytest.raises(ShardClosed):
                await call
        assert await world.snapshot() == before

    good = {k.decode(): v.decode() for k, v in (await world.client.hgetall(s.keys.marker)).items()}
    await refused({"state": "closed"})
    await refused({**good, "run_id": "another"})
    await refused({**good, "repl_id": "another"})


async def test_a_caller_of_an_older_generation_is_told_once_and_its_verb_then_passes(world: World) -> None:
    told = []

    async def stale_generation() -> None:
        told.append(world.store.connection.generation)

    job = await world.put("a", due_in=60_000)
    world.store.connection.generation, world.store.connection.on_new_generation = "0", stale_generation
    await world.store.jobs.pause(job.id)
    await world.client.hset(world.keys.marker, "generation", "5")
    assert (await world.store.jobs.remove(job.id)).tag == "ok"
    assert told == ["5"]


async def test_put_refuses_by_version_and_writes_only_definition_due_head_and_journal(world: World) -> None:
    before = await world.snapshot()
    job = await world.put("a", due_in=60_000)
    assert changed(before, await world.snapshot()) == {"jobs", "due", "heads", "definitions"}
    assert [type(e) for e in await world.events()] == [JobEvent]
    new, gone = derive_job_id("default", "b", 1), await world.put("gone")
    await world.store.jobs.remove(gone.id)
    items = [
        PutItem(job.id, 0, 1, job.record.pack()), PutItem(NO_JOB, 3, 1, job.record.pack()),
        PutItem(gone.id, 0, 1, job.record.pack()), PutItem(new, 0, None, job.record.pack()),
    ]  # fmt: skip
    tags = ["exists", "missing", "deleted", "ok"]
    before = await world.snapshot()
    reply = await world.store.jobs.put(items, atomic=True)
    assert (reply.ok, reply.tags) == (False, tags)
    assert await world.snapshot() == before
    reply = await world.store.jobs.put(items, atomic=False)
    assert (reply.ok, reply.tags) == (True, tags)
    assert changed(before, await world.snapshot()) == {"jobs", "definitions"}
    assert (await world.store.jobs.put([PutItem(job.id, 9, 1, job.record.pack())], atomic=True)).tags == ["conflict"]


async def test_a_large_body_lies_apart_and_comes_back_whole(world: World) -> None:
    job = await world.put("a", due_in=60_000, payload="x" * 5000)
    assert await world.client.hexists(world.keys.body(job.p), job.id)
    assert await world.store.jobs.get(job.id) == job.record
    await world.store.jobs.pause(job.id)
    got = await world.store.jobs.get(job.id)
    assert not isinstance(got, JobHead | None)
    assert got.definition == job.record.definition


async def test_pause_resume_and_remove_answer_by_version_and_state(world: World) -> None:
    s, job = world.store, await world.put("a", due_in=60_000)
    assert (await s.jobs.pause(NO_JOB)).tag == "missing"
    assert (await s.jobs.pause(job.id, expect=7)).tag == "conflict"
    before = await world.snapshot()
    assert (await s.jobs.pause(job.id, expect=1))[::3] == ("ok", 2)
    assert changed(before, await world.snapshot()) == {"jobs", "due", "heads", "definitions"}
    assert (await s.jobs.pause(job.id)).tag == "already"
    head = await s.jobs.get(job.id)
    assert not isinstance(head, JobHead | None)
    assert head.head.paused_from == job.due
    assert (await s.jobs.resume(NO_JOB, expect=1, due=1)).tag == "missing"
    assert (await s.jobs.resume(job.id, expect=1, due=1)).tag == "conflict"
    before = await world.snapshot()
    reply = await s.jobs.resume(job.id, expect=2, due=job.due, missed=MisfireOutcome(SkippedRange(3, 10, 30)))
    assert reply[::3] == ("ok", 3)
    assert changed(before, await world.snapshot()) == {"jobs", "due", "heads", "definitions"}
    skip = (await world.events(before))[1]
    assert isinstance(skip, SkipEvent)
    assert (skip.first, skip.last, skip.total, skip.reason) == (10, 30, 3, "paused")
    assert (await s.jobs.resume(job.id, expect=3, due=1)).tag == "already"
    assert (await s.jobs.remove(job.id, expect=1)).tag == "conflict"
    before = await world.snapshot()
    assert (await s.jobs.remove(job.id, expect=3)).tag == "ok"
    assert changed(before, await world.snapshot()) == {"jobs", "due", "heads", "definitions"}
    assert [(await s.jobs.remove(job.id)).tag, (await s.jobs.pause(job.id)).tag] == ["missing", "missing"]
    tombstone = await s.jobs.get(job.id)
    assert isinstance(tombstone, JobHead)
    assert tombstone.state is JobState.DELETED


async def test_a_completed_job_is_neither_paused_nor_resumed_nor_triggered(world: World) -> None:
    job, run = await world.running()
    await world.finish(run)
    assert (await world.store.jobs.pause(job.id)).tag == "completed"
    assert (await world.store.jobs.resume(job.id, expect=1, due=1)).tag == "completed"
    assert (await world.store.jobs.trigger(job.id, suffix="aaaa", repeat_key="")).tag == "completed"


async def test_park_takes_a_job_out_of_the_due_set_only_at_its_own_schedule_version(world: World) -> None:
    job = await world.put("a", due_in=60_000)
    assert (await world.store.jobs.invalidate(job.id, schedule_version=2)).tag == "stale"
    before = await world.snapshot()
    assert (await world.store.jobs.invalidate(job.id, schedule_version=1)).tag == "ok"
    after = await world.snapshot()
    assert changed(before, after) == {"jobs", "due", "heads", "definitions"}
    assert unpack_head(after[f"jobs:{job.p}:0"][job.id.encode()]).state is JobState.INVALID


async def test_own_gives_each_partition_one_owner_and_a_new_epoch_to_the_next(world: World) -> None:
    s = world.store
    assert (await s.partitions.acquire("a", lease_ms=60_000, take=[1, 2])).taken == {1: 1, 2: 1}
    assert (await s.partitions.acquire("b", lease_ms=60_000, take=[1]))[:2] == (["a", "b"], {})
    before = await world.snapshot()
    await s.partitions.acquire("a", lease_ms=60_000, give=[1])
    assert changed(before, await world.snapshot()) == {"owners", "schedulers"}
    assert (await s.partitions.acquire("b", lease_ms=60_000, take=[1])).taken == {1: 2}
    assert (await s.partitions.acquire("a", lease_ms=0)).live == ["b"]
    job = await world.put("a")
    await world.client.hset(world.keys.owners, str(job.p), "b|9")
    before = await world.snapshot()
    stale = await s.runs.claim("b", horizon_ms=0, limit=10, partitions=[(job.p, 8)])
    assert (stale.stale, stale.total) == ([job.p], 0)
    assert await world.snapshot() == before
    assert (await s.runs.claim("b", horizon_ms=0, limit=10, partitions=[(job.p, 9)])).total == 1


async def test_claim_writes_run_stage_due_and_watermark_and_names_what_it_leaves(world: World) -> None:
    job = await world.put("a", kind="e", every=60_000)
    cron, late = await world.put("c", kind="c"), await world.put("l", kind="e", due_in=-100_000)
    before = await world.snapshot()
    reply = await world.claim(job, cron, late)
    assert (reply.total, [n[:] for n in reply.needs], reply.late) == (
        1, [("SID", cron.due, cron.id)], [(late.id, late.due)],
    )  # fmt: skip
    assert changed(before, await world.snapshot()) == {"runs", "staged", "due", "heads", "journal"}
    assert world.kinds(await world.events(before)) == ["Run", "Watermark"]
    before = await world.snapshot()
    await world.store.partitions.cache_occurrences("SID", after=cron.due, occurrences=[cron.due + 60_000], ended=True)
    assert changed(before, await world.snapshot()) == {"occurrences:SID"}
    assert (await world.claim(cron)).total == 1


async def test_misfire_settles_only_what_is_still_due_as_seen(world: World) -> None:
    job = await world.put("a", kind="e", due_in=-100_000)
    item = MisfireItem(job.id, 1, job.due, job.due + 120_000, job.due + 60_000, job.due, job.due, 1, None)
    before = await world.snapshot()
    stale = [item._replace(schedule_version=2), item._replace(due=job.due + 1), item._replace(job=NO_JOB)]
    assert await world.store.runs.resolve_misfires(stale) == ["stale"] * 3
    assert await world.snapshot() == before
    assert await world.store.runs.resolve_misfires([item]) == ["ok"]
    assert changed(before, await world.snapshot()) == {"runs", "staged", "due", "heads", "journal"}
    assert world.kinds(await world.events(before)) == ["Run", "Skip"]
    assert await world.store.runs.resolve_misfires([item]) == ["stale"]


async def test_a_catch_up_range_is_paid_once_and_dropped_with_its_job(world: World) -> None:
    job = await world.put("a", kind="e", due_in=-180_000)
    await world.store.runs.resolve_misfires(
        [MisfireItem(job.id, 1, job.due, job.due + 240_000, None, 0, 0, 0, (job.due, job.due + 120_000))]
    )
    (paid,) = await world.store.catchup.list_due(limit=10)
    assert (paid.start, paid.end) == (job.due, job.due + 120_000)
    rest = paid._replace(start=job.due + 60_000)
    before = await world.snapshot()
    assert await world.store.catchup.enqueue(paid, occurrences=[job.due], rest=rest, pace_ms=0, most=9) == "ok"
    assert changed(before, await world.snapshot()) == {"runs", "staged", "catchup", "paces", "journal"}
    assert await world.store.catchup.enqueue(paid, occurrences=[job.due], rest=rest, pace_ms=0, most=9) == "stale"
    (left,) = await world.store.catchup.list_due(limit=10)
    await world.store.jobs.remove(job.id)
    before = await world.snapshot()
    assert await world.store.catchup.enqueue(left, occurrences=[left.start], rest=None, pace_ms=0, most=9) == "gone"
    assert changed(before, await world.snapshot()) == {"catchup", "journal"}


async def test_release_fetch_and_finish_touch_exactly_their_keys(world: World) -> None:
    job = await world.put("a", payload="x")
    await world.claim(job)
    before = await world.snapshot()
    assert (await world.store.runs.release(limit=10)).total == 1
    queue_key = job.record.head.queue_key
    assert changed(before, await world.snapshot()) == {"staged", f"q:{queue_key}", "ready:default"}
    before = await world.snapshot()
    (run,) = (await world.fetch()).runs
    touched = {
        f"q:{queue_key}",
        "ready:default",
        "virtual:default",
        "runs",
        "leases",
        "fence",
        "workers",
        "starts",
        "requests",
        "journal",
    }
    assert changed(before, await world.snapshot()) == touched
    assert (run.attempt, run.fence, run.definition.payload) == (1, FENCE + 1, "x")
    assert world.kinds(await world.events(before)) == ["Run", "Worker"]
    assert await world.finish(run, fence=run.fence - 1) == "stale_fence"
    before = await world.snapshot()
    assert await world.finish(run, error="line\nline") == "ok"
    assert changed(before, await world.snapshot()) == {"runs", "leases", "jobs", "finishes", "journal"}
    end, completed = await world.events(before)
    assert isinstance(end, RunEvent)
    assert (end.record.state, end.detail) == (RunState.SUCCEEDED, "line\nline")
    assert isinstance(completed, JobEvent)
    assert await world.finish(run) == "missing"


async def test_renew_and_requeue_hold_each_attempt_to_its_fence(world: World) -> None:
    _, run = await world.running()
    s = world.store
    before = await world.snapshot()
    reply = await s.runs.renew(W, lease_ms=90_000, items=[(run.run, run.fence), (run.run, run.fence - 1), (NO_RUN, 1)])
    assert reply.tags == ["ok", "stale_fence", "missing"]
    assert changed(before, await world.snapshot()) <= {"leases", "workers"}
    assert await s.runs.requeue(W, [(run.run, run.fence - 1), (NO_RUN, 1)]) == ["stale_fence", "missing"]
    before = await world.snapshot()
    assert await s.runs.requeue(W, [(run.run, run.fence), (run.run, run.fence)]) == ["ok", "stale_fence"]
    touched = {f"q:{run.head.queue_key}", "ready:default", "runs", "leases", "journal"}
    assert changed(before, await world.snapshot()) == touched


async def test_forget_drops_ended_jobs_of_exactly_the_version_given(world: World) -> None:
    job, active = await world.put("a"), await world.put("b")
    await world.store.jobs.remove(job.id)
    before = await world.snapshot()
    assert await world.store.jobs.forget([(job.id, 1), (active.id, 1), (NO_JOB, 1)]) == 0
    assert await world.snapshot() == before
    assert await world.store.jobs.forget([(job.id, 2)]) == 1
    assert changed(before, await world.snapshot()) == {"jobs"}


async def test_reap_and_expired_wait_for_the_end_of_the_lease(world: World) -> None:
    _, run = await world.running()
    assert await world.store.runs.expired_leases(after_ms=0, limit=10) == ([], False)
    before = await world.snapshot()
    item = ReapItem(run.run, run.fence, "T", 0)
    assert await world.store.runs.reap([item], after_ms=0) == ["stale_fence"]
    assert await world.snapshot() == before
    await world.client.zadd(world.keys.leases, {run.run: 1, NO_RUN: 1})
    before = await world.snapshot()
    tags = await world.store.runs.reap([item._replace(fence=1), item, ReapItem(NO_RUN, 1, "D", 0)], after_ms=0)
    assert tags == ["stale_fence", "ok", "missing"]
    assert changed(before, await world.snapshot()) == {"runs", "leases", "retries", "journal"}


async def test_restore_writes_only_what_is_newer(world: World) -> None:
    job = await world.put("a", due_in=60_000)
    pausing = await world.store.jobs.pause(job.id)
    await world.store.recovery.begin(2, fence=FENCE)
    newer = record("a", now=1, kind="o", arg="1", version=9).pack()
    before = await world.snapshot()
    assert await world.store.restore.put_jobs([(job.id, 5, job.record.pack())]) == 0
    assert await world.snapshot() == before
    assert pausing.version == 2
    assert await world.store.restore.put_jobs([(job.id, 5, newer), (JobId("j_1111111111111"), None, newer)]) == 2
    run = "1|R|5|default:default:1|1|1|10|w1|1|1|1|"
    assert await world.store.restore.put_runs([(NO_RUN, run), (NO_RUN, run)], lease_ms=60_000) == 1
    assert await world.store.restore.put_runs([(NO_RUN, run.replace("|R|5|", "|R|4|"))], lease_ms=60_000) == 0
    assert await world.store.restore.put_runs([(NO_RUN, run.replace("|R|5|", "|S|6|"))], lease_ms=60_000) == 1
    assert await world.store.runs.get(NO_RUN) is None


async def test_an_older_generation_does_not_reopen(world: World) -> None:
    before = await world.snapshot()
    assert not await world.store.recovery.begin(1, fence=1)
    assert await world.snapshot() == before


async def test_the_verbs_of_an_recovery_touch_exactly_their_keys(world: World) -> None:
    _, run = await world.running()
    await world.queued("q")
    s = world.store

    async def touches(call: Awaitable[object]) -> set[str]:
        before = await world.snapshot()
        await call
        return set(changed(before, await world.snapshot()))

    assert await touches(s.runs.expired_leases(after_ms=0, limit=10)) == set()
    assert await touches(s.recovery.begin(2, fence=2 * FENCE)) == {"shard", "fence", "unconfirmed"}
    assert await touches(s.recovery.restage(0, lease_ms=60_000)) == {"staged", "q:default:default:1", "ready:default"}
    held = [(run.run, 1, run.fence)]
    assert await touches(s.runs.adopt(W, lease_ms=99_000, queues=["default"], items=held)) == {
        "leases",
        "unconfirmed",
        "workers",
    }
    assert await touches(s.recovery.finish(recovery_grace_ms=1)) == {"shard"}
