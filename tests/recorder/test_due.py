from __future__ import annotations

import asyncio
from collections.abc import Sequence
from types import SimpleNamespace

from rsched.core.ids import JobId, partition_of
from rsched.core.jobs.packed import JobHead, JobRecord
from rsched.core.schedule.schedule import load
from rsched.core.states import JobState
from rsched.ledger.recovery.pages import DecidedRange, LedgerJob
from rsched.recorder.due_times import DueTimes, Nexts
from tests.ledger.events import T0, definition, job_id

MINUTE, HOUR = 60_000, 3_600_000
NAME = JobId(job_id("a"))


class FakeLedger:
    def __init__(self, known: dict[str, tuple[bool, int]], ranges: Sequence[DecidedRange] = ()) -> None:
        self.known, self.ranges = known, list(ranges)
        self.asked: list[int] = []
        self.recovery = SimpleNamespace(pages=self)

    async def runs_known(self, run_ids: Sequence[str], *, since: int) -> dict[str, tuple[bool, int]]:
        self.asked.append(len(run_ids))
        return {r: self.known[r] for r in run_ids if r in self.known}

    async def decided(self, dues: Sequence[tuple[JobId, int]]) -> dict[JobId, list[DecidedRange]]:
        return {job: self.ranges for job, _ in dues}


def stored(*, kind: str = "e", arg: str = f"{T0},{MINUTE}", state: JobState = JobState.ACTIVE,
           schedule_changed_at: int = T0 - 3_600_000,
           schedule_version: int = 1, until: int = 0, value: bytes | None = None) -> LedgerJob:  # fmt: skip
    d = definition("a")
    head = JobHead(state, 1, schedule_version, schedule_changed_at, kind, arg, "o", MINUTE, d.queue_key, until=until)  # type: ignore[arg-type]
    return LedgerJob(NAME, JobRecord(head, d).pack() if value is None else head.pack().encode() + b"\n" + value)


def due(
    job: LedgerJob, *, mark: int = 0, known: dict[str, tuple[bool, int]] | None = None, now: int = T0
) -> int | None:
    ledger = FakeLedger({f"{NAME}:{at}": found for at, found in (known or {}).items()})
    dues = DueTimes(ledger, marks={partition_of(NAME): mark}, calendars={}, now=now)  # type: ignore[arg-type]
    ((job_, at, value),) = asyncio.run(dues.of([job]))
    assert (job_, value) == (job.job_id, job.value)
    return at


def test_the_first_occurrence_that_was_not_claimed_is_due() -> None:
    assert due(stored(), mark=T0) == T0
    assert due(stored(), mark=T0 + 1) == T0 + MINUTE
    assert due(stored(schedule_changed_at=T0 + 3 * MINUTE), mark=T0) == T0 + 4 * MINUTE


def test_a_job_made_within_the_look_ahead_before_the_mark_is_due_from_its_making_on() -> None:
    # The mark was set before the job was made: none of its occurrences is claimed.
    assert due(stored(schedule_changed_at=T0 + 1000, arg=f"{T0},2000"), mark=T0 + 5000) == T0 + 2000


def test_an_occurrence_past_the_mark_that_has_a_run_is_not_claimed_again() -> None:
    known = {str(T0): (False, 1), str(T0 + MINUTE): (False, 1)}
    assert due(stored(), mark=T0, known=known) == T0 + 2 * MINUTE
    # Withdrawn by the change that the job has now: expected again; skipped under this very schedule: settled.
    assert due(stored(schedule_version=2), mark=T0, known={str(T0): (True, 1)}) == T0
    assert due(stored(schedule_version=2), mark=T0, known={str(T0): (True, 2)}) == T0 + MINUTE


def onward(
    job: LedgerJob, at: int, *, mark: int = 0, known: dict[str, tuple[bool, int]] | None = None,
    ranges: Sequence[DecidedRange] = (), now: int = T0,
) -> tuple[int | None, list[int]]:  # fmt: skip
    """When a job that Redis has as due at `at` is due, and how many runs the ledger was asked for, each time."""
    ledger = FakeLedger({f"{NAME}:{at}": found for at, found in (known or {}).items()}, ranges)
    dues = DueTimes(ledger, marks={partition_of(NAME): mark}, calendars={}, now=now)  # type: ignore[arg-type]
    ((_, due_at, _),) = asyncio.run(dues.onward([(job, at)]))
    return due_at, ledger.asked


