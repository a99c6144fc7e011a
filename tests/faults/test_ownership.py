"""Two schedulers: they share the partitions, hand them over, and do no harm where they don't share."""

from __future__ import annotations

import signal

import pytest

from tests.faults.harness import RUNS, drive, fault_run

pytestmark = pytest.mark.faults


def test_partitions_are_shared_anew_when_a_scheduler_joins_and_leaves() -> None:
    async def scenario() -> None:
        async with fault_run() as run:
            await run.put_spread(RUNS, spread_ms=6000)
            await run.until_started(0.1)
            run.fleet.start("scheduler-2")
            await run.until_owned(2)
            await run.until_started(0.6)
            assert run.fleet.stop("scheduler-1") == 0
            await run.until_owned(1)
            await run.until_settled()
            verdict = await run.verdict()
            assert verdict.attempts == verdict.runs == RUNS
            # Handed over, not left to expire.
            assert await run.longest_lateness_ms() < 1500

    drive(scenario)


def test_intervals_go_through_a_change_of_owners_without_a_gap_or_a_double() -> None:
    async def scenario() -> None:
        async with fault_run() as run:
            until = await run.w.store.clock.read() + 9000
            await run.put_every(100, every_s=1, until_ms=until)
            await run.until_started(0.2)
            run.fleet.start("scheduler-2")
            await run.until_started(0.6)
            run.fleet.stop("scheduler-1")
            await run.until_started(1)
            await run.end_intervals(every_s=1)
            verdict = await run.verdict()
            assert verdict.attempts == verdict.runs

    drive(scenario)


def test_without_ownership_two_schedulers_still_double_nothing() -> None:
    async def scenario() -> None:
        async with fault_run(schedulers=2, env={"RSCHED_SCHEDULER_OWNERSHIP": "false"}) as run:
            await run.put_spread(RUNS)
            await run.until_settled()
            verdict = await run.verdict()
            assert verdict.attempts == verdict.runs == RUNS

    drive(scenario)


def test_a_stopped_scheduler_that_wakes_up_after_its_lease_doubles_nothing() -> None:
    async def scenario() -> None:
        async with fault_run(schedulers=2) as run:
            await run.put_spread(RUNS, spread_ms=8000)
            await run.until_started(0.1)
            run.fleet.signal("scheduler-1", signal.SIGSTOP)
            await run.until_owned(1)
            await run.until_started(0.7)
            run.fleet.signal("scheduler-1", signal.SIGCONT)
            await run.until_owned(2)
            await run.until_settled()
            verdict = await run.verdict()
            assert verdict.attempts == verdict.runs == RUNS

    drive(scenario)
