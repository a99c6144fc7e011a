"""The checker finds each breach in a made-up history, and none in a good one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.checker import Recorded, Seen, Skipped, Verdict, check, read_seen

JOB = "j_0000000000000"
RUN = f"{JOB}:1000"


def start(attempt: int, fence: int, *, at: float = 1001, pid: int = 7) -> Seen:
    return Seen("start", at, pid, RUN, attempt, fence)


def end(attempt: int, fence: int, *, at: float = 1005, pid: int = 7, kind: str = "end") -> Seen:
    return Seen(kind, at, pid, RUN, attempt, fence)


def row(fence: int = 5, *, state: str = "SUCCEEDED", attempt: int = 1, started_at: int = 1001) -> Recorded:
    return Recorded(RUN, state, attempt, fence, 1000, started_at)


def judge(seen: list[Seen], *rows: Recorded, skips: tuple[Skipped, ...] = ()) -> Verdict:
    return check(seen, rows, expected={JOB: [1000]}, skips=skips)


def whats(verdict: Verdict) -> set[str]:
    return {b.what for b in verdict.breaches}


def test_a_plain_run_is_no_breach() -> None:
    verdict = judge([start(1, 5), end(1, 5)], row())
    assert (verdict.breaches, verdict.runs, verdict.attempts, verdict.repeated) == ([], 1, 1, 0)


def test_an_attempt_after_a_killed_worker_is_no_breach() -> None:
    seen = [start(1, 5), Seen("killed", 1002, 7), start(2, 6, pid=8), end(2, 6, pid=8)]
    assert judge(seen, row(6, attempt=2)).breaches == []


def test_two_attempts_that_both_ended_are_repeated_and_no_breach() -> None:
    seen = [start(1, 5), end(1, 5), start(2, 6, pid=8), end(2, 6, pid=8)]
    verdict = judge(seen, row(6, attempt=2))
    assert (verdict.breaches, verdict.repeated) == ([], 1)


def test_a_stopped_worker_that_only_takes_its_attempt_back_is_no_breach() -> None:
    seen = [start(1, 5), Seen("stopped", 1002, 7), start(2, 6, pid=8), end(2, 6, pid=8), end(1, 5, kind="cancelled")]
    assert judge(seen, row(6, attempt=2)).breaches == []


def test_a_stopped_worker_that_goes_on_is_found() -> None:
    seen = [start(1, 5), Seen("stopped", 1002, 7), start(2, 6, pid=8), end(2, 6, pid=8), end(1, 5)]
    assert whats(judge(seen, row(6, attempt=2))) == {"low_fence", "overlap"}


def test_an_overlap_is_found() -> None:
    seen = [start(1, 5), start(2, 6, pid=8), end(1, 5, kind="cancelled"), end(2, 6, pid=8)]
    assert whats(judge(seen, row(6, attempt=2))) == {"overlap"}


def test_an_attempt_that_never_ended_overlaps_the_next() -> None:
    seen = [start(1, 5), start(2, 6, pid=8), end(2, 6, pid=8)]
    assert whats(judge(seen, row(6, attempt=2))) == {"overlap"}


def test_a_fence_that_does_not_rise_is_found() -> None:
    seen = [start(1, 5), end(1, 5), start(2, 5, pid=8), end(2, 5, pid=8)]
    assert whats(judge(seen, row(5, attempt=2))) == {"fence"}


def test_an_effect_under_a_lower_fence_is_found() -> None:
    seen = [start(2, 6), end(2, 6), start(1, 5, pid=8), end(1, 5, pid=8)]
    assert whats(judge(seen, row(6, attempt=2))) == {"fence", "low_fence"}


def test_a_ledger_behind_the_last_fence_seen_is_found() -> None:
    seen = [start(1, 5), end(1, 5), start(2, 6), end(2, 6)]
    assert whats(judge(seen, row(5))) == {"fence"}


@pytest.mark.parametrize(
    ("seen", "recorded"),
    [([start(1, 5, at=999.5), end(1, 5)], row()), ([start(1, 5), end(1, 5)], row(started_at=999))],
)
def test_an_early_start_is_found(seen: list[Seen], recorded: Recorded) -> None:
    assert whats(judge(seen, recorded)) == {"early"}


def test_a_lost_occurrence_is_found() -> None:
    assert whats(judge([])) == {"lost"}


def test_a_run_that_the_ledger_does_not_know_is_found() -> None:
    assert whats(judge([start(1, 5), end(1, 5)], skips=(Skipped(JOB, 900, 1100),))) == {"lost"}


def test_a_recorded_skip_settles_an_occurrence() -> None:
    assert judge([], skips=(Skipped(JOB, 900, 1000),)).breaches == []


def test_a_run_and_a_skip_of_one_occurrence_are_found() -> None:
    assert whats(judge([start(1, 5), end(1, 5)], row(), skips=(Skipped(JOB, 1000, 1000),))) == {"twice"}


def test_two_rows_of_one_run_are_found() -> None:
    assert whats(judge([start(1, 5), end(1, 5)], row(), row())) == {"twice"}


def test_an_unfinished_run_is_found() -> None:
    assert whats(judge([start(1, 5)], row(state="RUNNING"))) == {"unfinished"}


def test_a_success_that_no_target_saw_is_found() -> None:
    assert whats(judge([], row())) == {"unseen"}


def test_a_run_that_nobody_owed_is_found() -> None:
    extra = Recorded(f"{JOB}:2000", "DEAD", 1, 9, 2000, 2001)
    assert whats(judge([start(1, 5), end(1, 5)], row(), extra)) == {"unexpected"}


def test_what_was_seen_is_read_back(tmp_path: Path) -> None:
    path = tmp_path / "seen"
    path.write_text(json.dumps(start(1, 5)._asdict()) + "\n" + '{"kind": "killed", "pid": 7, "at": 9}\n')
    assert read_seen(path) == [start(1, 5), Seen("killed", 9, 7)]


def test_a_line_that_is_none_is_refused_with_its_number(tmp_path: Path) -> None:
    path = tmp_path / "seen"
    path.write_text("{}\n")
    with pytest.raises(ValueError, match=r"seen:1"):
        read_seen(path)
