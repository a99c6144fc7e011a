"""A worker that was stopped for longer than its lease, and wakes up."""

from __future__ import annotations

import signal

import pytest

from tests.faults.fault_run import Run, drive, fault_run
from tests.support.checker import Recorded

pytestmark = pytest.mark.faults


async def stop_in_the_middle(run: Run) -> None:
    """Both workers hold long runs; worker-1 is stopped until others have run what it held, then it wakes up."""
    await run.put_spread(40, function="long", spread_ms=100)
    await run.until_started(1)
    run.note_stopped(run.fleet.signal("worker-1", signal.SIGSTOP))


def test_a_stopped_worker_that_wakes_up_after_its_lease_changes_nothing() -> None:
    async def scenario() -> None:
        async with fault_run(workers=1) as run:
            await stop_in_the_middle(run)
            run.fleet.start("worker-2", env={"FAULTS_SEEN": str(run.seen)})
            await run.until_settled()
            before = await run.recorded()
            ends = run.count("end")
            run.fleet.signal("worker-1", signal.SIGCONT)
            await run.until(lambda: run.count("cancelled") == 40, "its attempts taken back")
            # It is a worker like any other again: what comes now is run, and nothing old comes with it.
            await run.put_spread(100)
            await run.until_settled()
            await run.verdict()
            assert run.count("end") == ends + 100
            assert by_id(before).items() <= by_id(await run.recorded()).items()

    drive(scenario)


def by_id(rows: list[Recorded]) -> dict[str, Recorded]:
    return {r.run_id: r for r in rows}


def test_a_worker_that_only_paused_keeps_its_runs() -> None:
    async def scenario() -> None:
        async with fault_run(workers=1) as run:
            await run.put_spread(60, function="steady", spread_ms=100)
            await run.until(lambda: run.count("start") >= 30, "some starts")
            run.fleet.signal("worker-1", signal.SIGSTOP)
            await run.w.clock.sleep(500)
            run.fleet.signal("worker-1", signal.SIGCONT)
            await run.until_settled()
            verdict = await run.verdict()
            assert verdict.attempts == verdict.runs

    drive(scenario)
