"""The record of a run: `1|` and the fields of RunRecord in their order, each behind a `|`."""

from __future__ import annotations

from typing import NamedTuple

from rsched.core.states import RUN_STATE_OF_CODE, RunState

FLAG_LAST = "L"  # no occurrence follows: the job completes when this run ends
FLAG_MANUAL = "M"
FLAG_CANCEL = "X"  # a cancel was asked for
FLAG_PAYLOAD = "P"  # has a payload of its own
FLAG_BACKFILL = "B"  # of a catch-up range: asked for by hand
# A lower-case letter among the flags: the overlap policy that the run is judged by; `a`, beside any others.
OVERLAP_ANYWAY = "a"
# For how long (ms) a trigger is repeated by its key.
KEYED_FOR_MS = 86_400_000


class RunRecord(NamedTuple):
    """A run as Redis and the ledger keep it. (fence, revision) orders all records of one run.

    Attributes:
        state: Of the run.
        revision: Grows with every move of the run.
        queue_key: queue:team:priority.
        schedule_version: Of its job when it was claimed.
        attempt: How many attempts there were.
        fence: Of the last attempt, 0 before the first.
        worker: Who has, or had, the last attempt.
        claimed_at: Instant (ms) when the occurrence was claimed.
        due_at: Instant (ms) when the attempt is due.
        started_at: Instant (ms) when the target was called, 0 before that.
        flags: FLAG_ letters, and the small letter of an overlap policy.
    """

    state: RunState
    revision: int
    queue_key: str
    schedule_version: int
    attempt: int
    fence: int
    worker: str
    claimed_at: int
    due_at: int
    started_at: int
    flags: str

    @property
    def lateness_ms(self) -> int | None:
        """From the instant the attempt was due to its start; None before it, also while a retry is waited for."""
        return self.started_at - self.due_at if self.started_at >= self.due_at > 0 else None

    def pack(self) -> str:
        """Returns the record as text."""
        return f"1|{self.state.code}|" + "|".join(map(str, self[1:]))


_LENGTH = len(RunRecord._fields) + 1  # with the version of the format


def unpack_run(text: str) -> RunRecord:
    """Reads the record of a run.

    Raises:
        ValueError: text is not a run record.
        KeyError: It has a state that there is none of.
    """
    fields = text.split("|")
    if len(fields) < _LENGTH or fields[0] != "1":
        raise ValueError(f"not a run record: {text[:120]!r}")
    _, state, revision, queue_key, schedule_version, attempt, fence, worker, claimed, due, started, flags = fields[
        :_LENGTH
    ]
    return RunRecord(
        RUN_STATE_OF_CODE[state], int(revision), queue_key, int(schedule_version), int(attempt), int(fence), worker,
        int(claimed), int(due), int(started), flags,
    )  # fmt: skip
