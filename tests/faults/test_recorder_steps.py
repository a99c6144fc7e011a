"""The recorder killed between any two of its steps, under load, and started again: one deployment for each group of points."""

from __future__ import annotations

import os
from collections.abc import Sequence

import psycopg
import pytest

from rsched.runtime import faults
from tests.faults.fault_run import Run, drive, fault_run
from tests.faults.recorder_deaths import die_at

pytestmark = [pytest.mark.faults, pytest.mark.timeout(240)]

# Of each point.
RUNS = int(os.environ.get("FAULTS_RUNS", "100"))
# So that what is recorded is trimmed, and what ended is forgotten, while a test waits.
ENV = {
    "RSCHED_RECORDER_KEEP_MS": "300",
    "RSCHED_RECORDER_BLOCK_MS": "200",
    "RSCHED_RECORDER_FORGET_AFTER_S": "0.5",
}


@pytest.mark.parametrize(
    ("points", "passing"), [(faults.RECORDER, 2), (faults.HOUSEKEEPING, 1)], ids=["recorder", "housekeeping"]
)
def test_a_recorder_that_dies_between_any_two_steps_loses_and_doubles_nothing(
    points: Sequence[str], passing: int
) -> None:
    async def scenario() -> None:
        async with fault_run(env=ENV, workers=1) as run:
            run.kill("recorder-1")
            for point in points:
                await run.put_spread(RUNS, lead_ms=300, spread_ms=1500)
                await die_at(run, point, passing=passing)
            run.fleet.start("recorder-2")
            await run.until_settled()
            verdict = await run.verdict()
            assert verdict.repeated == 0

    drive(scenario)


async def lose_everything(run: Run) -> None:
    """FLUSHALL, once all that is expected is recorded, with some of it claimed and not ended."""
    await run.until_recorded()

    async def some_open() -> bool:
        with psycopg.connect(run.w.database_url) as c:
            found = c.execute("SELECT count(*) FROM runs WHERE status IN ('QUEUED', 'RUNNING', 'RETRYING')").fetchone()
        return found is not None and found[0] > 0

    await run.fleet.until(some_open, what="open runs in the ledger", within_s=10)
    await run.w.store.connection.client.flushall()


async def until_restored(run: Run) -> None:
    async def restored() -> bool:
        found = await run.w.store.restore.get_progress()
        return found is not None and found.phase == "done" and await run.w.store.recovery.is_open()

    await run.fleet.until(restored, what="all definitions back", within_s=30)


def test_a_recorder_that_dies_in_an_recovery_is_followed_by_one_that_opens() -> None:
    async def scenario() -> None:
        async with fault_run(env=ENV, workers=1) as run:
            for number, point in enumerate(faults.OPENING):
                # What is due by and by is to be restored later than what is due now.
                await run.put_spread(RUNS, lead_ms=800, spread_ms=4000)
                await run.put_spread(RUNS // 4, lead_ms=20_000 + 1000 * number, spread_ms=500)
                await lose_everything(run)
                for name in [n for n in run.fleet.processes if n.startswith("recorder")]:
                    run.kill(name)
                await die_at(run, point)
                run.fleet.start(f"recorder-after-{point}")
                await until_restored(run)
            await run.until_settled(within_s=90)
            await run.verdict()

    drive(scenario)


def test_a_recorder_that_dies_on_the_load_level_leaves_it_to_the_next_who_measures() -> None:
    async def scenario() -> None:
        # No scheduler yet: it would measure, too.
        async with fault_run(env={**ENV, "RSCHED_SCHEDULER_OWNERSHIP": "false"}, schedulers=0, workers=1) as run:
            await run.put_spread(RUNS, lead_ms=8000, spread_ms=500)
            await run.until_recorded()
            run.kill("recorder-1")
            client = run.w.store.connection.client
            for point, part in zip(faults.LOAD_LEVEL, (0.75, 0.9), strict=True):
                used, _ = await run.w.store.server.get_memory()
                await client.config_set("maxmemory", int(used / part))
                await die_at(run, point)
            assert await run.w.store.recovery.get_load_level() == 2
            await client.config_set("maxmemory", "1gb")
            run.fleet.start("scheduler-1")
            run.fleet.start("recorder-2")
            await run.until_settled()
            await run.verdict()
            assert await run.w.store.recovery.get_load_level() == 0

    drive(scenario)
