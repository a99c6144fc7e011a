"""Retention beside those who record, and whatever goes wrong at any step of it."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path

import psycopg
import pyarrow.parquet
import pytest

from rsched.core.errors import Misconfigured, Unavailable
from rsched.core.states import RunState
from rsched.ledger import Ledger
from rsched.ledger.retention import parquet as archives
from rsched.ledger.retention import retention as retentions
from rsched.ledger.retention.retention import Done
from rsched.runtime import faults
from tests.ledger.events import T0, WallClock, job, run
from tests.ledger.retention_cases import (
    DAY,
    DAYS,
    OLD,
    TODAY,
    all_steps,
    old_day,
    query,
    record,
    retention_test,
    rid,
    succeeded,
)
from tests.ledger.support import unfinished_ids

Q, R, T, S, D = RunState.QUEUED, RunState.RUNNING, RunState.RETRYING, RunState.SUCCEEDED, RunState.DEAD


class Crash(Exception):
    pass


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
                assert len(await unfinished_ids(ledger, limit=9)) == 1
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
                done += await asyncio.gather(*(x.retention.retain(tmp_path, days=DAYS) for x in (ledger, other)))
        assert sorted(d.kind for d in done if d.kind in ("left", "archived")) == ["archived", "left"]

    retention_test(database_url, body)


def test_recording_goes_on_while_a_day_is_exported(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def body(ledger: Ledger) -> None:
        await record(ledger, old_day())
        await ledger.retention.retain(tmp_path, days=DAYS)
        reached, go_on = asyncio.Event(), asyncio.Event()
        stream = retentions._stream

        async def slow(*args: object) -> None:
            reached.set()
            await go_on.wait()
            await stream(*args)  # type: ignore[arg-type]

        monkeypatch.setattr(retentions, "_stream", slow)
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
            await c.execute("LOCK TABLE finished_runs IN ACCESS SHARE MODE")
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
            await c.execute("LOCK TABLE finished_runs IN ACCESS SHARE MODE")
            await ledger.retention.retain(tmp_path, days=DAYS)
            ((built, _),) = await query(database_url, STAYS)
            async with await psycopg.AsyncConnection.connect(database_url) as other:
                await other.execute("UPDATE pg_index SET indisvalid = false WHERE indexrelid = %s", (built,))
            async with asyncio.timeout(9):
                assert await ledger.retention.retain(tmp_path, days=DAYS) == Done("waits", OLD)
        async with await psycopg.AsyncConnection.connect(database_url) as c:
            await c.execute("LOCK TABLE failed_attempts IN ACCESS SHARE MODE")
            assert await ledger.retention.retain(tmp_path, days=DAYS) == Done("waits", OLD)
            assert [valid for _, valid in await query(database_url, STAYS)] == [True]
        assert (await all_steps(ledger, tmp_path))[0] == Done("left", OLD)

    retention_test(database_url, body)


def test_a_folder_that_cannot_be_used_is_refused_and_told_how_to_fix(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(Misconfigured, match="archive_dir"):
        archives.check_archive(str(tmp_path / "file"))
    with pytest.raises(Misconfigured, match="absolute"):
        archives.check_archive(".")
    monkeypatch.setattr(archives, "find_spec", lambda name: None)
    with pytest.raises(Misconfigured, match=r"pip install 'rsched\[archive\]'"):
        archives.check_archive(str(tmp_path))
