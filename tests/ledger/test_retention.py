from __future__ import annotations

import asyncio
import hashlib
import json
import re
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

import duckdb
import psycopg
import pyarrow.parquet
import pytest

from rsched.core.errors import Misconfigured, Unavailable
from rsched.core.ids import JobId
from rsched.core.jobs.packed import Event, PayloadEvent, SkipEvent
from rsched.core.states import RunState
from rsched.ledger import Ledger
from rsched.ledger import archive as archives
from rsched.ledger import retention as retentions
from rsched.ledger.migrate import schema_version
from rsched.ledger.retention.retention import Done
from rsched.runtime import faults
from tests.ledger.events import T0, WallClock, job, job_id, run
from tests.ledger.test_open_runs import open_ids

Q, R, T, S, D = RunState.QUEUED, RunState.RUNNING, RunState.RETRYING, RunState.SUCCEEDED, RunState.DEAD
DAY = 86_400_000
DAYS = 30
# The old day is T0's, 2026-10-26 UTC; "today" is 40 days later.
TODAY = T0 + 40 * DAY
OLD = "2026-10-26"
HISTORY = Path(__file__).parents[2] / "docs" / "history.md"


class Crash(Exception):
    pass


def retention_test(url: str, body: Callable[[Ledger], Awaitable[None]], *, clock: WallClock | None = None) -> None:
    async def main() -> None:
        async with Ledger(url, pool_max=4, clock=clock or WallClock(TODAY)) as ledger:
            await body(ledger)

    asyncio.run(main())


async def record(ledger: Ledger, events: list[Event], *, n: int = 0) -> None:
    expected = "0-0" if n == 0 else f"1-{n - 1}"
    assert await ledger.write.record("s0", stream="journal", expected=expected, new=f"1-{n}", events=events)


def rid(ms: int, name: str = "nightly") -> str:
    return f"{job_id(name)}:{ms}"


def succeeded(ms: int, name: str = "nightly") -> Event:
    return run(ms, name=name, state=S, revision=5, attempt=1, fence=5, started_at=ms + 5, worker='w,"1"', at=ms + 1000)


def dead(ms: int) -> Event:
    return run(ms, state=D, revision=5, attempt=3, fence=6, started_at=ms + 5, at=ms + 2000, detail='line\n"two", ü')


def old_day() -> list[Event]:
    """Of one day: 3 that succeeded, one with a failed attempt; one open with a failed attempt; one DEAD; one fresh."""
    failed = run(T0, state=T, revision=3, attempt=1, fence=3, started_at=T0 + 6, worker="w1", at=T0 + 50, detail="boom")
    waits = run(
        T0 + 3, state=T, revision=3, attempt=1, fence=3, started_at=T0 + 6, worker="w1", at=T0 + 50, detail="wait"
    )
    return [job(), failed, succeeded(T0), succeeded(T0 + 1), succeeded(T0 + 2), waits, dead(T0 + 4),
            succeeded(TODAY)]  # fmt: skip


async def all_steps(ledger: Ledger, folder: Path) -> list[Done]:
    """Until there is nothing left to do."""
    out = []
    while (done := await ledger.retention.retain(folder, days=DAYS)).kind in ("left", "archived"):
        out.append(done)
    assert done.kind == "pruned"
    return out


async def query(url: str, text: str) -> list[tuple[object, ...]]:
    async with await psycopg.AsyncConnection.connect(url) as c:
        return await (await c.execute(text.encode())).fetchall()


