from __future__ import annotations

import asyncio
import itertools
import random
from collections.abc import Awaitable, Callable
from typing import Any

import psycopg
import pytest

from rsched.core.errors import Unavailable
from rsched.core.ids import JobId, RunId
from rsched.core.jobs.packed import Event, SkipEvent, WatermarkEvent, WorkerEvent
from rsched.core.states import JobState, RunState
from rsched.ledger import Ledger
from rsched.ledger.keys import claimed_on
from rsched.ledger.write.quarantine import NO_DETAIL
from rsched.runtime.clock import SystemClock
from tests.ledger.events import T0, job, job_id, run

Q, R, T, S, D = RunState.QUEUED, RunState.RUNNING, RunState.RETRYING, RunState.SUCCEEDED, RunState.DEAD
RUN = f"{job_id()}:{T0}"


def ledger_test(url: str, body: Callable[[Ledger], Awaitable[None]]) -> None:
    async def main() -> None:
        async with Ledger(url, pool_max=4, clock=SystemClock()) as ledger:
            await body(ledger)

    asyncio.run(main())


async def record(ledger: Ledger, events: list[Event], *, expected: str = "0-0", new: str = "1-0") -> bool:
    return await ledger.write.record("s0", stream="journal", expected=expected, new=new, events=events)


LIFE = [
    run(),
    run(state=R, revision=2, attempt=1, fence=7, started_at=T0 + 5, worker="w1"),
    run(state=T, revision=3, attempt=1, fence=7, started_at=T0 + 6, worker="w1", at=T0 + 50, detail="boom"),
    run(state=R, revision=4, attempt=2, fence=9, started_at=T0 + 900, worker="w2"),
    run(state=S, revision=5, attempt=2, fence=9, started_at=T0 + 901, worker="w2", at=T0 + 1000),
]


@pytest.mark.parametrize("seed", range(4))
def test_events_of_a_run_make_one_row_in_any_order_of_arrival(database_url: str, seed: int) -> None:
    async def body(ledger: Ledger) -> None:
        events = list(LIFE)
        random.Random(seed).shuffle(events)
        cut = seed % 4 + 1
        assert await record(ledger, list(events[:cut]))
        assert await record(ledger, list(events[cut:]), expected="1-0", new="1-1")
        found = await ledger.runs.get(RUN)
        assert found is not None
        assert found.record == LIFE[-1].record
        assert (found.ended_at, found.error, found.record.lateness_ms, found.duration_ms) == (T0 + 1000, None, 901, 99)
        assert [(a.attempt, a.state, a.error, a.worker) for a in found.attempts] == [
            (1, T, "boom", "w1"),
            (2, S, None, "w2"),
        ]

    ledger_test(database_url, body)


def test_a_batch_is_recorded_once(database_url: str) -> None:
    async def body(ledger: Ledger) -> None:
        assert await ledger.write.position("s0", "journal") == "0-0"
        assert await record(ledger, [run()], new="1-4")
        assert not await record(ledger, [run(T0 + 1)], new="1-4")
        assert await ledger.write.position("s0", "journal") == "1-4"
        assert await ledger.runs.get(f"{job_id()}:{T0 + 1}") is None

    ledger_test(database_url, body)


def test_of_two_recorders_at_one_position_one_wins(database_url: str) -> None:
    async def body(ledger: Ledger) -> None:
        async with Ledger(database_url, clock=SystemClock()) as other:
            won = await asyncio.gather(*(record(x, [run()], new=f"1-{i}") for i, x in enumerate((ledger, other))))
        assert sorted(won) == [False, True]

    ledger_test(database_url, body)


def test_an_old_fence_does_not_overwrite_a_newer_one(database_url: str) -> None:
    async def body(ledger: Ledger) -> None:
        assert await record(ledger, [LIFE[3]])
        late = run(state=S, revision=99, attempt=1, fence=7, at=T0)
        assert await record(ledger, [late], expected="1-0", new="1-1")
        found = await ledger.runs.get(RUN)
        assert found is not None
        assert found.record == LIFE[3].record

    ledger_test(database_url, body)