def test_what_redis_has_as_due_moves_past_what_has_a_run_and_no_further() -> None:
    known = {str(T0 - n * MINUTE): (False, 1) for n in range(200)}
    begins = T0 - 199 * MINUTE
    early = stored(schedule_changed_at=begins - 1)
    assert onward(early, begins, known=known)[0] == T0 + MINUTE
    del known[str(T0 - 70 * MINUTE)]
    assert onward(early, begins, known=known)[0] == T0 - 70 * MINUTE
    assert onward(early, begins)[0] == begins
    assert onward(stored(kind="o", arg=str(T0)), T0, known={str(T0): (False, 1)})[0] is None
    # More at once each time, so that a long tail takes few questions.
    assert len(onward(early, begins, known={str(T0 - n * MINUTE): (False, 1) for n in range(200)})[1]) <= 6


def test_what_was_claimed_ahead_of_a_change_is_owed_under_the_changed_schedule() -> None:
    for not_started, due_at in ((True, T0), (False, T0 + MINUTE)):
        assert onward(stored(schedule_version=2), T0, known={str(T0): (not_started, 1)})[0] == due_at
        assert onward(stored(schedule_version=1), T0, known={str(T0): (not_started, 1)})[0] == T0 + MINUTE


def test_ranges_count_that_were_settled_under_the_schedule_as_it_is() -> None:
    skipped = DecidedRange(T0 - 9 * MINUTE, T0 - 3 * MINUTE, T0 - 2 * MINUTE, None)
    early = stored(schedule_changed_at=T0 - HOUR)
    assert onward(early, T0 - 9 * MINUTE, ranges=[skipped])[0] == T0 - 2 * MINUTE
    assert onward(early, T0 - 10 * MINUTE, ranges=[skipped])[0] == T0 - 10 * MINUTE
    assert onward(stored(schedule_changed_at=T0 - MINUTE), T0 - 9 * MINUTE, ranges=[skipped])[0] == T0 - 9 * MINUTE
    expected = skipped._replace(schedule_version=1)
    assert onward(early, T0 - 9 * MINUTE, ranges=[expected])[0] == T0 - 2 * MINUTE
    assert (
        onward(stored(schedule_changed_at=T0 - HOUR, schedule_version=2), T0 - 9 * MINUTE, ranges=[expected])[0]
        == T0 - 9 * MINUTE
    )
    known = {str(T0 - 2 * MINUTE): (False, 1)}
    assert onward(early, T0 - 9 * MINUTE, ranges=[expected], known=known)[0] == T0 - MINUTE


def test_marks_count_only_for_what_is_far_behind_them() -> None:
    early = stored(schedule_changed_at=T0 - 9 * HOUR)
    assert onward(early, T0 - 2 * HOUR, mark=T0 - HOUR)[0] == T0 - HOUR
    assert onward(early, T0 - HOUR, mark=T0 - HOUR + MINUTE)[0] == T0 - HOUR
    # Changed after the mark, so that it tells nothing about the job.
    assert onward(stored(schedule_changed_at=T0 - HOUR), T0 - HOUR + MINUTE, mark=T0 - HOUR)[0] == T0 - HOUR + MINUTE


def test_a_one_off_is_due_unless_it_has_a_run() -> None:
    once = stored(kind="o", arg=str(T0 + 5))
    assert due(once) == T0 + 5
    assert due(once, known={str(T0 + 5): (False, 1)}) is None


def test_jobs_that_are_not_active_are_due_only_for_the_end_of_their_pause() -> None:
    assert due(stored(state=JobState.PAUSED)) is None
    assert due(stored(state=JobState.PAUSED, until=T0 + 7)) is None
    assert due(stored(state=JobState.COMPLETED)) is None


def test_a_definition_that_cannot_be_read_is_due_at_once_so_that_it_is_invalidated() -> None:
    assert due(stored(kind="c", arg="x", value=b"junk"), mark=T0) == T0


def test_a_head_that_cannot_be_read_is_left_out() -> None:
    dues = DueTimes(FakeLedger({}), marks={}, calendars={}, now=T0)  # type: ignore[arg-type]
    assert asyncio.run(dues.of([LedgerJob(NAME, b"junk\n")])) == []


def test_nexts_answers_as_the_schedule_does_whatever_the_order() -> None:
    schedule = load(definition())
    nexts = Nexts(schedule)
    for t in (T0, T0 + 90_000, T0 + 1, T0 + 59_999, T0 + 60_000, T0 - 5, T0 + 200_000, T0 + 90_001, T0 + 150_000):
        assert nexts.after(t) == schedule.next_after(t)