def test_a_day_past_retention_is_in_files_and_no_more_in_postgres(database_url: str, tmp_path: Path) -> None:
    async def body(ledger: Ledger) -> None:
        await record(ledger, old_day())
        done = await all_steps(ledger, tmp_path)
        assert done == [Done("left", OLD), Done("archived", OLD, 4)]
        assert await ledger.runs.get(rid(T0)) is None
        assert await ledger.runs.get(rid(TODAY)) is not None
        rows = pyarrow.parquet.read_table(tmp_path / "runs" / f"{OLD}.parquet").to_pylist()
        assert [r["run_id"] for r in rows] == [rid(T0), rid(T0 + 1), rid(T0 + 2)]
        assert rows[0] | {"claimed_on": None} == {
            "claimed_on": None, "run_id": rid(T0), "shard": "s0", "state": "SUCCEEDED", "revision": 5,
            "queue_key": "default:default:1", "schedule_version": 1, "attempt": 1, "fence": 5, "worker": 'w,"1"', "claimed_at": T0,
            "due_at": T0, "started_at": T0 + 5, "flags": "", "ended_at": T0 + 1000, "error": None, "stream": "journal",
            "generation": 1, "n": 0,
        }  # fmt: skip
        attempts = pyarrow.parquet.read_table(tmp_path / "attempts" / f"{OLD}.parquet").to_pylist()
        assert [(a["run_id"], a["error"]) for a in attempts] == [(rid(T0), "boom")]
        left = await query(database_url, "SELECT relname FROM pg_class WHERE relname ~ '20261026|leaving'")
        assert left == []

    retention_test(database_url, body)


def test_the_manifest_says_what_is_in_the_file(database_url: str, tmp_path: Path) -> None:
    async def body(ledger: Ledger) -> None:
        await record(ledger, old_day())
        await all_steps(ledger, tmp_path)

    retention_test(database_url, body)
    manifest = json.loads((tmp_path / "runs" / f"{OLD}.json").read_text())
    file = tmp_path / manifest["file"]
    assert manifest == {
        "name": OLD, "day": OLD, "table": "runs", "file": f"runs/{OLD}.parquet", "rows": 3, "bytes": file.stat().st_size,
        "sha256": hashlib.sha256(file.read_bytes()).hexdigest(), "schema_version": schema_version(),
        "min_at": T0, "max_at": T0 + 2, "written_at": TODAY,
    }  # fmt: skip
    column = pyarrow.parquet.read_metadata(file).row_group(0).column(1)
    assert column.compression == "ZSTD"


def test_open_and_dead_runs_stay_where_all_readers_see_them(database_url: str, tmp_path: Path) -> None:
    async def body(ledger: Ledger) -> None:
        await record(ledger, old_day())
        await all_steps(ledger, tmp_path)
        waits, died = await ledger.runs.get(rid(T0 + 3)), await ledger.runs.get(rid(T0 + 4))
        assert waits is not None
        assert died is not None
        assert [a.error for a in waits.attempts] == ["wait"]
        assert [a.error for a in died.attempts] == ['line\n"two", ü']
        assert await open_ids(ledger, limit=9) == [rid(T0 + 3)]
        there = [rid(T0 + 3), rid(T0 + 4), rid(TODAY)]
        assert set(await ledger.recovery.compare.runs(there)) == set(there)
        assert [r.run_id for r in (await ledger.runs.dead_letters())[0]] == [rid(T0 + 4)]
        assert [r.run_id for r in (await ledger.runs.list(job_id()))[0]] == [rid(TODAY), rid(T0 + 4), rid(T0 + 3)]

    retention_test(database_url, body)


@pytest.mark.parametrize("fresh", [False, True], ids=["same process", "restarted"])
def test_later_events_of_a_day_that_left_are_recorded_and_guarded(
    database_url: str, tmp_path: Path, fresh: bool
) -> None:
    async def body(ledger: Ledger) -> None:
        await record(ledger, old_day())
        await all_steps(ledger, tmp_path)
        async with Ledger(database_url, clock=WallClock(TODAY)) as other:
            writer = other if fresh else ledger
            # The open one ends; an old event of the dead one comes again; one comes that nobody knew.
            events = [
                run(T0 + 3, state=S, revision=6, attempt=2, fence=9, started_at=T0 + 99, at=TODAY),
                run(T0 + 4, state=R, revision=4, attempt=3, fence=6, started_at=T0 + 5),
                run(T0 + 5),
            ]
            await record(writer, events, n=1)
        states = {}
        for n in (3, 4, 5):
            found = await ledger.runs.get(rid(T0 + n))
            assert found is not None
            states[n] = found.record.state
        assert states == {3: S, 4: D, 5: Q}
        await ledger.write.make_partitions_ahead()

    retention_test(database_url, body)


