"""kill -9 of each kind of process in the middle of its work, with and without somebody who starts it again."""

from __future__ import annotations

import pytest

from tests.faults.fault_run import RUNS, drive, fault_run

pytestmark = pytest.mark.faults


@pytest.mark.parametrize("lookahead_ms", [500, 5000])
def test_a_killed_scheduler_is_followed_by_another_within_three_seconds(lookahead_ms: int) -> None:
    async def scenario() -> None:
        async with fault_run(schedulers=2, env={"RSCHED_SCHEDULER_LOOKAHEAD_MS": str(lookahead_ms)}) as run:
            await run.put_spread(RUNS)
            await run.until_started(0.3)
            run.kill("scheduler-1")
            # These fall to the dead one's partitions, too, and nothing of them is claimed yet.
            await run.put_spread(200, lead_ms=50, spread_ms=2000)
            await run.until_settled()
            verdict = await run.verdict()
            assert verdict.repeated == 0
            assert await run.longest_lateness_ms() < 3000

    drive(scenario)


def test_a_killed_scheduler_that_is_started_again_loses_nothing() -> None:
    async def scenario() -> None:
        async with fault_run() as run:
            await run.put_spread(RUNS)
            await run.until_started(0.3)
            run.kill("scheduler-1")
            run.fleet.start("scheduler-2")
            await run.until_settled()
            verdict = await run.verdict()
            assert verdict.repeated == 0

    drive(scenario)


@pytest.mark.parametrize("again", [True, False], ids=["started again", "left dead"])
def test_what_a_killed_worker_held_is_run_by_another(again: bool) -> None:
    async def scenario() -> None:
        async with fault_run() as run:
            await run.put_spread(RUNS, function="steady")
            await run.until_started(0.3)
            run.kill("worker-1")
            if again:
                run.fleet.start("worker-3", env={"FAULTS_SEEN": str(run.seen)})
            await run.until_settled()
            verdict = await run.verdict()
            assert verdict.attempts > verdict.runs

    drive(scenario)


@pytest.mark.parametrize("again", [True, False], ids=["started again", "another stands by"])
def test_a_killed_recorder_loses_no_history(again: bool) -> None:
    async def scenario() -> None:
        async with fault_run(recorders=1 if again else 2) as run:
            await run.put_spread(RUNS)
            await run.until_started(0.3)
            run.kill("recorder-1")
            if again:
                await run.until_started(0.6)
                run.fleet.start("recorder-3")
            await run.until_settled()
            verdict = await run.verdict()
            assert verdict.repeated == 0

    drive(scenario)


def test_all_kinds_killed_at_once_lose_nothing() -> None:
    async def scenario() -> None:
        async with fault_run() as run:
            await run.put_spread(RUNS)
            await run.until_started(0.3)
            for name in ("scheduler-1", "recorder-1", "worker-1", "worker-2"):
                run.kill(name)
            run.fleet.start("recorder-2")
            run.fleet.start("scheduler-2")
            for name in ("worker-3", "worker-4"):
                run.fleet.start(name, env={"FAULTS_SEEN": str(run.seen)})
            await run.until_settled()
            await run.verdict()

    drive(scenario)
