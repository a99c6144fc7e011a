"""The value of a job: a text head, which scripts read with one match, a newline, and the definition as msgpack.

The head is `1|` and HEAD_FIELDS, then OPTIONAL_FIELDS, each behind a `|`, empty ones at the end left out. `window` is `ms` or
`ms,end`; `note` is percent-encoded.
"""

from __future__ import annotations

from typing import Literal, NamedTuple
from urllib.parse import quote, unquote

from rsched.core.jobs.model import Definition, MisfirePolicy, Overlap, decode_definition, encode_definition
from rsched.core.jobs.policies import MISFIRE_POLICIES, OVERLAP_POLICIES
from rsched.core.states import JOB_STATE_OF_CODE, JobState

ScheduleKind = Literal["o", "e", "c"]
# COMPUTED: its occurrences are computed by a scheduler and kept in the occurrence cache.
SCHEDULE_KINDS: dict[str, ScheduleKind] = {"INSTANT": "o", "INTERVAL": "e", "COMPUTED": "c"}

# The fields of a job head in their order, those that stand in every head and those behind them.
HEAD_FIELDS = (
    "state",
    "version",
    "schedule_version",
    "schedule_changed_at",
    "kind",
    "arg",
    "misfire",
    "grace_ms",
    "queue_key",
)
OPTIONAL_FIELDS = ("paused_from", "window", "overlap", "paused_until", "missed", "note", "keeps")

_MISFIRE_CODE: dict[str, str] = {policy.name: policy.code for policy in MISFIRE_POLICIES}
_MISFIRE_OF_CODE: dict[str, MisfirePolicy] = {policy.code: policy.name for policy in MISFIRE_POLICIES}  # type: ignore[misc]
_OVERLAP_CODE: dict[str, str] = {policy.name: policy.code for policy in OVERLAP_POLICIES}
_KINDS = frozenset(SCHEDULE_KINDS.values())
_REQUIRED = len(HEAD_FIELDS) + 1  # with the version of the format
_OPTIONAL = len(OPTIONAL_FIELDS)


class JobHead(NamedTuple):
    """What scripts know of a job.

    Attributes:
        state: Of the job.
        version: Grows with each change of the job.
        schedule_version: Grows with changes of the schedule, with pause and resume.
        schedule_changed_at: Instant (ms) of the last of those changes.
        kind: `o` one instant, `e` an interval, `c` occurrences that a scheduler computes.
        arg: Of `o` the instant (ms), of `e` `anchor,every` (ms), of `c` the schedule's id.
        misfire: The letter of the misfire policy; a capital where it has a catch-up window, so that even a one-off is looked at.
        grace_ms: An occurrence later than this is late.
        queue_key: queue:team:priority.
        paused_from: Of a paused job, the first occurrence (ms) that was not claimed before; 0 for none.
        window_ms: How long after its occurrence a run may start.
        end_ms: Before when (ms) it has to start, 0 for no end.
        overlap: The letter of the overlap policy, "" for allow.
        until: Of a paused job, when (ms) it resumes by itself, 0 for never.
        missed: The letter of what it does then about what was missed.
        note: Why it is paused.
        keeps: Catch-up ranges of this and later schedule versions stand, 0 for those of the present one alone.
    """

    state: JobState
    version: int
    schedule_version: int
    schedule_changed_at: int
    kind: ScheduleKind
    arg: str
    misfire: str
    grace_ms: int
    queue_key: str
    paused_from: int = 0
    window_ms: int = 0
    end_ms: int = 0
    overlap: str = ""
    until: int = 0
    missed: str = ""
    note: str = ""
    keeps: int = 0

    def pack(self) -> str:
        """Returns the head as text."""
        window = f"{self.window_ms},{self.end_ms}" if self.end_ms else str(self.window_ms)
        optional = [
            str(self.paused_from or ""),
            window if self.window_ms else "",
            self.overlap,
            str(self.until or ""),
            self.missed,
            pack_note(self.note),
            str(self.keeps or ""),
        ]
        while optional and not optional[-1]:
            optional.pop()
        return "|".join(
            (
                f"1|{self.state.code}|{self.version}|{self.schedule_version}|{self.schedule_changed_at}"
                f"|{self.kind}|{self.arg}|{self.misfire}|{self.grace_ms}|{self.queue_key}",
                *optional,
            )
        )


class JobRecord(NamedTuple):
    """A job as Redis and the ledger keep it."""

    head: JobHead
    definition: Definition

    def pack(self) -> bytes:
        """Returns the whole value of the job."""
        return self.head.pack().encode() + b"\n" + encode_definition(self.definition)


def pack_note(note: str) -> str:
    """Returns free text as a head can hold it."""
    return quote(note, safe="")


def misfire_code(policy: MisfirePolicy, *, windowed: bool = False) -> str:
    """Returns the letter of a misfire policy.

    Args:
        policy: Its name.
        windowed: It has a catch-up window.
    """
    return _MISFIRE_CODE[policy].upper() if windowed else _MISFIRE_CODE[policy]


def misfire_policy_of(code: str) -> MisfirePolicy:
    """Returns the misfire policy of a letter, small or capital. KeyError where there is none."""
    return _MISFIRE_OF_CODE[code.lower()]


def overlap_code(policy: Overlap) -> str:
    """Returns the letter of an overlap policy, "" for allow."""
    return _OVERLAP_CODE[policy]


def unpack_head(value: bytes) -> JobHead:
    """Reads the head alone; the value of a deleted job (its tombstone) has nothing else.

    Raises:
        ValueError: value is not a job record.
        KeyError: It has a state that there is none of.
    """
    head, separator, _ = value.partition(b"\n")
    fields = head.decode().split("|")
    if not separator or len(fields) < _REQUIRED or fields[0] != "1":
        raise ValueError(f"not a job record: {value[:80]!r}")
    _, state, version, schedule_version, schedule_changed_at, kind, arg, misfire, grace, queue_key = fields[:_REQUIRED]
    if kind not in _KINDS:
        raise ValueError(f"not a kind of schedule: {kind!r}")
    first = (
        JOB_STATE_OF_CODE[state],
        int(version),
        int(schedule_version),
        int(schedule_changed_at),
        kind,
        arg,
        misfire,
        int(grace),
        queue_key,
    )
    if len(fields) == _REQUIRED:  # as most are, and a background restore reads all of them
        return JobHead(*first)
    optional = (fields[_REQUIRED : _REQUIRED + _OPTIONAL] + [""] * _OPTIONAL)[:_OPTIONAL]
    paused_from, window, overlap, until, missed, note, keeps = optional
    window_ms, _, end_ms = window.partition(",")
    return JobHead(
        *first,
        int(paused_from or 0), int(window_ms or 0), int(end_ms or 0), overlap, int(until or 0), missed, unquote(note),
        int(keeps or 0),
    )  # fmt: skip


def unpack_job(value: bytes) -> JobRecord:
    """Reads a job.

    Raises:
        ValueError: value is not a job record, or has no definition (msgspec.DecodeError is one).
        KeyError: It has a state that there is none of.
    """
    return JobRecord(unpack_head(value), decode_definition(value.partition(b"\n")[2]))
