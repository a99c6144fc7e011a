"""What leaves Postgres, what stays, and what is in the files."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path

import duckdb
import pyarrow.parquet
import pytest

from rsched.core.ids import JobId
from rsched.core.jobs.packed import Event, PayloadEvent, SkipEvent
from rsched.core.states import RunState
from rsched.ledger import Ledger
from rsched.ledger.migrate import schema_version
from rsched.ledger.retention.retention import Done
from tests.ledger.events import T0, WallClock, job_id, run
from tests.ledger.retention_cases import (
    DAY,
    DAYS,
    OLD,
    TODAY,
    all_steps,
    dead,
    old_day,
    query,
    record,
    retention_test,
    rid,
    succeeded,
)
from tests.ledger.support import unfinished_ids

Q, R, T, S, D = RunState.QUEUED, RunState.RUNNING, RunState.RETRYING, RunState.SUCCEEDED, RunState.DEAD
HISTORY = Path(__file__).parents[2] / "docs" / "history.md"


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
            "claimed_on": None, "run_id": rid(T0), "job_id": job_id(), "team": "default", "queue": "default",
            "priority": "normal", "status": "SUCCEEDED", "attempt": 1, "fence": 5, "revision": 5, "schedule_version": 1,
            "worker": 'w,"1"', "scheduled_at": T0, "claimed_at": T0, "due_at": T0, "started_at": T0 + 5,
            "ended_at": T0 + 1000, "error": None, "flags": "", "shard": "s0",
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
        assert await unfinished_ids(ledger, limit=9) == [rid(T0 + 3)]
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
        assert await query(database_url, "SELECT ms_of(scheduled_at) FROM dead_letters") == [(T0 + 1,)]

    retention_test(database_url, body)


def test_the_documented_queries_read_the_archive(database_url: str, tmp_path: Path) -> None:
    async def body(ledger: Ledger) -> None:
        await record(ledger, [*old_day(), SkipEvent(job_id(), T0, T0 + 5, 3, "paused", T0)])
        await all_steps(ledger, tmp_path)

    retention_test(database_url, body)
    found = []
    for text in re.findall(
        r"```sql\n(.*?)```", HISTORY.read_text().partition("## Reading it with DuckDB")[2], re.DOTALL
    ):
        text = text.replace("/var/lib/rsched/archive", str(tmp_path)).replace("j_0123456789abc", job_id())
        found.append(duckdb.sql(text).fetchall())
    outcomes, of_job, failures, skipped = found
    assert [(str(d), state, n) for d, state, n, *_ in outcomes] == [(OLD, "SUCCEEDED", 3)]
    assert [r[0] for r in of_job] == [rid(T0 + 2), rid(T0 + 1), rid(T0)]
    assert failures == [("boom", 1)]
    assert skipped == [("paused", 3)]
