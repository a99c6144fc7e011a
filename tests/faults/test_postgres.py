"""Postgres away in every way that it can be: runs go on, the recorder catches up by itself, nothing that was known is lost."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import psycopg
import pytest

from rsched.core.errors import Unavailable
from rsched.core.ids import JobId
from rsched.embedded.postgres_server import PostgresServer
from rsched.ledger.failures import translated
from tests.faults.agreement import disagreements
from tests.faults.fault_run import RUNS, Run, drive, fault_run
from tests.support.checker import check, read_seen
from tests.support.ledger_rows import position

pytestmark = [pytest.mark.faults, pytest.mark.timeout(180)]

# 60 for a full run.
AWAY_S = float(os.environ.get("FAULTS_AWAY_S", "6"))


def server(run: Run) -> PostgresServer:
    assert run.w.servers.postgres is not None
    return run.w.servers.postgres


def query(run: Run, text: str) -> list[tuple[object, ...]]:
    with psycopg.connect(run.w.database_url, autocommit=True) as c:
        found = c.execute(text.encode())
        return found.fetchall() if found.description else []


@asynccontextmanager
async def stopped(run: Run) -> AsyncIterator[None]:
    server(run).kill()
    yield
    server(run).start()


def children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


@asynccontextmanager
async def hanging(run: Run) -> AsyncIterator[None]:
    child = server(run).child
    assert child is not None
    # Each of its processes has a group of its own. The parent first, so that it makes no more of them.
    os.kill(child.pid, signal.SIGSTOP)
    pids = children(child.pid)
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in (*pids, child.pid):
            os.kill(pid, signal.SIGCONT)


@asynccontextmanager
async def read_only(run: Run) -> AsyncIterator[None]:
    query(run, "ALTER SYSTEM SET default_transaction_read_only = on")
    query(run, "SELECT pg_reload_conf()")
    yield
    with psycopg.connect(run.w.database_url, autocommit=True) as c:
        c.execute("SET default_transaction_read_only = off")
        c.execute("ALTER SYSTEM RESET default_transaction_read_only")
        c.execute("SELECT pg_reload_conf()")


# How long it hangs: past the deadline of 10 s, so that the recorder has to notice.
@pytest.mark.parametrize(
    ("away", "seconds"), [(stopped, AWAY_S), (hanging, AWAY_S + 8), (read_only, AWAY_S)],
    ids=["stopped", "hanging", "read-only"],
)  # fmt: skip
def test_runs_go_on_while_postgres_is_away_and_are_recorded_once_it_is_back(away: object, seconds: float) -> None:
    async def scenario() -> None:
        async with fault_run() as run:
            await run.put_spread(RUNS, spread_ms=int(seconds * 1000))
            await run.until_recorded()
            await run.until_started(0.05)
            async with away(run):  # type: ignore[operator]
                await run.until_started(0.95, within_s=seconds + 20)
                said = run.fleet.log("recorder-1").count("waiting: Postgres")
            # Each loop says it once, however often it tries.
            assert 1 <= said <= 6, run.fleet.log("recorder-1")
            await run.until_settled()
            verdict = await run.verdict()
            assert verdict.repeated == 0
            assert await run.longest_lateness_ms() < 3000

    drive(scenario)


def test_what_is_refused_for_want_of_room_is_tried_again_and_not_quarantined() -> None:
    for error in (psycopg.errors.DiskFull, psycopg.errors.OutOfMemory, psycopg.errors.TooManyConnections):
        with pytest.raises(Unavailable, match="no room left"), translated():
            raise error("no space left on device")
    with pytest.raises(Unavailable, match="read-only"), translated():
        raise psycopg.errors.ReadOnlySqlTransaction("cannot execute INSERT in a read-only transaction")
    with pytest.raises(psycopg.errors.ProgramLimitExceeded), translated():
        raise psycopg.errors.ProgramLimitExceeded("index row size exceeds the maximum")


async def fill_to(run: Run, part: float) -> None:
    """Lowers, or raises, what Redis may use, so that this part of it is in use."""
    used, _ = await run.w.store.server.get_memory()
    await run.w.store.connection.client.config_set("maxmemory", int(used / part))


async def until_step(run: Run, step: int) -> None:
    async def there() -> bool:
        return await run.w.store.recovery.get_load_level() == step

    await run.fleet.until(there, what=f"step {step} of the load_level", within_s=10)


def test_as_redis_fills_creates_are_refused_then_claims_stop_and_nothing_is_lost() -> None:
    async def scenario() -> None:
        async with fault_run(workers=1) as run:
            # So much that what connections use for a moment is no part of it worth a step.
            await run.w.store.connection.client.setrange("ballast", 64_000_000, b"x")
            await run.put_spread(200, lead_ms=10_000, spread_ms=1000)
            # Nobody empties the journal now; a scheduler measures all the same.
            run.kill("recorder-1")
            await fill_to(run, 0.75)
            await until_step(run, 1)
            with pytest.raises(RuntimeError, match="full"):
                await run.put_spread(1)
            await fill_to(run, 0.9)
            await until_step(run, 2)
            late = run.first_due + 1500
            while await run.w.store.clock.read() < late:
                await run.w.clock.sleep(50)
            assert run.count("start") == 0
            await fill_to(run, 0.3)
            await until_step(run, 0)
            run.fleet.start("recorder-2")
            await run.until_settled()
            await run.verdict()
            said = run.fleet.log("scheduler-1")
            assert said.count("new jobs are refused") == 1
            assert said.count("claims and fetches stop") == 1

    drive(scenario)


def test_a_postgres_that_comes_back_without_its_tail_gets_it_from_redis() -> None:
    async def scenario() -> None:
        env = {"RSCHED_RECORDER_KEEP_MS": "200", "RSCHED_RECORDER_BLOCK_MS": "200"}
        async with fault_run(workers=1, env=env) as run:
            await run.put_spread(100, lead_ms=200, spread_ms=500)
            await run.until_settled()
            before = {s: await position(run.w.database_url, s) for s in ("definitions", "journal")}
            await run.put_spread(150, lead_ms=30_000, spread_ms=500)
            later = list(run.expected)[100:]
            await run.until_recorded()

            async def trimmed() -> bool:
                for stream in ("definitions", "journal"):
                    first = await run.w.store.journal.get_first_id(stream)
                    if first is not None and int(first.partition("-")[2]) <= int(before[stream].partition("-")[2]) + 1:
                        return False
                return True

            # Trimming is by whole nodes of the stream: with this few entries none would go by itself.
            run.kill("recorder-1")
            for stream in ("definitions", "journal"):
                key = run.w.store.keys.definitions if stream == "definitions" else run.w.store.keys.journal
                await run.w.store.connection.client.xtrim(key, maxlen=0, approximate=False)
            assert await trimmed()
            # As a backup has it that was made before.
            for stream, at in before.items():
                n = at.partition("-")[2]
                query(run, f"UPDATE positions SET sequence = {n} WHERE stream = '{stream}'")
            query(run, "DELETE FROM jobs WHERE job_id = ANY('{" + ",".join(later) + "}')")
            query(run, "UPDATE shards SET generation = 0, fence = 0")
            run.fleet.start("recorder-2")

            async def back() -> bool:
                found = query(run, "SELECT count(*) FROM jobs WHERE job_id = ANY('{" + ",".join(later) + "}')")
                return found == [(150,)] and not await run.w.store.resync.is_requested()

            await run.fleet.until(back, what="definitions written again", within_s=20)
            assert query(run, "SELECT DISTINCT stream FROM quarantine WHERE kind = 'gap' ORDER BY 1") != []
            assert "are missing" in run.fleet.log("recorder-2")
            marker = await run.w.store.recovery.get_marker()
            assert marker is not None
            assert query(run, "SELECT generation, fence > 68719476736 FROM shards") == [(marker.generation, True)]
            for job in later:
                assert (await run.w.store.jobs.remove(JobId(job))).tag == "ok"
            await run.until_recorded()
            assert query(run, "SELECT count(*) FROM jobs WHERE state = 'deleted'") == [(150,)]

    drive(scenario)


def data(run: Run) -> Path:
    return run.w.folder / "postgres" / "data"


def put_back(run: Run, backup: Path) -> None:
    """Postgres starts from what a copy of its folder holds."""
    server(run).kill()
    shutil.rmtree(data(run))
    copy(backup, data(run))
    server(run).start()


def copy(source: Path, target: Path) -> None:
    # With its owner: the server may not be ours.
    subprocess.run(["cp", "-a", str(source), str(target)], check=True)


async def check_what_the_backup_lost(run: Run, *, waiting: set[JobId], came_and_went: Sequence[JobId]) -> None:
    """Nothing ran again, and only the history of what ended in the gap is lost."""
    # Until what comes back would have run: it would be due at once.
    await run.until_recorded()
    assert await run.w.store.connection.client.hlen(run.w.store.keys.runs) == 0
    starts = Counter(line.run_id for line in run.lines("start"))
    assert len(starts) == 260
    assert set(starts.values()) == {1}
    unknown = {f"{r[0]}" for r in query(run, "SELECT run_id FROM runs WHERE error LIKE '%outcome is unknown'")}
    gap = {f"{job}:{at}" for job in list(run.expected)[150:270] for at in run.expected[job]}
    assert len(unknown) == 120
    assert unknown.isdisjoint(gap)
    expected = {job: due for job, due in run.expected.items() if job not in waiting}
    found = check(read_seen(run.seen), await run.recorded(), expected=expected)
    # The history of what was lost: of its fences, or all of it.
    history = [b for b in found.breaches if b.what == "fence" and "the ledger ends" in b.detail]
    history += [b for b in found.breaches if b.what == "lost"]
    assert {b.run_id for b in history} == unknown | gap
    assert [b for b in found.breaches if b not in history] == []
    # Of what came and went in the gap nothing is left anywhere.
    left = {job: value for job, value in run.acknowledged.items() if job not in came_and_went}
    assert await disagreements(run.w, left) == []
    assert run.fleet.log("recorder-3").count("its outcome unknown") >= 1
    assert "are missing" in run.fleet.log("recorder-3")
    assert query(run, "SELECT DISTINCT stream FROM quarantine WHERE kind = 'gap' ORDER BY 1") != []


def test_what_ended_before_postgres_was_restored_from_a_backup_does_not_run_again() -> None:
    async def scenario() -> None:
        env = {
            "RSCHED_RECORDER_RECONCILE_EVERY_S": "0.5", "RSCHED_RECORDER_RECONCILE_PACE_MS": "0",
            "RSCHED_RECORDER_FORGET_AFTER_S": "1", "RSCHED_SCHEDULER_LOOKAHEAD_MS": "4000",
        }  # fmt: skip
        async with fault_run(workers=1, env=env) as run:
            await run.put_spread(120, lead_ms=4500, spread_ms=500)
            await run.put_spread(30, lead_ms=60_000, spread_ms=500)
            waiting = set(list(run.expected)[120:])

            async def claimed() -> bool:
                return query(run, "SELECT count(*) FROM runs WHERE status = 'QUEUED'") == [(120,)]

            await run.fleet.until(claimed, what="open runs in the ledger", within_s=10)
            # Their runs come after the backup, and end before Postgres is back from it.
            await run.put_spread(40, lead_ms=8000, spread_ms=500)
            await run.until_recorded()
            run.kill("recorder-1")
            server(run).kill()
            backup = run.w.folder / "backup"
            copy(data(run), backup)
            server(run).start()
            run.fleet.start("recorder-2")
            await run.put_spread(80, lead_ms=500, spread_ms=500)
            came_and_went = list(run.expected)[190:]
            await run.until(lambda: run.count("end") >= 240, "the ends of all that is due")
            await run.until_recorded()

            async def forgotten() -> bool:
                return query(run, "SELECT count(*) FROM jobs WHERE NOT forgotten") == [(30,)]

            await run.fleet.until(forgotten, what="jobs that ended out of Redis", within_s=20)
            run.kill("recorder-2")
            for stream in (run.w.store.keys.definitions, run.w.store.keys.journal):
                await run.w.store.connection.client.xtrim(stream, maxlen=0, approximate=False)
            put_back(run, backup)
            assert query(run, "SELECT count(*) FROM runs WHERE status = 'QUEUED'") == [(120,)]
            run.fleet.start("recorder-3")
            await run.put_spread(20, lead_ms=500, spread_ms=500)
            await run.until(lambda: run.count("end") >= 260, "the ends of what came after")

            async def fixed() -> bool:
                open_ = query(run, "SELECT count(*) FROM runs WHERE status IN ('QUEUED', 'RUNNING', 'RETRYING')")
                return open_ == [(0,)] and not await run.w.store.resync.is_requested()

            await run.fleet.until(fixed, what="a ledger without what had ended", within_s=30)
            passes = (await run.w.store.reconciliation.get_progress()).passes

            async def reconciled() -> bool:
                return (await run.w.store.reconciliation.get_progress()).passes > passes

            await run.fleet.until(reconciled, what="a pass of the reconciler that ends after it", within_s=30)
            await check_what_the_backup_lost(run, waiting=waiting, came_and_went=came_and_went)

    drive(scenario)
