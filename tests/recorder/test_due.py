from __future__ import annotations

import asyncio
from collections.abc import Sequence

from rsched.core.ids import JobId, partition_of
from rsched.core.packed import JobHead, JobRecord
from rsched.core.schedule import load
from rsched.core.states import JobState
from rsched.ledger.rebuild import LedgerJob
from rsched.recorder.due import DueTimes, Nexts
from tests.ledger.events import T0, definition, job_id

MINUTE = 60_000
NAME = JobId(job_id("a"))


class FakeLedger:
    def __init__(self, known: dict[str, tuple[bool, int]]) -> None:
        self.known = known

    async def runs_known(self, run_ids: Sequence[str]) -> dict[str, tuple[bool, int]]:
        return {r: self.known[r] for r in run_ids if r in self.known}


def stored(*, kind: str = "e", arg: str = f"{T0},{MINUTE}", state: JobState = JobState.ACTIVE, sv_at: int = T0 - 3_600_000,
           sv: int = 1, until: int = 0, value: bytes | None = None) -> LedgerJob:  # fmt: skip
    d = definition("a")
    head = JobHead(state, 1, sv, sv_at, kind, arg, "o", MINUTE, d.lane, until=until)  # type: ignore[arg-type]
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
    assert due(stored(sv_at=T0 + 3 * MINUTE), mark=T0) == T0 + 4 * MINUTE


def test_a_job_made_within_the_look_ahead_before_the_mark_is_due_from_its_making_on() -> None:
    # The mark was set before the job was made: none of its occurrences is claimed.
    assert due(stored(sv_at=T0 + 1000, arg=f"{T0},2000"), mark=T0 + 5000) == T0 + 2000


def test_an_occurrence_past_the_mark_that_has_a_run_is_not_claimed_again() -> None:
    known = {str(T0): (False, 1), str(T0 + MINUTE): (False, 1)}
    assert due(stored(), mark=T0, known=known) == T0 + 2 * MINUTE
    # Withdrawn by the change that the job has now: owed again; skipped under this very schedule: settled.
    assert due(stored(sv=2), mark=T0, known={str(T0): (True, 1)}) == T0
    assert due(stored(sv=2), mark=T0, known={str(T0): (True, 2)}) == T0 + MINUTE


def test_a_one_off_is_due_unless_it_has_a_run() -> None:
    once = stored(kind="o", arg=str(T0 + 5))
    assert due(once) == T0 + 5
    assert due(once, known={str(T0 + 5): (False, 1)}) is None


def test_jobs_that_are_not_active_are_due_only_for_the_end_of_their_pause() -> None:
    assert due(stored(state=JobState.PAUSED)) is None
    assert due(stored(state=JobState.PAUSED, until=T0 + 7)) is None
    assert due(stored(state=JobState.COMPLETED)) is None


def test_a_definition_that_cannot_be_read_is_due_at_once_so_that_it_is_parked() -> None:
    assert due(stored(kind="c", arg="x", value=b"junk"), mark=T0) == T0


def test_a_head_that_cannot_be_read_is_left_out() -> None:
    dues = DueTimes(FakeLedger({}), marks={}, calendars={}, now=T0)  # type: ignore[arg-type]
    assert asyncio.run(dues.of([LedgerJob(NAME, b"junk\n")])) == []


def test_nexts_answers_as_the_schedule_does_whatever_the_order() -> None:
    schedule = load(definition())
    nexts = Nexts(schedule)
    for t in (T0, T0 + 90_000, T0 + 1, T0 + 59_999, T0 + 60_000, T0 - 5, T0 + 200_000, T0 + 90_001, T0 + 150_000):
        assert nexts.after(t) == schedule.next_after(t)