def test_what_was_kept_leaves_once_it_is_over_for_as_long(database_url: str, tmp_path: Path) -> None:
    clock = WallClock(TODAY)

    async def body(ledger: Ledger) -> None:
        await record(ledger, old_day())
        await all_steps(ledger, tmp_path)
        ends = [
            run(T0 + 3, state=S, revision=6, attempt=2, fence=9, started_at=TODAY, at=TODAY),
            run(T0 + 4, state=S, revision=9, attempt=4, fence=10, started_at=TODAY, at=TODAY),
        ]
        await record(ledger, list(ends), n=1)
        await all_steps(ledger, tmp_path)
        assert await ledger.runs.get(rid(T0 + 3)) is not None
        clock.now = TODAY + (DAYS + 1) * DAY
        done = await all_steps(ledger, tmp_path)
        assert [d.kind for d in done] == ["left", "archived"] * 2  # TODAY's own day, and the sweep
        assert await ledger.runs.get(rid(T0 + 3)) is None
        files = list((tmp_path / "runs").glob("*.parquet"))
        found = [r for f in files for r in pyarrow.parquet.read_table(f).column("run_id").to_pylist()]
        assert sorted(found) == [rid(T0), rid(T0 + 1), rid(T0 + 2), rid(T0 + 3), rid(T0 + 4), rid(TODAY)]
        assert await query(database_url, "SELECT * FROM runs UNION ALL SELECT * FROM runs") == []
        assert await query(database_url, "SELECT * FROM attempts") == []

    retention_test(database_url, body, clock=clock)


def test_skips_and_payloads_leave_too(database_url: str, tmp_path: Path) -> None:
    async def body(ledger: Ledger) -> None:
        mine = succeeded(T0)
        kept = dead(T0 + 4)
        with_payload = [e._replace(record=e.record._replace(flags="P")) for e in (mine, kept)]  # type: ignore[union-attr]
        events: list[Event] = [*with_payload, *(PayloadEvent(rid(T0 + n), b"x") for n in (0, 4)),
                               SkipEvent(job_id(), T0, T0, 1, "paused", T0),
                               SkipEvent(job_id(), TODAY, TODAY, 1, "paused", TODAY)]  # fmt: skip
        await record(ledger, events)
        await all_steps(ledger, tmp_path)
        assert [s.at for s in await ledger.skips.latest(JobId(job_id()))] == [TODAY]
        (file,) = (tmp_path / "skips").glob("*.parquet")
        assert pyarrow.parquet.read_table(file).column("first_at").to_pylist() == [T0]
        assert await query(database_url, "SELECT run_id FROM payloads") == [(rid(T0 + 4),)]

    retention_test(database_url, body)


def test_dead_letters_of_runs_that_are_dead_no_more_are_pruned(database_url: str, tmp_path: Path) -> None:
    async def body(ledger: Ledger) -> None:
        await record(ledger, [dead(T0), dead(T0 + 1)])
        await record(ledger, [run(T0, state=S, revision=9, attempt=4, fence=10, started_at=TODAY, at=TODAY)], n=1)
        await all_steps(ledger, tmp_path)
        assert await query(database_url, "SELECT run_id FROM dead_letters") == [(rid(T0 + 1),)]

    retention_test(database_url, body)


