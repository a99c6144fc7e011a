"""The states of jobs and runs, and the one table of legal moves. Lua, SQL and the docs follow it and are tested against it."""

from __future__ import annotations

import enum
from typing import NamedTuple


class RunState(enum.StrEnum):
    """The states of a run; the values are those of the API."""

    QUEUED = "QUEUED"
    RUNNING = "RUNNING"
    RETRYING = "RETRYING"
    SUCCEEDED = "SUCCEEDED"
    DEAD = "DEAD"
    CANCELLED = "CANCELLED"
    SKIPPED = "SKIPPED"

    @property
    def code(self) -> str:
        """The one character that stands for the state in packed records."""
        return _RUN_CODES[self]

    @property
    def final(self) -> bool:
        """Whether a run in it has ended for good."""
        return self in FINAL


_RUN_CODES = {
    RunState.QUEUED: "Q",
    RunState.RUNNING: "R",
    RunState.RETRYING: "T",
    RunState.SUCCEEDED: "S",
    RunState.DEAD: "D",
    RunState.CANCELLED: "C",
    RunState.SKIPPED: "K",
}
RUN_STATE_OF_CODE = {code: state for state, code in _RUN_CODES.items()}
FINAL = frozenset({RunState.SUCCEEDED, RunState.DEAD, RunState.CANCELLED, RunState.SKIPPED})


class JobState(enum.StrEnum):
    """The states of a job; the values are those of the API."""

    ACTIVE = "active"
    PAUSED = "paused"
    COMPLETED = "completed"
    INVALID = "invalid"
    DELETED = "deleted"

    @property
    def code(self) -> str:
        """The one character that stands for the state in packed records."""
        return self.value[0]

    @property
    def rank(self) -> int:
        """Within one version a later state of a job outranks an earlier one, so that records may arrive in any order."""
        return _JOB_RANKS[self]


JOB_STATE_OF_CODE = {s.code: s for s in JobState}
_JOB_RANKS = {
    JobState.ACTIVE: 0,
    JobState.PAUSED: 0,
    JobState.INVALID: 1,
    JobState.COMPLETED: 1,
    JobState.DELETED: 2,
}


class Move(NamedTuple):
    """`verb` (a script) takes a run from `source` (None: no run yet) to `target`, if the caller presents `presents`."""

    verb: str
    source: RunState | None
    target: RunState
    presents: str


_Q, _R, _T = RunState.QUEUED, RunState.RUNNING, RunState.RETRYING
_S, _D, _C, _K = RunState.SUCCEEDED, RunState.DEAD, RunState.CANCELLED, RunState.SKIPPED

MOVES: tuple[Move, ...] = (
    Move("claim", None, _Q, "epoch of the partition"),
    Move("claim", _Q, _Q, "epoch of the partition; a newer schedule version"),
    Move("resolve_misfires", None, _Q, "schedule version and due time"),
    Move("catch_up", None, _Q, "schedule version and the range's position"),
    Move("resolve_misfires", _Q, _Q, "schedule version and due time; a newer schedule version"),
    Move("catch_up", _Q, _Q, "the range's position; a newer schedule version"),
    Move("resume", None, _Q, "version"),
    Move("resume", _Q, _Q, "version; a newer schedule version"),
    Move("resume", _Q, _K, "version; claimed ahead for after the pause"),
    Move("release", _Q, _K, "the instant; the overlap policy, with another run open"),
    Move("release", _T, _C, "the instant of a later run, for which it makes room"),
    Move("trigger", None, _Q, "nothing"),
    Move("fetch", _Q, _R, "a queue entry"),
    Move("fetch", _T, _R, "a queue entry"),
    Move("fetch", _Q, _K, "a queue entry; the job was paused or rescheduled after the claim"),
    Move("fetch", _T, _K, "a queue entry; the job was paused or rescheduled after the claim"),
    Move("fetch", _Q, _C, "a queue entry; the job was deleted"),
    Move("fetch", _T, _C, "a queue entry; the job was deleted"),
    Move("finish", _R, _S, "fence"),
    Move("finish", _R, _T, "fence"),
    Move("finish", _R, _D, "fence"),
    Move("finish", _R, _C, "fence; a cancel was asked for"),
    Move("requeue", _R, _Q, "fence; the attempt did not start"),
    Move("requeue", _R, _T, "fence; the attempt did not start"),
    Move("reap", _R, _T, "fence; the lease ended"),
    Move("reap", _R, _D, "fence; the lease ended"),
    Move("reap", _R, _C, "fence; the lease ended; a cancel was asked for"),
    Move("cancel", _Q, _C, "nothing"),
    Move("cancel", _T, _C, "nothing"),
    Move("adopt", None, _R, "fence; the shard lost its tail"),
    Move("adopt", _Q, _R, "fence; the shard lost its tail"),
    Move("adopt", _T, _R, "fence; the shard lost its tail"),
    Move("adopt", _R, _R, "a greater fence; the shard lost its tail"),
)
