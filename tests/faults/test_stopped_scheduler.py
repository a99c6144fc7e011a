"""The scheduler stopped across 2 a.m.: each misfire policy does what it says, on real servers, to the occurrence.

RSCHED_LONG=1 stops it for 15 minutes across the next 2 a.m. there is anywhere (up to an hour of waiting); else a scene of jobs
that fire by seconds misses as much in some seconds.
"""

from __future__ import annotations

import os

import pytest

from tests.faults.api_run import with_api
from tests.faults.fault_run import drive
from tests.faults.outage import LONG, SHORT, Away, live_through, settings
from tests.faults.outage_check import problems

pytestmark = pytest.mark.faults

FORM = LONG if os.environ.get("RSCHED_LONG") == "1" else SHORT
# One start of the servers for both is enough where both are short.
WAYS: list[list[Away]] = [["killed"], ["stopped"]] if FORM is LONG else [["stopped", "killed"]]


@pytest.mark.timeout(6000 if FORM is LONG else 120)
@pytest.mark.parametrize("ways", WAYS, ids=" then ".join)
def test_what_a_stopped_scheduler_missed_is_settled_by_each_policy_and_nothing_is_lost_or_doubled(
    ways: list[Away],
) -> None:
    async def scenario() -> None:
        async with with_api(settings(FORM)) as (run, api):
            for away in ways:
                wrong, figures = problems(await live_through(run, api, FORM, away))
                assert not wrong, "\n".join([away, str(figures), *wrong])
                print(away, figures)  # of a long run people want the figures, with -s

    drive(scenario)