@pytest.mark.parametrize("step", faults.RETENTION)
def test_a_crash_at_any_step_repeats_harmlessly(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    crashed = []

    def point(name: str) -> None:
        if name == step and len(crashed) < 2:
            crashed.append(name)
            raise Crash

    async def body(ledger: Ledger) -> None:
        await record(ledger, old_day())
        monkeypatch.setattr(faults, "point", point)
        while True:
            try:
                await all_steps(ledger, tmp_path)
                break
            except Crash:
                # Whatever is open or DEAD is seen all the while, and written to.
                assert len(await open_ids(ledger, limit=9)) == 1
                assert len((await ledger.runs.dead_letters())[0]) == 1
        assert crashed
        rows = pyarrow.parquet.read_table(tmp_path / "runs" / f"{OLD}.parquet").to_pylist()
        assert [r["run_id"] for r in rows] == [rid(T0), rid(T0 + 1), rid(T0 + 2)]
        files = sorted(f.name for f in (tmp_path / "runs").iterdir())
        assert files == [f"{OLD}.json", f"{OLD}.parquet"]
        assert await ledger.runs.get(rid(T0)) is None
        assert await query(database_url, "SELECT relname FROM pg_class WHERE relname LIKE 'leaving%'") == []

    monkeypatch.setattr(retentions, "_GROUP_ROWS", 2)
    retention_test(database_url, body)


def test_nothing_is_dropped_when_the_file_has_not_all_rows(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def body(ledger: Ledger) -> None:
        await record(ledger, old_day())
        await ledger.retention.retain(tmp_path, days=DAYS)
        with monkeypatch.context() as m:
            m.setattr(archives.ParquetSink, "write", lambda self, csv: None)
            with pytest.raises(Unavailable, match="0 rows of 3"):
                await ledger.retention.retain(tmp_path, days=DAYS)
        assert list((tmp_path / "runs").iterdir()) == []
        assert await ledger.retention.retain(tmp_path, days=DAYS) == Done("archived", OLD, 4)

    retention_test(database_url, body)


def test_a_folder_that_refuses_is_waited_for(database_url: str, tmp_path: Path) -> None:
    async def body(ledger: Ledger) -> None:
        await record(ledger, old_day())
        await ledger.retention.retain(tmp_path, days=DAYS)
        (tmp_path / "runs").write_text("in the way")
        with pytest.raises(Unavailable, match="archive can't be written"):
            await ledger.retention.retain(tmp_path, days=DAYS)
        (tmp_path / "runs").unlink()
        assert await ledger.retention.retain(tmp_path, days=DAYS) == Done("archived", OLD, 4)

    retention_test(database_url, body)


def test_two_recorders_never_export_at_once(database_url: str, tmp_path: Path) -> None:
    async def body(ledger: Ledger) -> None:
        await record(ledger, old_day())
        async with Ledger(database_url, clock=WallClock(TODAY)) as other:
            done = []
            for _ in range(4):
                done += await asyncio.gather(*(x.retain(tmp_path, days=DAYS) for x in (ledger, other)))
        assert sorted(d.kind for d in done if d.kind in ("left", "archived")) == ["archived", "left"]

    retention_test(database_url, body)


def test_recording_goes_on_while_a_day_is_exported(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def body(ledger: Ledger) -> None:
        await record(ledger, old_day())
        await ledger.retention.retain(tmp_path, days=DAYS)
        reached, go_on = asyncio.Event(), asyncio.Event()
        columns = retentions._columns

        async def slow(c: object, table: str) -> list[tuple[str, str]]:
            reached.set()
            await go_on.wait()
            return await columns(c, table)  # type: ignore[arg-type]

        monkeypatch.setattr(retentions, "_columns", slow)
        export = asyncio.ensure_future(ledger.retention.retain(tmp_path, days=DAYS))
        await reached.wait()
        async with asyncio.timeout(5):
            await record(ledger, [run(T0 + 9), run(TODAY + 9)], n=1)
            await ledger.write.make_partitions_ahead()
        go_on.set()
        assert await export == Done("archived", OLD, 4)
        assert await ledger.runs.get(rid(T0 + 9)) is not None

    retention_test(database_url, body)


def test_of_rows_recorded_while_their_day_leaves_none_is_lost_or_doubled(database_url: str, tmp_path: Path) -> None:
    batches, size = 60, 5

    async def body(ledger: Ledger) -> None:
        await record(ledger, [job()])
        recording = True

        async def recorder() -> None:
            nonlocal recording
            for n in range(batches):
                await record(ledger, [succeeded(T0 + n * size + i) for i in range(size)], n=n + 1)
            recording = False

        async def retain() -> None:
            while recording:
                with suppress(Unavailable):
                    await all_steps(ledger, tmp_path)

        async with asyncio.TaskGroup() as group:
            group.create_task(recorder())
            group.create_task(retain())
        await all_steps(ledger, tmp_path)
        assert await query(database_url, "SELECT run_id FROM runs") == []
        found = [
            r for f in (tmp_path / "runs").glob("*.parquet")
            for r in pyarrow.parquet.read_table(f).column("run_id").to_pylist()
        ]  # fmt: skip
        assert sorted(found) == sorted(rid(T0 + i) for i in range(batches * size))
        assert len(list((tmp_path / "runs").glob("*.parquet"))) > 1

    retention_test(database_url, body)


STAYS = "SELECT indexrelid::int, indisvalid FROM pg_index WHERE indexrelid = to_regclass('stays_20261026')"


def test_a_session_in_a_transaction_delays_the_day_and_recording_only_briefly(
    database_url: str, tmp_path: Path
) -> None:
    clock = WallClock(TODAY)

    async def body(ledger: Ledger) -> None:
        await record(ledger, old_day())
        async with await psycopg.AsyncConnection.connect(database_url) as c:
            await c.execute("LOCK TABLE runs IN ACCESS SHARE MODE")
            assert await ledger.retention.retain(tmp_path, days=DAYS) == Done("waits", OLD)
            await record(ledger, [run(T0 + 9)], n=1)
            assert await ledger.runs.get(rid(T0)) is not None
            # What was built for it is not built again, though another day is over.
            (built,) = await query(database_url, STAYS)
            clock.now += DAY
            assert await ledger.retention.retain(tmp_path, days=DAYS) == Done("waits", OLD)
            assert await query(database_url, STAYS) == [built]
        assert (await all_steps(ledger, tmp_path))[0] == Done("left", OLD)
        assert await query(database_url, STAYS) == []

    retention_test(database_url, body, clock=clock)


def test_an_index_that_was_not_finished_is_built_again(database_url: str, tmp_path: Path) -> None:
    async def body(ledger: Ledger) -> None:
        await record(ledger, old_day())
        async with await psycopg.AsyncConnection.connect(database_url) as c:
            await c.execute("LOCK TABLE runs IN ACCESS SHARE MODE")
            await ledger.retention.retain(tmp_path, days=DAYS)
            ((built, _),) = await query(database_url, STAYS)
            async with await psycopg.AsyncConnection.connect(database_url) as other:
                await other.execute("UPDATE pg_index SET indisvalid = false WHERE indexrelid = %s", (built,))
            async with asyncio.timeout(9):
                assert await ledger.retention.retain(tmp_path, days=DAYS) == Done("waits", OLD)
        async with await psycopg.AsyncConnection.connect(database_url) as c:
            await c.execute("LOCK TABLE attempts IN ACCESS SHARE MODE")
            assert await ledger.retention.retain(tmp_path, days=DAYS) == Done("waits", OLD)
            assert [valid for _, valid in await query(database_url, STAYS)] == [True]
        assert (await all_steps(ledger, tmp_path))[0] == Done("left", OLD)

    retention_test(database_url, body)


def test_a_folder_that_cannot_be_is_refused_with_the_fix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(Misconfigured, match="archive_dir"):
        archives.check_archive(str(tmp_path / "file"))
    with pytest.raises(Misconfigured, match="absolute"):
        archives.check_archive(".")
    monkeypatch.setattr(archives, "find_spec", lambda name: None)
    with pytest.raises(Misconfigured, match=r"pip install 'rsched\[archive\]'"):
        archives.check_archive(str(tmp_path))


def test_the_documented_queries_read_the_archive(database_url: str, tmp_path: Path) -> None:
    async def body(ledger: Ledger) -> None:
        await record(ledger, [*old_day(), SkipEvent(job_id(), T0, T0 + 5, 3, "paused", T0)])
        await all_steps(ledger, tmp_path)

    retention_test(database_url, body)
    found = []
    for text in re.findall(r"```sql\n(.*?)```", HISTORY.read_text(), re.DOTALL):
        text = text.replace("/var/lib/rsched/archive", str(tmp_path)).replace("j_0123456789abc", job_id())
        found.append(duckdb.sql(text).fetchall())
    outcomes, of_job, failures, skipped = found
    assert [(str(d), state, n) for d, state, n, *_ in outcomes] == [(OLD, "SUCCEEDED", 3)]
    assert [r[0] for r in of_job] == [rid(T0 + 2), rid(T0 + 1), rid(T0)]
    assert failures == [("boom", 1)]
    assert skipped == [("paused", 3)]
