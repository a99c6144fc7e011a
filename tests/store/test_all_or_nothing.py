"""A bad item is quarantined alone, or nothing is changed at all; there is no half of anything."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest
from redis.exceptions import ResponseError

from rsched.core.errors import Unavailable
from rsched.core.ids import RunId, run_id_of
from rsched.core.jobs.packed import QuarantineEvent
from rsched.core.schedule.misfire import MisfireOutcome, SkippedRange
from rsched.core.states import RunState
from rsched.store.catchup import CatchupRange
from rsched.store.jobs import PutItem
from rsched.store.restore import RestoreProgress
from rsched.store.run_values import FetchedRun, FinishItem, MisfireItem, ReapItem
from tests.support.store_world import Job, W, World

pytestmark = pytest.mark.anyio
GARBAGE = [b"", b"garbage", b"1|Z", b"1|a|1", b"\xff\xfe\n", b"1|Q|99999999999999999999999|x"]


@pytest.mark.parametrize("raw", [*GARBAGE, None])
async def test_claim_sets_a_bad_definition_aside_and_claims_the_others(world: World, raw: bytes | None) -> None:
    bad = await world.put("bad")
    good = [await world.put(f"g{i}", kind="e") for i in range(3)]
    if raw is None:
        await world.client.hdel(world.keys.jobs(bad.p), bad.id)
    else:
        await world.client.hset(world.keys.jobs(bad.p), bad.id, raw)
    assert (await world.claim()).total == 3
    after = await world.snapshot()
    assert sorted(after["runs"]) == sorted(g.run.encode() for g in good)
    assert list(after["quarantine"]) == [bad.id.encode()]
    assert [e.key for e in await world.events() if isinstance(e, QuarantineEvent)] == [bad.id]
    assert (await world.claim()).total == 0


@pytest.mark.parametrize("arg", ["", "x", "1,0", "1,-5", "1,2,3x", "1"])
async def test_an_interval_that_cannot_be_computed_stops_no_other_job(world: World, arg: str) -> None:
    bad, good = await world.put("bad", kind="e"), await world.put("good", kind="e")
    value = bad.record._replace(head=bad.record.head._replace(arg=arg)).pack()
    await world.client.hset(world.keys.jobs(bad.p), bad.id, value)
    assert (await world.claim(bad, good)).total == 1
    assert list((await world.snapshot())["runs"]) == [good.run.encode()]
    assert (await world.store.jobs.remove(bad.id)).tag == "ok"


@pytest.mark.parametrize("raw", GARBAGE)
async def test_claim_replaces_a_run_record_that_cannot_be_read(world: World, raw: bytes) -> None:
    job = await world.put("a")
    await world.client.hset(world.keys.runs, job.run, raw)
    assert (await world.claim(job)).total == 1
    got = await world.store.runs.get(job.run)
    assert got is not None
    assert got.state is RunState.QUEUED


@pytest.mark.parametrize("raw", GARBAGE)
async def test_fetch_sets_a_bad_run_record_aside_and_gives_the_others(world: World, raw: bytes) -> None:
    bad, good = await world.queued("a"), await world.queued("b")
    await world.client.hset(world.keys.runs, bad.run, raw)
    assert [r.run for r in (await world.fetch()).runs] == [good.run]
    assert not await world.client.hexists(world.keys.runs, bad.run)
    assert await world.client.hget(world.keys.quarantine, bad.run) == raw


@pytest.mark.parametrize("raw", [*GARBAGE, None, b"body"])
async def test_fetch_gives_the_other_runs_where_one_jobs_definition_is_bad(world: World, raw: bytes | None) -> None:
    bad, good = await world.queued("a"), await world.queued("b")
    if raw is None:
        await world.client.hdel(world.keys.jobs(bad.p), bad.id)
    else:
        value = bad.record.head.pack().encode() + b"\nno msgpack" if raw == b"body" else raw
        await world.client.hset(world.keys.jobs(bad.p), bad.id, value)
    assert [r.run for r in (await world.fetch()).runs] == [good.run]


async def test_fetch_needs_no_group_of_a_stream(world: World) -> None:
    jobs = [await world.queued(n) for n in "abc"]
    stream = world.keys.queue(jobs[0].record.head.queue_key)
    await world.client.xgroup_destroy(stream, "workers")
    given = [r.run for _ in range(3) for r in (await world.fetch(1)).runs]
    assert sorted(given) == sorted(j.run for j in jobs)


@pytest.mark.parametrize("member", ["", "x", "|", "run|", "run|queue_key", "run|a:b", "run|a:b:c:d", "|a:b:1"])
async def test_release_sets_a_member_without_a_queue_key_aside(world: World, member: str) -> None:
    job = await world.put("a")
    await world.claim(job)
    await world.client.zadd(world.keys.staged, {member: 1})
    assert (await world.store.runs.release(limit=10)).total == 1
    after = await world.snapshot()
    assert "staged" not in after
    assert list(after["quarantine"]) == [member.encode()]
    assert [r.run for r in (await world.fetch()).runs] == [job.run]


@pytest.mark.parametrize("raw", GARBAGE)
async def test_verbs_on_an_attempt_with_a_bad_record_answer_missing_and_do_the_rest(world: World, raw: bytes) -> None:
    _, bad = await world.running("a")
    _, good = await world.running("b")
    await world.client.hset(world.keys.runs, bad.run, raw)
    both = [(bad.run, bad.fence), (good.run, good.fence)]
    assert (await world.store.runs.renew(W, lease_ms=60_000, items=both)).tags == ["missing", "ok"]
    items = [FinishItem(r, f, RunState.SUCCEEDED, 0, 0, "") for r, f in both]
    assert (await world.store.runs.cancel(bad.run)).tag == "missing"
    await world.client.zadd(world.keys.leases, {bad.run: 1})
    ((expired,), _) = await world.store.runs.expired_leases(after_ms=0, limit=10)
    assert (expired.record, expired.job is not None) == (None, True)
    assert await world.store.runs.requeue(W, both[:1]) == ["missing"]
    assert await world.store.runs.finish(W, request=50, items=items) == ["missing", "ok"]
    assert await world.store.runs.reap([ReapItem(bad.run, bad.fence, "D", 0)], after_ms=0) == ["missing"]
    assert await world.client.zcard(world.keys.leases) == 0


@pytest.mark.parametrize("record", [*GARBAGE, b"1|Q|1|nolane|1|0|0||1|1|0|"])
async def test_an_recovery_quarantines_what_cannot_be_staged_and_goes_on(world: World, record: bytes) -> None:
    good = await world.queued("a")
    await world.client.hset(world.keys.runs, "j_0000000000000:1", record)
    await world.open(2)
    assert (await world.store.runs.release(limit=10)).total == 1
    assert [r.run for r in (await world.fetch()).runs] == [good.run]
    assert await world.client.hkeys(world.keys.quarantine) == [b"j_0000000000000:1"]


@pytest.mark.parametrize("raw", GARBAGE)
async def test_verbs_on_a_job_that_cannot_be_read_change_nothing(world: World, raw: bytes) -> None:
    job = await world.put("a", kind="e")
    await world.client.hset(world.keys.jobs(job.p), job.id, raw)
    before = await world.snapshot()
    s = world.store
    assert [(await s.jobs.pause(job.id)).tag, (await s.jobs.remove(job.id)).tag] == ["missing"] * 2
    assert (await s.jobs.resume(job.id, expect=1, due=1)).tag == "missing"
    assert (await s.jobs.trigger(job.id, suffix="aaaa", repeat_key="k")).tag == "missing"
    assert await s.runs.resolve_misfires([MisfireItem(job.id, 1, job.due, None, None, 0, 0, 0, None)]) == ["stale"]
    assert (await s.jobs.invalidate(job.id, schedule_version=1)).tag == "stale"
    with pytest.raises(ResponseError):
        await s.jobs.put([PutItem(job.id, 0, 1, job.record.pack()), PutItem(job.id, 0, 1, raw)], atomic=False)
    assert await world.snapshot() == before


KEYS = ["due", "heads", "jobs", "runs", "staged", "retries", "leases", "owners", "schedulers", "workers", "requests",
        "finishes", "triggers", "quarantine", "fence", "journal", "definitions", "catchup", "ready", "virtual",
        "queue", "body", "active", "payloads", "calendars", "pauses", "paces", "restore"]  # fmt: skip
VERBS = ["put", "claim", "resolve_misfires", "release", "fetch", "finish", "requeue", "renew", "reap", "cancel", "cancel_queued",
         "trigger", "pause", "remove", "invalidate", "acquire_partitions", "resume", "catch_up", "cache_occurrences",
         "forget", "expired_leases",
         "adopt", "begin_recovery", "restage", "restore_jobs", "restore_runs", "restore_entries", "finish_recovery", "backfill",
         "put_calendar", "cancel_waiting", "close", "restore_dues", "report_restore", "restore_triggers"]  # fmt: skip
WHILE_RECOVERING = ("restage", "restore_jobs", "restore_dues", "restore_runs", "restore_entries", "restore_triggers",
           "report_restore", "finish_recovery")  # fmt: skip


class Given(NamedTuple):
    """What a verb is called with: an active, a late and a paused job; a run of each kind; a catch-up range."""

    job: Job
    late: Job
    paused: Job
    run: FetchedRun
    queued: RunId
    waiting: RunId
    expected: CatchupRange


async def call(world: World, verb: str, given: Given) -> Any:
    s = world.store
    job, late, paused, run, queued, waiting, expected = given
    return await {
        "put": lambda: s.jobs.put([PutItem(job.id, 1, 5, job.record.pack())], atomic=True),
        "claim": lambda: world.claim(),
        "resolve_misfires": lambda: s.runs.resolve_misfires(
            [MisfireItem(late.id, 1, late.due, late.due + 10**6, late.due, 1, 2, 2, (late.due, late.due))]
        ),
        "release": lambda: s.runs.release(limit=10),
        "fetch": lambda: world.fetch(),
        "finish": lambda: world.finish(run, RunState.RETRYING),
        "requeue": lambda: s.runs.requeue(W, [(run.run, run.fence)]),
        "renew": lambda: s.runs.renew(W, lease_ms=99_000, items=[(run.run, run.fence)]),
        "reap": lambda: s.runs.reap([ReapItem(run.run, run.fence, "T", 0)], after_ms=-(10**6)),
        "cancel": lambda: s.runs.cancel(run.run),
        "cancel_queued": lambda: s.runs.cancel(queued),
        "cancel_waiting": lambda: s.runs.cancel(waiting),
        "trigger": lambda: s.jobs.trigger(job.id, suffix="aaaa", repeat_key="k", payload=b"\xc0"),
        "backfill": lambda: s.jobs.backfill(job.id, schedule_version=1, ranges=[(1, 2)]),
        "put_calendar": lambda: s.calendars.put("default", "n", expect=0, entries=["2026-12-25"]),
        "restore_entries": lambda: s.restore.put_catchup_ranges([expected._replace(made_at=7)]),
        "restore_triggers": lambda: s.restore.put_triggers([(job.id, "k", 5)], generation=2),
        "pause": lambda: s.jobs.pause(job.id),
        "remove": lambda: s.jobs.remove(job.id),
        "invalidate": lambda: s.jobs.invalidate(job.id, schedule_version=1),
        "acquire_partitions": lambda: s.partitions.acquire("s", lease_ms=1000, take=[1]),
        "resume": lambda: s.jobs.resume(
            paused.id, expect=2, due=paused.due + 10**6, missed=MisfireOutcome(SkippedRange(1, 1, 1), 1, (1, 1))
        ),
        "catch_up": lambda: s.catchup.enqueue(
            expected, occurrences=[expected.start], rest=expected._replace(start=expected.end), pace_ms=1, most=9
        ),
        "cache_occurrences": lambda: s.partitions.cache_occurrences("SID", after=1, occurrences=[2, 3], ended=True),
        "forget": lambda: s.jobs.forget([(job.id, 1)]),
        "expired_leases": lambda: s.runs.expired_leases(after_ms=-(10**6), limit=10),
        "adopt": lambda: s.runs.adopt(W, lease_ms=1000, queues=["default"], items=[(run.run, 1, run.fence + 1)]),
        "begin_recovery": lambda: s.recovery.begin(3, fence=1),
        "close": s.recovery.close,
        "restage": lambda: s.recovery.restage(0, lease_ms=1000),
        "restore_jobs": lambda: s.restore.put_jobs([(job.id, job.due, newer(job))]),
        "restore_runs": lambda: s.restore.put_runs(
            [(queued, "1|R|99999999|default:default:1|1|1|5|w|1|1|1|")], lease_ms=9
        ),
        "restore_dues": lambda: s.restore.move_due_times([(job.id, 1, job.due, job.due + 60_000)]),
        "report_restore": lambda: s.restore.set_progress(RestoreProgress("jobs", 2, 0, 1, 0, 1)),
        "finish_recovery": lambda: s.recovery.finish(recovery_grace_ms=1000),
    }[verb]()


def newer(job: Job) -> bytes:
    return job.record._replace(head=job.record.head._replace(version=2)).pack()


@pytest.mark.parametrize("verb", VERBS)
async def test_a_key_of_a_wrong_type_makes_a_verb_change_nothing_or_does_not_concern_it(
    world: World, verb: str
) -> None:
    async def arrange() -> Given:
        async for key in world.client.scan_iter(match=f"{world.keys.prefix}:*", count=1000):
            await world.client.delete(key)
        await world.open()
        # Its runs wait for one another; the second one does now.
        looped, run = await world.running("r", kind="e", every=1000, overlap="w", due_in=-1000)
        await world.claim(looped)
        await world.store.runs.release(limit=10)
        waiting = run_id_of(looped.id, looped.due + 1000)
        queued = await world.queued("q")
        staged = await world.put("s")
        await world.claim(staged)
        job = await world.put("a", kind="e")
        late = await world.put("l", kind="e", due_in=-100_000)
        paused = await world.put("p", kind="e", due_in=60_000)
        await world.store.jobs.pause(paused.id)
        ranged = await world.put("c", kind="e", due_in=-300_000)
        item = MisfireItem(
            ranged.id, 1, ranged.due, ranged.due + 600_000, None, 0, 0, 0, (ranged.due, ranged.due + 120_000)
        )
        await world.store.runs.resolve_misfires([item])
        (expected,) = await world.store.catchup.list_due(limit=10)
        if verb in WHILE_RECOVERING:
            assert await world.store.recovery.begin(2, fence=1)
        return Given(
            job=job,
            late=late,
            paused=paused,
            run=run,
            queued=queued.run,
            waiting=waiting,
            expected=expected,
        )

    for name in KEYS:
        given = await arrange()
        key = getattr(world.keys, name)
        p = {"resolve_misfires": given.late, "resume": given.paused}.get(verb, given.job).p
        part = {
            "active": given.run.run[:15],
            "due": p,
            "jobs": p,
            "body": p,
            "ready": "default",
            "virtual": "default",
            "queue": "default:default:1",
        }
        key = key(part[name]) if name in part else key
        await world.client.delete(key)
        await world.client.sadd(key, "wrong")
        before = await world.snapshot()
        try:
            await call(world, verb, given)
        except (ResponseError, Unavailable):
            assert await world.snapshot() == before, f"{verb} left a half where {name} is of a wrong type"
