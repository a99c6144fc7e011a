"""Postgres comes back from a backup: what ended since stays ended, and what Redis still has is on record again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest

from rsched.core.ids import JobId, RunId
from rsched.core.jobs.packed import RunEvent
from rsched.core.states import JobState, RunState
from rsched.recorder.reconcile.passes import Pass
from rsched.recorder.reconcile.reconciler import Reconciler
from rsched.recorder.reconcile.runs import RunParts
from rsched.recorder.resync.ended_in_gap import OUTCOME_UNKNOWN
from rsched.runtime.metrics import ALERTS
from tests.recorder.one_offs import (
    KINDS,
    brought_forward,
    emptied,
    fetched,
    finished,
    in_the_gap,
    of_every_kind,
    put_once,
    rows,
)
from tests.recorder.restored import Backup, backup, restore, without_tail, written_again
from tests.recorder.stepped_shard import CLOCK, HOUR, InShard, Shard


async def kept_open(s: Shard, url: str) -> tuple[RunId, Backup]:
    """A queued run, and a backup that has it."""
    run = await put_once(s, "a")
    await s.schedule()
    await s.record()
    return run, backup(url)


async def found_by_reconciler(s: Shard) -> tuple[Counter[str], int]:
    reconciler = Reconciler(s.store, s.ledger, shard=s.shard, clock=CLOCK, lease_ms=60_000)
    async with s.recording():
        found = await reconciler.run_pass()
    assert found is not None
    return found, reconciler.unsure


def test_what_ended_in_the_gap_is_closed_and_never_runs_again(shard: InShard, database_url: str) -> None:
    async def body(s: Shard) -> None:
        runs, active = await of_every_kind(s)
        kept = backup(database_url)
        before = await rows(s)
        ended = await in_the_gap(s, runs, active)
        assert {runs[f"{kind} 0"] for kind in KINDS} <= ended
        await s.record()
        new = await put_once(s, "made in the gap")
        await s.record()
        resync = await without_tail(s, database_url, kept)
        assert {run: r for run, r in (await rows(s)).items() if run in before} == before
        await written_again(s, resync)
        after = await rows(s)
        assert {run for run, row in after.items() if row == ("CANCELLED", OUTCOME_UNKNOWN)} == ended
        left = {run: r.state.value for run, r in (await s.store.resync.read_runs(cursor=0, count=100))[1]}
        assert {run: row[0] for run, row in after.items() if run not in ended} == left
        # Of what is in the ledger nothing comes back, from the reconciler or after a loss of Redis.
        assert await s.reconcile() == {}
        for run in active.values():
            await finished(s, run)
        await s.record()
        await emptied(s)
        for kind in ("retrying", "staged"):
            await brought_forward(s, runs[f"{kind} 2"])
        await s.drain()
        over = {run.run for run in active.values()}
        assert set(s.done) == {new, *runs.values()} - ended - over
        assert set(s.done.values()) == {1}

    shard(body)


def test_while_the_gap_is_not_repaired_nothing_is_brought_back_from_the_ledger(
    shard: InShard, database_url: str
) -> None:
    async def body(s: Shard) -> None:
        ended, goes_on, lost = [await put_once(s, name) for name in ("ended", "goes on", "lost by hand")]
        forgotten = await put_once(s, "forgotten", due_in=HOUR)
        await s.schedule()
        await s.record()
        kept = backup(database_url)
        await finished(s, (await fetched(s))[ended])
        job = JobId(forgotten[:15])
        assert (await s.store.jobs.remove(job)).tag == "ok"
        await s.record()
        assert await s.store.jobs.forget([(job, 2)]) == 1
        resync = await without_tail(s, database_url, kept)
        await s.redis.hdel(s.keys.runs, lost)
        before = await s.redis.hgetall(s.keys.runs)
        found, unsure = await found_by_reconciler(s)
        assert found["run_missing"] == found["job_missing"] == 0
        assert unsure >= 2
        assert await s.redis.hgetall(s.keys.runs) == before
        assert await s.store.jobs.get(job) is None
        await written_again(s, resync)
        found, unsure = await found_by_reconciler(s)
        assert (found, unsure) == (Counter(), 0)
        assert RunId(goes_on) in {run for run, _ in (await s.store.resync.read_runs(cursor=0, count=9))[1]}

    shard(body)


def test_a_postgres_that_falls_back_while_the_reconciler_asks_it_is_not_believed(
    shard: InShard, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def body(s: Shard) -> None:
        run, kept = await kept_open(s, database_url)
        await finished(s, (await fetched(s))[run])
        newest, position = s.ledger.recovery.compare.runs, s.ledger.write.position

        async def recorded_meanwhile(*asked: str) -> str:
            monkeypatch.setattr(s.ledger.write, "position", position)
            await s.record()
            # The open runs are listed by then: what is asked next is whether they still are.
            monkeypatch.setattr(s.ledger.recovery.compare, "runs", fallen_back)
            return await position(*asked)

        async def fallen_back(asked: Sequence[str], **since: int) -> Any:
            monkeypatch.setattr(s.ledger.recovery.compare, "runs", newest)
            monkeypatch.setattr("rsched.recorder.reconcile.passes._PATIENCE_MS", 0)
            restore(database_url, kept)
            return await newest(asked, **since)

        monkeypatch.setattr(s.ledger.write, "position", recorded_meanwhile)
        look = Pass(
            s.store, s.ledger, shard=s.shard, clock=CLOCK, lease_ms=60_000, count=lambda kind, n: None, write=True
        )
        async for _ in RunParts(look).missing():
            pass
        assert (look.found, look.unsure) == (Counter(), 1)
        assert await s.redis.hlen(s.keys.runs) == 0

    shard(body)


def test_it_ends_though_nothing_new_comes_that_would_take_the_recorder_past_the_gap(
    shard: InShard, database_url: str
) -> None:
    async def body(s: Shard) -> None:
        run, kept = await kept_open(s, database_url)
        await finished(s, (await fetched(s))[run])
        await s.record()
        await written_again(s, await without_tail(s, database_url, kept, quiet=True))
        assert (await rows(s))[run] == ("CANCELLED", OUTCOME_UNKNOWN)

    shard(body)


def test_a_record_that_is_truly_later_wins_over_the_closing(shard: InShard, database_url: str) -> None:
    async def body(s: Shard) -> None:
        run, kept = await kept_open(s, database_url)
        (attempt,) = (await fetched(s)).values()
        record = (await s.store.resync.read_runs(cursor=0, count=9))[1][0][1]
        await finished(s, attempt)
        await written_again(s, await without_tail(s, database_url, kept))
        assert (await rows(s))[run] == ("CANCELLED", OUTCOME_UNKNOWN)
        end = RunEvent(
            run, record._replace(state=RunState.DEAD, revision=record.revision + 1), await s.store.clock.read(), "boom"
        )
        await s.ledger.write.resync(s.shard, [end])
        assert (await rows(s))[run] == ("DEAD", "boom")

    shard(body)


def test_jobs_that_ended_and_were_forgotten_in_the_gap_do_not_come_back(shard: InShard, database_url: str) -> None:
    async def body(s: Shard) -> None:
        once = await put_once(s, "once", due_in=2000)
        removed = await s.put("removed", due_in=HOUR, every=2 * HOUR)
        stays = await s.put("stays", due_in=HOUR, every=2 * HOUR)
        await s.record()
        kept = backup(database_url)
        await s.world.claim()
        await brought_forward(s, once)
        await s.store.runs.release(limit=10)
        assert await s.work() == [once]
        assert (await s.store.jobs.remove(removed)).tag == "ok"
        await s.record()
        assert await s.store.jobs.forget([(JobId(once[:15]), 1), (removed, 2)]) == 2
        await written_again(s, await without_tail(s, database_url, kept))
        known = await s.ledger.recovery.compare.jobs([once[:15], removed, stays])
        assert {j: k.state for j, k in known.items()} == {
            once[:15]: JobState.COMPLETED, removed: JobState.COMPLETED, stays: JobState.ACTIVE,
        }  # fmt: skip
        assert await s.reconcile() == {}
        await emptied(s)
        assert await s.store.jobs.get_due_times([JobId(once[:15]), removed, stays]) == {
            stays: (await s.store.jobs.get_due_times([stays]))[stays]
        }
        await s.drain()
        assert s.done == {once: 1}

    shard(body)


def test_a_gap_is_said_and_what_was_closed_is_counted(
    shard: InShard, database_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def body(s: Shard) -> None:
        run, kept = await kept_open(s, database_url)
        await finished(s, (await fetched(s))[run])
        await written_again(s, await without_tail(s, database_url, kept))
        assert s.store.connection.metrics.number(ALERTS).child("journal_gap").value >= 1

    shard(body)
    (said,) = [r for r in caplog.records if "its outcome unknown" in r.getMessage()]
    assert said.levelname == "ERROR"
    assert said.fields == {"shard": "s0", "runs": 1}  # type: ignore[attr-defined]