def test_a_run_requeued_leaves_no_attempt(database_url: str) -> None:
    async def body(ledger: Ledger) -> None:
        back = run(state=T, revision=5, attempt=1, fence=9, at=T0, detail="requeued")
        assert await record(ledger, [*LIFE[:4], back])
        found = await ledger.runs.get(RUN)
        assert found is not None
        assert [(a.attempt, a.error) for a in found.attempts] == [(1, "boom")]
        first = run(T0 + 1, state=Q, revision=3, attempt=0, fence=3, at=T0, detail="requeued")
        assert await record(ledger, [first], expected="1-0", new="1-1")
        found = await ledger.runs.get(first.run)
        assert found is not None
        assert (found.attempts, found.error) == ((), None)

    ledger_test(database_url, body)


def test_a_dead_run_is_a_dead_letter_with_all_its_attempts(database_url: str) -> None:
    async def body(ledger: Ledger) -> None:
        dead = run(state=D, revision=5, attempt=2, fence=9, started_at=T0 + 901, at=T0 + 1000, detail="again")
        assert await record(ledger, [*LIFE[:4], dead])
        items, cursor = await ledger.runs.dead_letters(team="default")
        assert [(i.run_id, i.error, cursor) for i in items] == [(RUN, "again", None)]
        assert (await ledger.runs.dead_letters(team="other"))[0] == []
        found = await ledger.runs.get(RUN)
        assert found is not None
        assert [(a.attempt, a.state, a.error) for a in found.attempts] == [(1, T, "boom"), (2, D, "again")]

    ledger_test(database_url, body)


