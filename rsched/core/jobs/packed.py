"""The packed records of the data model: text heads that Lua parses with one match. Fields are only ever added at the end.

Job value: `1|state|version|schedule_version|schedule_changed_at|kind|arg|misfire|grace_ms|queue_key` + optional fields +
newline + msgpack body; the optional fields, each behind a `|`, empty ones at the end left out: paused_from, window (`ms` or
`ms,end`), overlap, until, missed, note, keeps.
Run record: `1|state|revision|queue_key|schedule_version|attempt|fence|worker|claimed_at|due_at|started_at|flags`.
Scripts read the same in parts of lua/lib that tools/lua_codes.py generates from here.
"""

from __future__ import annotations

import enum
from typing import Literal, NamedTuple
from urllib.parse import quote, unquote

from rsched.core.jobs.model import Definition, MisfirePolicy, Overlap, decode_definition, encode_definition
from rsched.core.states import JOB_STATE_OF_CODE, RUN_STATE_OF_CODE, JobState, RunState

ScheduleKind = Literal["o", "e", "c"]
# COMPUTED: its occurrences are computed by a scheduler and kept in the occurrence cache.
SCHEDULE_KINDS: dict[str, ScheduleKind] = {"INSTANT": "o", "INTERVAL": "e", "COMPUTED": "c"}
_MISFIRE_CODE: dict[MisfirePolicy, str] = {"run_once": "o", "run_all": "a", "skip": "s"}
_MISFIRE_OF_CODE = {code: policy for policy, code in _MISFIRE_CODE.items()}
_OVERLAP_CODE: dict[Overlap, str] = {
    "allow": "",
    "skip": "s",
    "queue_one": "q",
    "queue_all": "w",
    "cancel_running": "k",
}

FLAG_LAST = "L"  # no occurrence follows: the job completes when this run ends
FLAG_MANUAL = "M"
FLAG_CANCEL = "X"  # a cancel was asked for
FLAG_PAYLOAD = "P"  # has a payload of its own
FLAG_BACKFILL = "B"  # of a catch-up range: asked for by hand
# For how long a trigger is repeated by its key.
KEYED_FOR_MS = 86_400_000
# A lower-case letter among the flags: the overlap policy that the run is judged by; `a`, beside any others.
OVERLAP_ANYWAY = "a"

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


class EventKind(bytes, enum.Enum):
    """The kinds of events in a journal entry, each followed by its payload."""

    RUN = b"r"
    JOB = b"j"
    SKIP = b"k"
    RANGE = b"g"
    PAYLOAD = b"o"
    CALENDAR = b"c"
    TRIGGER = b"t"
    WATERMARK = b"w"
    WORKER = b"h"
    QUARANTINE = b"x"


class JobHead(NamedTuple):
    """schedule_version: bumped by changes of schedule, pause and resume; schedule_changed_at: instant (ms) of that change.

    kind and arg: `o` with the instant, `e` with `anchor,every` (ms), `c` with the schedule's id.
    misfire: o, a or s; a capital where the policy has a catch-up window, so that even a one-off is looked at.
    paused_from: of a paused job, the first occurrence (ms) that was not claimed before; 0 for none. window_ms: how long after
    its occurrence a run may start; end_ms: before when, 0 for no end. overlap: letter of the policy, "" for allow.
    until: of a paused job, when (ms) it resumes by itself, 0 for never; missed: what it does then about what was missed.
    keeps: catch-up ranges of this and later schedule versions stand, 0 for those of the present one alone.
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
        window = f"{self.window_ms},{self.end_ms}" if self.end_ms else str(self.window_ms)
        extras = [
            str(self.paused_from or ""),
            window if self.window_ms else "",
            self.overlap,
            str(self.until or ""),
            self.missed,
            pack_note(self.note),
            str(self.keeps or ""),
        ]
        while extras and not extras[-1]:
            extras.pop()
        return "|".join(
            (
                f"1|{self.state.code}|{self.version}|{self.schedule_version}|{self.schedule_changed_at}|{self.kind}|{self.arg}"
                f"|{self.misfire}|{self.grace_ms}|{self.queue_key}",
                *extras,
            )
        )


def pack_note(note: str) -> str:
    """Free text as a head can hold it."""
    return quote(note, safe="")


def misfire_code(policy: MisfirePolicy, *, windowed: bool = False) -> str:
    """windowed: it has a catch-up window."""
    return _MISFIRE_CODE[policy].upper() if windowed else _MISFIRE_CODE[policy]


def misfire_policy_of(code: str) -> MisfirePolicy:
    return _MISFIRE_OF_CODE[code.lower()]


def overlap_code(policy: Overlap) -> str:
    return _OVERLAP_CODE[policy]


class JobRecord(NamedTuple):
    """A job as Redis and the ledger keep it."""

    head: JobHead
    definition: Definition

    def pack(self) -> bytes:
        return self.head.pack().encode() + b"\n" + encode_definition(self.definition)


def unpack_head(value: bytes) -> JobHead:
    """The head alone; a deleted job's value (its tombstone) has nothing else. ValueError or KeyError where it is none."""
    head, separator, _ = value.partition(b"\n")
    fields = head.decode().split("|")
    if not separator or len(fields) < 10 or fields[0] != "1":
        raise ValueError(f"no job record: {value[:80]!r}")
    _, state, version, schedule_version, schedule_changed_at, kind, arg, misfire, grace, queue_key = fields[:10]
    if kind not in ("o", "e", "c"):
        raise ValueError(f"no schedule kind: {kind!r}")
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
    if len(fields) == 10:  # as most are, and a background restore reads all of them
        return JobHead(*first)  # type: ignore[arg-type]
    paused_from, window, overlap, until, missed, note, keeps = (fields[10:17] + [""] * 7)[:7]
    window_ms, _, end_ms = window.partition(",")
    return JobHead(
        *first,  # type: ignore[arg-type]
        int(paused_from or 0), int(window_ms or 0), int(end_ms or 0), overlap, int(until or 0), missed, unquote(note),
        int(keeps or 0),
    )  # fmt: skip


