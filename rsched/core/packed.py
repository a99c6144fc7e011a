"""The packed records of the data model: text heads that Lua parses with one match. Fields are only ever added at the end.

Job value: `1|state|version|sv|sv_at|kind|arg|misfire|grace_ms|lane[|paused_from]` + newline + msgpack body. Run record:
`1|state|rev|lane|sv|attempt|fence|worker|claimed_at|due_at|started_at|flags`. lua/lib/head_parse.lua and run_parse.lua
read the same; tests hold both sides against each other.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from rsched.core.model import Definition, MisfirePolicy, decode_definition, encode_definition
from rsched.core.states import JOB_STATE_OF_CODE, RUN_STATE_OF_CODE, JobState, RunState

ScheduleKind = Literal["o", "e", "c"]
_MISFIRE_CODE: dict[MisfirePolicy, str] = {"run_once": "o", "run_all": "a", "skip": "s"}

FLAG_LAST = "L"  # no occurrence follows: the job completes when this run ends
FLAG_MANUAL = "M"
FLAG_CANCEL = "X"  # a cancel was asked for


class JobHead(NamedTuple):
    """sv: schedule version, bumped by changes of schedule, pause and resume; sv_at: instant (ms) of that change.

    kind and arg: `o` with the instant, `e` with `anchor,every` (ms), `c` with the schedule's id.
    paused_from: of a paused job, the first occurrence (ms) that was not claimed before; 0 for none.
    """

    state: JobState
    version: int
    sv: int
    sv_at: int
    kind: ScheduleKind
    arg: str
    misfire: str
    grace_ms: int
    lane: str
    paused_from: int = 0

    def pack(self) -> str:
        paused = f"|{self.paused_from}" if self.paused_from else ""
        return (
            f"1|{self.state.code}|{self.version}|{self.sv}|{self.sv_at}|{self.kind}|{self.arg}"
            f"|{self.misfire}|{self.grace_ms}|{self.lane}{paused}"
        )


def misfire_code(policy: MisfirePolicy) -> str:
    return _MISFIRE_CODE[policy]


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
    _, state, version, sv, sv_at, kind, arg, misfire, grace, lane = fields[:10]
    if kind not in ("o", "e", "c"):
        raise ValueError(f"no schedule kind: {kind!r}")
    paused_from = int(fields[10]) if len(fields) > 10 and fields[10] else 0
    return JobHead(
        JOB_STATE_OF_CODE[state], int(version), int(sv), int(sv_at), kind, arg, misfire, int(grace), lane, paused_from,  # type: ignore[arg-type]
    )  # fmt: skip


def unpack_job(value: bytes) -> JobRecord:
    """ValueError (msgspec.DecodeError is one) or KeyError where value is no job record."""
    return JobRecord(unpack_head(value), decode_definition(value.partition(b"\n")[2]))


class RunRecord(NamedTuple):
    """rev: grows with every move of the run; (fence, rev) orders all records of one run."""

    state: RunState
    rev: int
    lane: str
    sv: int
    attempt: int
    fence: int
    worker: str
    claimed_at: int
    due_at: int
    started_at: int
    flags: str

    def pack(self) -> str:
        return f"1|{self.state.code}|" + "|".join(map(str, self[1:]))


def unpack_run(text: str) -> RunRecord:
    """ValueError or KeyError where text is no run record."""
    fields = text.split("|")
    if len(fields) < 12 or fields[0] != "1":
        raise ValueError(f"no run record: {text[:120]!r}")
    _, state, rev, lane, sv, attempt, fence, worker, claimed, due, started, flags = fields[:12]
    return RunRecord(
        RUN_STATE_OF_CODE[state], int(rev), lane, int(sv), int(attempt), int(fence), worker,
        int(claimed), int(due), int(started), flags,
    )  # fmt: skip


class RunEvent(NamedTuple):
    """at: instant of the event (ms); detail: error or reason, "" where there is none."""

    run: str
    record: RunRecord
    at: int
    detail: str


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


class WatermarkEvent(NamedTuple):
    """All occurrences of the partition before ms have been claimed."""

    partition: int
    ms: int


class WorkerEvent(NamedTuple):
    worker: str
    queues: str
    at: int


class PoisonEvent(NamedTuple):
    """An entry that could not be read and was set aside."""

    kind: str
    key: str
    raw: str
    at: int


Event = RunEvent | JobEvent | SkipEvent | WatermarkEvent | WorkerEvent | PoisonEvent


def unpack_event(kind: bytes, payload: bytes) -> Event:
    """One (kind, payload) pair of a journal entry. ValueError or KeyError where it is none."""
    if kind == b"r":
        run, record, at, detail = payload.decode(errors="replace").split("\n", 3)
        return RunEvent(run, unpack_run(record), int(at), detail)
    if kind == b"j":
        job, _, value = payload.partition(b"\n")
        return JobEvent(job.decode(), value)
    text = payload.decode(errors="replace").split("\n")
    if kind == b"w":
        return WatermarkEvent(int(text[0]), int(text[1]))
    if kind == b"k":
        return SkipEvent(text[0], int(text[1]), int(text[2]), int(text[3]), text[4], int(text[5]))
    if kind == b"h":
        return WorkerEvent(text[0], text[1], int(text[2]))
    if kind == b"x":
        return PoisonEvent(text[0], text[1], "\n".join(text[3:]), int(text[2]))
    raise ValueError(f"no event kind: {kind!r}")
