"""What each misfire policy makes of occurrences that were missed; every one is a run, in a range, or on record."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rsched.core.ids import derive_job_id
from rsched.core.jobs.model import ScheduleSpec
from rsched.core.jobs.packed import JobHead, JobRecord, misfire_code
from rsched.core.schedule.schedule import Interval, OneOff
from rsched.core.states import JobState
from rsched.scheduler.claim import misfire_item
from tests.support.factories import make_definition

JOB = derive_job_id("default", "job", 1)
START = 1_793_000_000_000
HOUR = 3_600_000


def record(policy: str, *, grace_ms: int = 60_000) -> JobRecord:
    definition = make_definition(
        "job", schedule=ScheduleSpec(every="1h"), misfire_policy=policy, created_at=START, updated_at=START
    )
    head = JobHead(
        JobState.ACTIVE, 1, 1, START, "e", f"{START},{HOUR}", misfire_code(policy), grace_ms, definition.queue_key
    )  # type: ignore[arg-type]
    return JobRecord(head, definition)


hourly = Interval(anchor_ms=START, every_ms=HOUR)


def test_run_once_runs_the_latest_missed_occurrence_and_records_the_ones_before() -> None:
    item = misfire_item(record("run_once"), hourly, due=START, now=START + 5 * HOUR + 70_000, job=JOB)
    assert item.run_at == START + 5 * HOUR
    assert (item.first, item.last, item.skipped) == (START, START + 4 * HOUR, 5)
    assert item.following == START + 6 * HOUR
    assert item.catch_up is None


def test_run_once_with_one_missed_occurrence_records_no_skip() -> None:
    item = misfire_item(record("run_once"), hourly, due=START, now=START + 70_000, job=JOB)
    assert (item.run_at, item.skipped, item.following) == (START, 0, START + HOUR)


def test_skip_records_what_is_later_than_the_grace_and_leaves_the_rest_due() -> None:
    item = misfire_item(record("skip"), hourly, due=START, now=START + 2 * HOUR + 30_000, job=JOB)
    assert item.run_at is None
    assert (item.first, item.last, item.skipped) == (START, START + HOUR, 2)
    assert item.following == START + 2 * HOUR  # 30 s late: within the grace, so it still runs


def test_run_all_makes_a_catch_up_range_of_everything_later_than_the_grace() -> None:
    item = misfire_item(record("run_all"), hourly, due=START, now=START + 3 * HOUR + 70_000, job=JOB)
    assert (item.catch_up, item.skipped, item.run_at) == ((START, START + 3 * HOUR), 0, None)
    assert item.following == START + 4 * HOUR


def test_a_missed_one_off_that_skips_ends_without_a_run() -> None:
    item = misfire_item(record("skip"), OneOff(START), due=START, now=START + HOUR, job=JOB)
    assert (item.run_at, item.following, item.catch_up) == (None, None, None)
    assert (item.first, item.last, item.skipped) == (START, START, 1)


@given(
    st.sampled_from(["run_once", "run_all", "skip"]),
    st.integers(1_000, 10 * HOUR),
    st.integers(60_001, 40 * HOUR),
)
def test_every_missed_occurrence_is_accounted_for(policy: str, every: int, late: int) -> None:
    schedule = Interval(anchor_ms=START, every_ms=every)
    item = misfire_item(record(policy), schedule, due=START, now=START + late, job=JOB)
    assert item.following is not None
    expected = schedule.missed(START - 1, item.following - 1).count
    paid = schedule.missed(item.catch_up[0] - 1, item.catch_up[1]).count if item.catch_up else 0
    assert item.skipped + (item.run_at is not None) + paid == expected
    # The due time leaves the past, or stays within the grace.
    assert item.following > START + late - 60_000
