"""Open runs are found among those claimed since a mark and the unfinished_runs from before it, whatever happens meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import date
from pathlib import Path

import psycopg
import pytest

from rsched.core.jobs.packed import Event
from rsched.core.states import JobState, RunState
from rsched.ledger import Ledger, migrate
from rsched.ledger import unfinished_index as unfinished_runs
from rsched.ledger import writer as writers
from rsched.ledger.databases import drop_database, ensure_database, with_database
from rsched.ledger.migrate import migrations
from rsched.ledger.recovery.unfinished_runs import FIRST
from rsched.ledger.recovery.unfinished_runs import next_width, open_within
from rsched.runtime import faults
from tests.ledger.events import T0, WallClock, job, job_id, run

Q, R, T, S, D = RunState.QUEUED, RunState.RUNNING, RunState.RETRYING, RunState.SUCCEEDED, RunState.DEAD
SECOND, HOUR, DAY = 1000, 3_600_000, 86_400_000


class Crash(Exception):
    pass


def ledger_test(url: str, body: Callable[[Ledger], Awaitable[None]], *, now: int = T0) -> None:
    async def main() -> None:
        async with Ledger(url, pool_max=6, clock=WallClock(now)) as ledger:
            await body(ledger)

    asyncio.run(main())


async def open_ids(ledger: Ledger, *, limit: int = 100) -> list[str]:
    """Each once, whether or not they came in several pages."""
    found: set[str] = set()
    async for page in ledger.recovery.unfinished.pages("s0", limit=limit):
        assert 0 < len(page) <= limit
        assert not [run for run, r in page if r.state.final]
        found.update(run for run, _ in page)
    return sorted(found)


async def record(ledger: Ledger, events: list[Event], *, n: int = 0) -> None:
    expected = "0-0" if n == 0 else f"1-{n - 1}"
    assert await ledger.write.record("s0", stream="journal", expected=expected, new=f"1-{n}", events=events)


async def list_all(ledger: Ledger, *, up_to: int, width_ms: int = HOUR) -> None:
    while await ledger.index_unfinished_runs("s0", up_to=up_to, width_ms=width_ms):
        pass


async def drop_all(ledger: Ledger) -> int:
    key, dropped = FIRST, 0
    while True:
        found = await ledger.drop_ended("s0", after=key, limit=3)
        key, dropped = found.after, dropped + found.dropped
        if key == FIRST:
            return dropped


def asked(url: str, query: str) -> list[tuple[object, ...]]:
    with psycopg.connect(url) as c:
        return c.execute(query.encode()).fetchall()


def naive(url: str) -> list[str]:
    newest = "SELECT DISTINCT ON (run_id) run_id, state FROM runs ORDER BY run_id, fence DESC, revision DESC"
    states = ", ".join(f"'{s.value}'" for s in RunState if not s.final)
    return [str(r[0]) for r in asked(url, f"SELECT run_id FROM ({newest}) r WHERE state IN ({states}) ORDER BY run_id")]


def test_the_mark_waits_for_a_transaction_that_is_recording(database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def body(ledger: Ledger) -> None:
        await record(ledger, [run(T0)])
        await list_all(ledger, up_to=T0)
        reached, go_on = asyncio.Event(), asyncio.Event()
        write = writers.write

        async def slow(*args: object, **kwargs: object) -> int:
            claimed_to = await write(*args, **kwargs)  # type: ignore[arg-type]
            reached.set()
            await go_on.wait()
            return claimed_to

        with monkeypatch.context() as m:
            m.setattr(writers, "write", slow)
            recording = asyncio.ensure_future(record(ledger, [run(T0 + 5)], n=1))
            await reached.wait()
        assert not await ledger.index_unfinished_runs("s0", up_to=T0 + HOUR, width_ms=HOUR)
        go_on.set()
        await recording
        await list_all(ledger, up_to=T0 + HOUR)
        assert len(await open_ids(ledger)) == 2

    ledger_test(database_url, body)


def test_recording_goes_on_while_a_window_is_looked_through(database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def body(ledger: Ledger) -> None:
        await record(ledger, [run(T0 + n) for n in range(3)])

        def crash(name: str) -> None:
            if name == "housekeeping.before_listing":
                raise Crash

        with monkeypatch.context() as m:
            m.setattr(faults, "point", crash)
            for _ in range(3):
                with pytest.raises(Crash):
                    await ledger.index_unfinished_runs("s0", up_to=T0 + HOUR, width_ms=HOUR)
        async with asyncio.timeout(5):
            await record(ledger, [run(T0 + 9), run(T0, state=S, revision=5, fence=1)], n=1)
        assert len(await open_ids(ledger)) == 3
        await list_all(ledger, up_to=T0 + HOUR)
        assert len(await open_ids(ledger)) == 3

    ledger_test(database_url, body)


def test_what_is_recorded_while_a_window_is_looked_through_is_listed_by_whoever_records(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = "SELECT d, r FROM (SELECT current_date AS d, pg_advisory_lock_shared(42)::text AS r) AS gate WHERE r <> ''"

    async def body(ledger: Ledger) -> None:
        await record(ledger, [run(T0 + 1)])
        await list_all(ledger, up_to=T0)
        within = unfinished_runs.open_within

        async def gated(*args: object, **kwargs: object) -> tuple[str, list[object]]:
            query, params = await within(*args, **kwargs)  # type: ignore[arg-type]
            return f"{query} UNION ALL {gate}", list(params)

        monkeypatch.setattr(unfinished_runs, "open_within", gated)
        async with await psycopg.AsyncConnection.connect(database_url, autocommit=True) as c:
            await c.execute("SELECT pg_advisory_lock(42)")
            listing = asyncio.ensure_future(list_all(ledger, up_to=T0 + HOUR))
            waiting = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
            while asked(database_url, waiting) != [(1,)] and not listing.done():
                await asyncio.to_thread(asked, database_url, "SELECT pg_sleep(0.01)")
            await record(ledger, [run(T0 + 2)], n=1)
            await c.execute("SELECT pg_advisory_unlock(42)")
            await listing
        assert await open_ids(ledger) == naive(database_url)
        assert len(naive(database_url)) == 2

    ledger_test(database_url, body)


def test_a_run_that_opens_again_while_it_is_taken_out_stays(database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def body(ledger: Ledger) -> None:
        await record(ledger, [run(T0), run(T0 + 1)])
        await list_all(ledger, up_to=T0 + HOUR)
        await record(ledger, [run(T0 + n, state=D, revision=2, fence=1) for n in range(2)], n=1)
        drop = ledger._drop

        async def slow(*args: object) -> int:
            await record(ledger, [run(T0, revision=3, fence=1)], n=2)
            return await drop(*args)  # type: ignore[arg-type]

        monkeypatch.setattr(ledger, "_drop", slow)
        assert await drop_all(ledger) == 1
        assert await open_ids(ledger) == naive(database_url) == [f"{job_id()}:{T0}"]

    ledger_test(database_url, body)


def test_history_before_the_mark_is_not_looked_at(database_url: str) -> None:
    async def body(ledger: Ledger) -> None:
        await record(ledger, [run(T0), run(T0 + 1), run(T0 + HOUR), run(T0 + 2, state=S)])
        await list_all(ledger, up_to=T0 + 5)
        with psycopg.connect(database_url) as c:
            c.execute("DELETE FROM unfinished_runs WHERE run_id LIKE %s", (f"%:{T0 + 1}",))
        assert await open_ids(ledger) == [f"{job_id()}:{T0}", f"{job_id()}:{T0 + HOUR}"]

    ledger_test(database_url, body)


@pytest.mark.parametrize("up_to", [T0 + DAY - 1, T0 + DAY + HOUR], ids=["since the mark", "unfinished_run"])
def test_a_run_that_ended_when_claimed_again_by_a_clock_set_back_a_day_is_not_open(
    database_url: str, up_to: int
) -> None:
    async def body(ledger: Ledger) -> None:
        await record(ledger, [run(T0 + DAY)])
        await list_all(ledger, up_to=up_to)
        assert await open_ids(ledger) == [f"{job_id()}:{T0 + DAY}"]
        await record(ledger, [run(T0 + DAY, claimed_at=T0, state=S, revision=2, fence=1)], n=1)
        assert asked(database_url, "SELECT count(*) FROM runs") == [(2,)]
        assert await open_ids(ledger) == []

    ledger_test(database_url, body, now=T0 + 2 * DAY)


def test_a_ledger_from_before_finds_all_at_once_and_lists_them_in_steps(postgres_admin: str, tmp_path: Path) -> None:
    url = with_database(postgres_admin, "rsched_of_schema_5")
    asyncio.run(ensure_database(url))
    try:
        asyncio.run(migrate(url, steps=migrations()[:5]))
        with psycopg.connect(url) as c:
            for day in range(4):
                at = T0 + day * DAY
                on = date.fromordinal(date(1970, 1, 1).toordinal() + at // DAY)
                if day:  # the first day has left
                    until = date.fromordinal(on.toordinal() + 1)
                    c.execute(
                        f"CREATE TABLE runs_{on:%Y%m%d} PARTITION OF runs FOR VALUES FROM ('{on}') TO ('{until}')".encode()
                    )
                for n, state in enumerate(("QUEUED", "SUCCEEDED", "RETRYING")):
                    c.execute(
                        "INSERT INTO runs SELECT %s, %s, 's0', %s, 1, 'l', 1, 0, 0, '', %s, %s, 0, '', NULL, NULL, 'journal',"
                        " 1, 1",
                        (on, f"{job_id()}:{at + n}", state, at + n, at + n),
                    )
        assert asyncio.run(migrate(url)) != []

        async def body(ledger: Ledger) -> None:
            expected = naive(url)
            assert len(expected) == 8
            assert await open_ids(ledger, limit=3) == expected
            await record(ledger, [run(T0 + 4 * DAY)])
            windows = 0
            while await ledger.index_unfinished_runs("s0", up_to=T0 + 4 * DAY, width_ms=12 * HOUR):
                windows += 1
                assert len(await open_ids(ledger, limit=3)) == 9
            assert 6 <= windows <= 8
            assert asked(url, "SELECT count(*) FROM unfinished_runs") == [(8,)]

        ledger_test(url, body, now=T0 + 5 * DAY)
        tables = {
            t for (t,) in asked(url, "SELECT tablename FROM pg_indexes WHERE indexdef LIKE '%brin (claimed_at)%'")
        }
        assert {"runs", "runs_kept", "runs_20261027", "runs_20261030"} <= tables
    finally:
        asyncio.run(drop_database(url))


def test_moves_of_runs_stay_heap_only_updates(database_url: str) -> None:
    async def main() -> None:
        async with Ledger(database_url, pool_max=1, clock=WallClock()) as ledger:
            # So few that a page has room for all their versions.
            for n, (state, revision) in enumerate(((Q, 1), (R, 2), (S, 3))):
                await record(ledger, [run(T0 + i, state=state, revision=revision, fence=1) for i in range(8)], n=n)
            # Counts are the session's own until it passes them on.
            await ledger.database.rows("SELECT pg_stat_force_next_flush()", ())
            query = "SELECT n_tup_upd, n_tup_hot_upd FROM pg_stat_user_tables WHERE relname = 'runs_20261026'"
            assert await ledger.database.row(query, ()) == (16, 16)

    asyncio.run(main())


def test_a_window_is_read_by_the_index_by_claim_though_the_day_has_no_statistics_yet(database_url: str) -> None:
    async def body(ledger: Ledger) -> None:
        await record(ledger, [run(T0 + n) for n in range(3000)])
        async with await psycopg.AsyncConnection.connect(database_url) as c:
            query, params = await open_within(c, "s0", since=T0 + 5, until=T0 + 9)
            found = await (await c.execute(f"EXPLAIN {query}".encode(), params)).fetchall()
        plan = "\n".join(line for (line,) in found)
        assert "runs_20261026_claimed_at_idx" in plan
        assert "pkey" not in plan
        assert "Seq Scan" not in plan

    ledger_test(database_url, body)


def test_a_job_is_kept_while_a_unfinished_runs_or_a_later_run_of_it_is_open(database_url: str) -> None:
    async def body(ledger: Ledger) -> None:
        names = ("old", "new", "none", "over")
        events: list[Event] = [job(name, state=JobState.COMPLETED, version=2) for name in names]
        events += [run(T0, name="old"), run(T0 + HOUR, name="new"), run(T0, name="over"), run(T0, name="none", state=S)]
        await record(ledger, events)
        await list_all(ledger, up_to=T0 + 60)
        await record(ledger, [run(T0, name="over", state=S, revision=2, fence=1)], n=1)
        found = await ledger.recovery.unfinished.forgettable("s0", before_ms=T0 + 9 * DAY, limit=9)
        assert {j for j, _ in found} == {job_id("none"), job_id("over")}

    ledger_test(database_url, body)


def test_windows_grow_over_what_is_quickly_looked_through_and_shrink_again() -> None:
    assert next_width(1000, took_s=0.01) == 4000
    assert next_width(1000, took_s=0.2) == 1000
    assert next_width(8000, took_s=2) == 2000
    assert next_width(1000, took_s=9) == 1000
