"""The recorder killed between any two steps of taking old history out of Postgres, and started again."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import psycopg
import pyarrow.parquet
import pytest

from rsched.core.jobs.packed import Event, SkipEvent
from rsched.core.states import RunState
from rsched.ledger import Ledger
from rsched.runtime import faults
from rsched.runtime.clock import SystemClock
from tests.faults.fault_run import Run, drive
from tests.faults.recorder_deaths import die_at
from tests.ledger.events import job_id, run
from tests.support.deployment import deployment

pytestmark = [pytest.mark.faults, pytest.mark.timeout(240)]
DAY_MS = 86_400_000
RUNS = 20
# Each table of history, and what names a row of it here: each run has one attempt and each instant one skip.
KEYS = {"runs": "run_id", "attempts": "run_id", "skips": "first_at"}
TABLES = tuple(KEYS)
# Rows on their way are in tables like those of history, in which a run has its key in parts.
PARTS = {
    "runs": "run_id_of(job_id, scheduled_at, manual)",
    "attempts": "run_id_of(job_id, scheduled_at, manual)",
    "skips": "first_at",
}


async def plant(url: str, *, at: int) -> None:
    """Runs of a day, each with a failed attempt before it succeeded, and a skip; of a shard that nobody records."""
    failed = [
        run(at + i, state=RunState.RETRYING, revision=2, attempt=1, fence=1, started_at=at, at=at, detail="x")
        for i in range(RUNS)
    ]
    ended = [
        run(at + i, state=RunState.SUCCEEDED, revision=4, attempt=2, fence=2, started_at=at, at=at) for i in range(RUNS)
    ]
    events: list[Event] = [*failed, *ended, SkipEvent(job_id(), at, at, 1, "paused", at)]
    async with Ledger(url, clock=SystemClock()) as ledger:
        assert await ledger.write.record("old", stream="journal", expected="0-0", new="1-0", events=events)


async def count(url: str) -> dict[str, int]:
    async with await psycopg.AsyncConnection.connect(url) as c:
        found = {}
        for table in TABLES:
            row = await (await c.execute(f"SELECT count(*) FROM {table}".encode())).fetchone()
            found[table] = int(row[0]) if row else 0
        return found


async def kept(url: str, folder: Path) -> dict[str, set[str]]:
    """The keys of all rows that are in the tables of history, in those of rows on their way, or in files."""
    keys = {table: set(in_files) for table, in_files in archived(folder).items()}
    async with await psycopg.AsyncConnection.connect(url) as c:
        for table in TABLES:
            query = "SELECT relname::text FROM pg_class WHERE relkind = 'r' AND starts_with(relname::text, %s)"
            on_their_way = await (await c.execute(query, (f"leaving_{table}_",))).fetchall()
            places = [(table, KEYS[table]), *((row[0], PARTS[table]) for row in on_their_way)]
            for name, key in places:
                rows = await (await c.execute(f"SELECT {key} FROM {name}".encode())).fetchall()
                keys[table] |= {str(row[0]) for row in rows}
    return keys


async def left_over(url: str) -> list[str]:
    """Tables of rows that are on their way, and days that are not archived."""
    query = "SELECT relname::text FROM pg_class WHERE relname LIKE 'leaving%' UNION ALL SELECT name::text FROM archived"
    async with await psycopg.AsyncConnection.connect(url) as c:
        rows = await (await c.execute(f"{query} WHERE archived_at IS NULL".encode())).fetchall()
    return [r[0] for r in rows]


def archived(folder: Path) -> dict[str, list[str]]:
    """The keys of all rows in files whose manifest is true."""
    found: dict[str, list[str]] = {table: [] for table in TABLES}
    for path in folder.glob("*/*.json"):
        manifest = json.loads(path.read_text())
        file = folder / manifest["file"]
        assert manifest["sha256"] == hashlib.sha256(file.read_bytes()).hexdigest()
        rows = pyarrow.parquet.read_table(file).to_pylist()
        assert manifest["rows"] == len(rows)
        found[manifest["table"]] += [str(r.get("run_id") or r["first_at"]) for r in rows]
    return found


def test_a_recorder_that_dies_at_any_step_of_an_export_loses_and_doubles_no_row(tmp_path: Path) -> None:
    # Servers run as another user; only the recorder writes here.
    folder = tmp_path / "archive"
    env = {"RSCHED_RECORDER_ARCHIVE_DIR": str(folder), "RSCHED_RECORDER_RETENTION_DAYS": "2"}

    async def scenario() -> None:
        async with deployment(env, clock=SystemClock()) as w:
            fault = Run(w, w.folder / "seen.jsonl")
            await plant(w.database_url, at=w.clock.wall_ms() - 10 * DAY_MS)
            planted = await count(w.database_url)
            assert planted == {"runs": RUNS, "attempts": RUNS, "skips": 1}
            for point in faults.RETENTION:
                await die_at(fault, point)
                # At each moment a row is in Postgres, on its way, or in a file.
                there = await kept(w.database_url, folder)
                assert {table: len(keys) for table, keys in there.items()} == planted, point
            w.fleet.start("recorder-1")

            async def gone() -> bool:
                return not any((await count(w.database_url)).values()) and not await left_over(w.database_url)

            await w.fleet.until(gone, what="all old rows archived", within_s=30)
            there = archived(folder)
            assert {table: len(keys) for table, keys in there.items()} == planted
            assert all(len(keys) == len(set(keys)) for keys in there.values())
            assert not list(folder.glob("*/.*"))

    drive(scenario)
