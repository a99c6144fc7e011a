"""kill -9 below `rsched up`, whose supervisor starts again what died, or is told not to."""

from __future__ import annotations

import pytest

from tests.faults.fault_run import RUNS, drive
from tests.faults.supervised import supervised_run

pytestmark = pytest.mark.faults


@pytest.mark.parametrize("name", ["scheduler", "worker-1", "recorder"])
def test_what_is_killed_is_started_again_and_nothing_is_lost(name: str) -> None:
    async def scenario() -> None:
        async with supervised_run(restart=True) as run:
            await run.put_spread(RUNS, function="steady")
            await run.until_started(0.3)
            old = await run.kill_supervised(name)
            await run.until_started_again(name, old)
            await run.until_settled()
            await run.verdict()

    drive(scenario)


@pytest.mark.parametrize(
    ("name", "spares"), [("scheduler", ["scheduler-2"]), ("worker-1", []), ("recorder", ["recorder-2"])]
)
def test_what_is_killed_and_stays_dead_is_stood_in_for_and_nothing_is_lost(name: str, spares: list[str]) -> None:
    async def scenario() -> None:
        async with supervised_run(restart=False, spares=spares) as run:
            await run.put_spread(RUNS, function="steady")
            await run.until_started(0.3)
            old = await run.kill_supervised(name)
            await run.until_settled()
            await run.verdict()
            assert run.pids().get(name, old) == old

    drive(scenario)