def test_what_postgres_refuses_is_quarantined_and_the_rest_recorded(
    database_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def body(ledger: Ledger) -> None:
        good: list[Event] = [run(T0 + i) for i in range(300)]
        bad: list[Event] = [
            run(T0 + 1001, revision=2**70),
            run(T0 + 1003, claimed_at=10**17),
            job("bad", tags=["a\0b"]),
            job("other")._replace(value=b"nonsense"),
            run(T0 + 1004)._replace(run="no id"),
        ]
        events = good + bad
        random.Random(1).shuffle(events)
        assert await record(ledger, [*events, job()])
        assert await ledger.write.position("s0", "journal") == "1-0"
        items, _ = await ledger.runs.list(job_id(), limit=1000)
        assert len(items) == 300
        assert await ledger.jobs.get(job_id()) is not None

    ledger_test(database_url, body)
    with psycopg.connect(database_url) as c:
        assert c.execute("SELECT count(*) FROM quarantine WHERE reason <> ''").fetchone() == (5,)
    assert len([r for r in caplog.records if r.levelname == "ERROR"]) == 5


UNRECORDABLE = ["bad \0 text", "half a pair \ud800", "\0", "\udfff\0ü"]


@pytest.mark.parametrize("text", UNRECORDABLE, ids=ascii)
@pytest.mark.parametrize("state", [T, D, RunState.CANCELLED, RunState.SKIPPED], ids=str)
def test_no_text_of_an_error_keeps_an_end_from_being_recorded(database_url: str, text: str, state: RunState) -> None:
    async def body(ledger: Ledger) -> None:
        end = run(state=state, revision=3, attempt=1, fence=7, worker=f"w{text}", detail=f"said: {text}")
        assert await record(ledger, [*LIFE[:2], end])
        found = await ledger.runs.get(RUN)
        assert found is not None
        assert (found.record.state, found.record.revision) == (state, 3)
        shown = text.replace("\0", "\\0").replace("\ud800", "\\ud800").replace("\udfff", "\\udfff")
        assert (found.error, found.record.worker) == (f"said: {shown}", f"w{shown}")
        if state in (T, D):
            assert [(a.attempt, a.error) for a in found.attempts] == [(1, f"said: {shown}")]
        assert await ledger.database.rows("SELECT * FROM quarantine", ()) == []

    ledger_test(database_url, body)


REFUSING = "ALTER TABLE {} ADD CHECK (error NOT LIKE 'refuse%%')"


@pytest.mark.parametrize(
    "tables", [("finished_runs", "unfinished_runs"), ("failed_attempts",)], ids=["runs", "attempts"]
)
@pytest.mark.parametrize("state", [T, D], ids=str)
def test_an_end_that_is_refused_for_its_text_is_recorded_without_it(
    database_url: str, tables: tuple[str, ...], state: RunState
) -> None:
    async def body(ledger: Ledger) -> None:
        for table in tables:
            await ledger.database.execute(REFUSING.format(table), ())
        end = run(state=state, revision=3, attempt=1, fence=7, detail="refuse me")
        assert await record(ledger, [*LIFE[:2], end, *(run(T0 + i) for i in range(1, 50))])
        found = await ledger.runs.get(RUN)
        assert found is not None
        assert (found.record.state, found.error) == (state, NO_DETAIL)
        assert [(a.attempt, a.error) for a in found.attempts] == [(1, NO_DETAIL)]
        assert len((await ledger.runs.list(job_id(), limit=100))[0]) == 50
        (aside,) = await ledger.database.rows("SELECT kind, key, raw FROM quarantine", ())
        assert aside[:2] == ("run", RUN)
        assert b"refuse me" in aside[2]
        assert await ledger.quarantine.refused_ends([(found.run_id, found.record)]) == {}

    ledger_test(database_url, body)


def test_an_end_that_is_refused_whatever_it_says_is_quarantined_once_and_known_as_the_runs_end(
    database_url: str,
) -> None:
    async def body(ledger: Ledger) -> None:
        await ledger.database.execute("ALTER TABLE finished_runs ADD CHECK (status <> 'DEAD')", ())
        end = run(state=D, revision=3, attempt=1, fence=7, detail="line one\nline two")
        other = run(T0 + 1, state=R, revision=2, attempt=1, fence=8)
        no_end = run(T0 + 1, state=R, revision=2**70, attempt=1, fence=8)
        assert await record(ledger, [*LIFE[:2], end, run(T0 + 1), other])
        assert await record(ledger, [no_end], expected="1-0", new="1-1")
        assert await ledger.database.rows("SELECT key FROM quarantine ORDER BY id", ()) == [(RUN,), (other.run,)]
        assert ledger.write.quarantined("s0", "journal") == 2
        found = await ledger.recovery.compare.runs([RUN, other.run])
        assert {r.state for r in found.values()} == {R}
        assert await ledger.quarantine.refused_ends(list(found.items())) == {RUN: end.record}
        later = [(RunId(RUN), end.record._replace(state=R, revision=4))]
        assert await ledger.quarantine.refused_ends(later) == {}
        assert await ledger.quarantine.refused_ends([]) == {}

    ledger_test(database_url, body)


def test_jobs_keep_the_greatest_version_and_a_deleted_one_its_definition(database_url: str) -> None:
    versions = [
        job(version=1),
        job(version=2, tags=["a"]),
        job(version=2, state=JobState.COMPLETED, tags=["a"]),
        job(version=3, state=JobState.DELETED),
    ]

    async def body(ledger: Ledger) -> None:
        positions = itertools.pairwise(["0-0", *(f"1-{i}" for i in range(100))])
        for order in ([0, 1, 2, 3], [1, 0, 3], [0, 3, 2]):
            for i in order:
                expected, new = next(positions)
                assert await record(ledger, [versions[i]], expected=expected, new=new)
            found = await ledger.jobs.last_incarnation("default", "nightly")
            assert found is not None
            assert found.deleted
            assert (found.head.version, found.definition.name) == (3, "nightly")
        assert (await ledger.jobs.list())[0] == []
        assert len((await ledger.jobs.list(state=JobState.DELETED))[0]) == 1
        expected, new = next(positions)
        both: list[Event] = [job("x"), job("x", version=2, state=JobState.DELETED)]
        assert await record(ledger, both, expected=expected, new=new)
        found = await ledger.jobs.get(job_id("x"))
        assert found is not None
        assert (found.deleted, found.definition.name) == (True, "x")

    ledger_test(database_url, body)


def test_skips_watermarks_and_workers_are_kept(database_url: str) -> None:
    async def body(ledger: Ledger) -> None:
        events: list[Event] = [
            SkipEvent(job_id(), T0, T0 + 9, 3, "misfire", T0),
            WatermarkEvent(5, 100),
            WatermarkEvent(5, 90),
            WorkerEvent("w1", "default", T0),
        ]
        assert await record(ledger, events)
        assert await record(ledger, [WatermarkEvent(5, 95)], expected="1-0", new="1-1")
        assert await ledger.recovery.generations.watermarks("s0") == {5: 100}
        assert [s.total for s in await ledger.skips.latest(JobId(job_id()))] == [3]

    ledger_test(database_url, body)


def test_one_recorder_holds_a_shard(database_url: str) -> None:
    async def body(ledger: Ledger) -> None:
        assert not await ledger.recovery.generations.recorder_alive("s0")
        async with (
            ledger.recovery.generations.acquire_recorder("s0") as first,
            ledger.recovery.generations.acquire_recorder("s0") as second,
        ):
            assert first is not None
            assert second is None
            assert await ledger.recovery.generations.recorder_alive("s0")
            async with ledger.recovery.generations.acquire_recorder("s1") as other:
                assert other is not None
        # Postgres frees the lock when its backend has ended, a moment after the connection was closed.
        async with asyncio.timeout(5):
            while await ledger.recovery.generations.recorder_alive("s0"):
                pass

    ledger_test(database_url, body)


def test_completed_jobs_are_forgotten_once(database_url: str) -> None:
    async def body(ledger: Ledger) -> None:
        assert await record(ledger, [job(state=JobState.COMPLETED), job("live")])
        later = SystemClock().wall_ms() + 1000
        assert await ledger.recovery.unfinished.forgettable("s0", before_ms=later - 10_000, limit=5) == []
        items = await ledger.recovery.unfinished.forgettable("s0", before_ms=later, limit=5)
        assert items == [(job_id(), 1)]
        await ledger.recovery.unfinished.mark_forgotten(items)
        assert await ledger.recovery.unfinished.forgettable("s0", before_ms=later, limit=5) == []
        assert [j.job_id for j in await ledger.recovery.pages.jobs_after("s0", after="", limit=9)] == [job_id("live")]

    ledger_test(database_url, body)


@pytest.mark.parametrize("done", [True, False])
def test_after_an_unknown_commit_the_position_tells(
    database_url: str, monkeypatch: pytest.MonkeyPatch, done: bool
) -> None:
    async def body(ledger: Ledger) -> None:
        transact = ledger.write._transact

        async def cut_off(*args: Any, **kwargs: Any) -> None:
            if done:
                await transact(*args, **kwargs)
            raise Unavailable("the connection broke during COMMIT")

        monkeypatch.setattr(ledger.write, "_transact", cut_off)
        if done:
            assert await record(ledger, [run()])
        else:
            with pytest.raises(Unavailable):
                await record(ledger, [run()])
        assert (await ledger.runs.get(RUN) is not None) is done

    ledger_test(database_url, body)


def test_a_postgres_that_was_put_back_with_fewer_days_takes_them_all_the_same(database_url: str) -> None:
    async def body(ledger: Ledger) -> None:
        await ledger.write.make_partitions_ahead()
        assert await record(ledger, [run(T0, state=S)])
        tables = (
            "SELECT relname FROM pg_class WHERE relname ~ '^(finished_runs|failed_attempts)_[0-9]{8}$'"
            " AND relkind = 'r' ORDER BY 1"
        )
        before = await ledger.database.rows(tables, ())
        # As the backup has it. This process has seen them all.
        for (table,) in before:
            await ledger.database.execute(f"DROP TABLE {table}", ())
        assert await record(ledger, [run(T0 + 1, state=S)], expected="1-0", new="1-1")
        assert await ledger.runs.get(f"{RUN.partition(':')[0]}:{T0 + 1}") is not None
        # The day of what was recorded without a table goes on without one.
        await ledger.write.make_partitions_ahead()
        assert await record(ledger, [run(T0 + 2)], expected="1-1", new="1-2")
        assert await ledger.runs.get(f"{RUN.partition(':')[0]}:{T0 + 2}") is not None
        assert await ledger.database.rows("SELECT * FROM quarantine", ()) == []
        day = f"finished_runs_{claimed_on(T0):%Y%m%d}"
        assert [t for t in before if t not in await ledger.database.rows(tables, ())] == [(day,)]

    ledger_test(database_url, body)