def unpack_job(value: bytes) -> JobRecord:
    """ValueError (msgspec.DecodeError is one) or KeyError where value is no job record."""
    return JobRecord(unpack_head(value), decode_definition(value.partition(b"\n")[2]))


class RunRecord(NamedTuple):
    """revision: grows with every move of the run; (fence, revision) orders all records of one run."""

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
        return f"1|{self.state.code}|" + "|".join(map(str, self[1:]))


def unpack_run(text: str) -> RunRecord:
    """ValueError or KeyError where text is no run record."""
    fields = text.split("|")
    if len(fields) < 12 or fields[0] != "1":
        raise ValueError(f"no run record: {text[:120]!r}")
    _, state, revision, queue_key, schedule_version, attempt, fence, worker, claimed, due, started, flags = fields[:12]
    return RunRecord(
        RUN_STATE_OF_CODE[state], int(revision), queue_key, int(schedule_version), int(attempt), int(fence), worker,
        int(claimed), int(due), int(started), flags,
    )  # fmt: skip


class RunEvent(NamedTuple):
    """at: instant of the event (ms); detail: error or reason, "" where there is none. was_due: when the attempt that ended was
    due (ms), where the record is already that of the next one; 0 elsewhere.
    """

    run: str
    record: RunRecord
    at: int
    detail: str
    was_due: int = 0


class JobEvent(NamedTuple):
    job: str
    value: bytes


class SkipEvent(NamedTuple):
    """total occurrences in first..last (ms, both included) made no run, for `reason`.

    Where they could not be counted (a change withdrew them before they were computed) total is a lower bound.
    """

    job: str
    first: int
    last: int
    total: int
    reason: str
    at: int


class RangeEvent(NamedTuple):
    """A catch-up range (ms, both ends occurrences) that was made at made_at, as it is at `at`; start past end: paid out."""

    job: str
    made_at: int
    end: int
    start: int
    schedule_version: int
    flags: str
    at: int


class CalendarEvent(NamedTuple):
    """A version of a team's calendar of exclusions; body b"": deleted."""

    team: str
    name: str
    version: int
    at: int
    body: bytes


class PayloadEvent(NamedTuple):
    """A run has a payload of its own (msgpack)."""

    run: str
    payload: bytes


class TriggerEvent(NamedTuple):
    """A trigger with an idempotency key, as a hash, made the manual run of `at` (ms)."""

    job: str
    hash: str
    at: int


class WatermarkEvent(NamedTuple):
    """All occurrences of the partition before ms have been claimed."""

    partition: int
    ms: int


class WorkerEvent(NamedTuple):
    worker: str
    queues: str
    at: int


class QuarantineEvent(NamedTuple):
    """An entry that could not be read and was quarantined."""

    kind: str
    key: str
    raw: str
    at: int


Event = (
    RunEvent
    | JobEvent
    | SkipEvent
    | RangeEvent
    | CalendarEvent
    | PayloadEvent
    | TriggerEvent
    | WatermarkEvent
    | WorkerEvent
    | QuarantineEvent
)


def unpack_event(kind: bytes, payload: bytes) -> Event:
    """One (kind, payload) pair of a journal entry. ValueError or KeyError where it is none."""
    if kind == EventKind.RUN:
        run, record, at, detail = payload.decode(errors="replace").split("\n", 3)
        at, _, was_due = at.partition(",")
        return RunEvent(run, unpack_run(record), int(at), detail, int(was_due or 0))
    if kind == EventKind.JOB:
        job, _, value = payload.partition(b"\n")
        return JobEvent(job.decode(), value)
    if kind == EventKind.PAYLOAD:
        run_id, _, value = payload.partition(b"\n")
        return PayloadEvent(run_id.decode(), value)
    if kind == EventKind.CALENDAR:
        team, name, version, made, value = payload.split(b"\n", 4)
        return CalendarEvent(team.decode(), name.decode(), int(version), int(made), value)
    text = payload.decode(errors="replace").split("\n")
    if kind == EventKind.WATERMARK:
        return WatermarkEvent(int(text[0]), int(text[1]))
    if kind == EventKind.SKIP:
        return SkipEvent(text[0], int(text[1]), int(text[2]), int(text[3]), text[4], int(text[5]))
    if kind == EventKind.RANGE:
        return RangeEvent(text[0], int(text[1]), int(text[2]), int(text[3]), int(text[4]), text[5], int(text[6]))
    if kind == EventKind.TRIGGER:
        return TriggerEvent(text[0], text[1], int(text[2]))
    if kind == EventKind.WORKER:
        return WorkerEvent(text[0], text[1], int(text[2]))
    if kind == EventKind.QUARANTINE:
        return QuarantineEvent(text[0], text[1], "\n".join(text[3:]), int(text[2]))
    raise ValueError(f"no event kind: {kind!r}")
