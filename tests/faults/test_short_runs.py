"""One short fault run of each kind, so that every run of the tests has them; the long ones are behind `make faults`."""

from __future__ import annotations

import signal

import pytest

from tests.faults.fault_run import drive, fault_run

pytestmark = pytest.mark.timeout(120)
RUNS = 300


def test_all_kinds_of_processes_killed_at_once_lose_nothing() -> None:
    async def scenario() -> None:
        async with fault_run() as run:
            await run.put_spread(RUNS, function="steady", spread_ms=2000)
            await run.until_started(0.3)
            for name in ("scheduler-1", "recorder-1", "worker-1"):
                run.kill(name)
            run.fleet.start("recorder-2")
            run.fleet.start("scheduler-2")
            run.fleet.start("worker-3", env={"FAULTS_SEEN": str(run.seen)})
            await run.until_settled()
            await run.verdict()

    drive(scenario)


def test_a_worker_that_stopped_for_longer_than_its_lease_has_its_runs_taken_over() -> None:
    async def scenario() -> None:
        # One worker at first: an attempt elsewhere would last as long as the target's own time, which must not be over when the
        # stopped worker wakes up.
        async with fault_run(workers=1) as run:
            await run.put_spread(20, function="long", spread_ms=100)
            await run.until_started(1)
            run.note_stopped(run.fleet.signal("worker-1", signal.SIGSTOP))
            run.fleet.start("worker-2", env={"FAULTS_SEEN": str(run.seen)})
            await run.until_settled()
            run.fleet.signal("worker-1", signal.SIGCONT)
            await run.until(lambda: run.count("cancelled") == 20, "its attempts stopped")
            verdict = await run.verdict()
            assert verdict.attempts > verdict.runs

    drive(scenario)


def test_an_emptied_redis_loses_nothing_acknowledged() -> None:
    async def scenario() -> None:
        async with fault_run() as run:
            await run.put_spread(RUNS, spread_ms=1)
            await run.put_spread(50, lead_ms=2500, spread_ms=2000)
            await run.until_recorded()
            await run.until_started(0.3)
            await run.w.store.connection.client.flushall()
            await run.until_open()
            await run.until_settled()
            await run.verdict()

    drive(scenario)
