"""The events of a journal entry: pairs of a kind, one letter, and a payload, text lines or bytes."""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import NamedTuple

from rsched.core.jobs.packed.run import RunRecord, unpack_run


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


class RunEvent(NamedTuple):
    """A run has moved.

    Attributes:
        run: Its id.
        record: As it is now.
        at: Instant of the event (ms).
        detail: An error or a reason, "" where there is none.
        was_due: When the attempt that ended was due (ms), where the record is already that of the next one; else 0.
    """

    run: str
    record: RunRecord
    at: int
    detail: str
    was_due: int = 0


class JobEvent(NamedTuple):
    """A job has changed; value as rsched.core.jobs.packed.head has it."""

    job: str
    value: bytes


class SkipEvent(NamedTuple):
    """Occurrences made no run.

    Attributes:
        job: Whose they are.
        first: The first of them (ms).
        last: The last of them (ms).
        total: How many; a lower bound where a change withdrew them before they were computed.
        reason: Why.
        at: When that was decided (ms).
    """

    job: str
    first: int
    last: int
    total: int
    reason: str
    at: int


class RangeEvent(NamedTuple):
    """A catch-up range as it is at `at`. Instants in ms.

    Attributes:
        job: Whose occurrences they are.
        made_at: When it was made.
        end: Its last occurrence.
        start: Its first occurrence that is pending; past end: all have their runs.
        schedule_version: Of the job when it was made.
        flags: Of the runs.
        at: Instant of the event.
    """

    job: str
    made_at: int
    end: int
    start: int
    schedule_version: int
    flags: str
    at: int


class CalendarEvent(NamedTuple):
    """A version of a team's holiday calendar; body b"": deleted."""

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
    """A worker serves these queues, separated by commas."""

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


def _run(payload: bytes) -> RunEvent:
    run, record, at, detail = payload.decode(errors="replace").split("\n", 3)
    at, _, was_due = at.partition(",")
    return RunEvent(run, unpack_run(record), int(at), detail, int(was_due or 0))


def _job(payload: bytes) -> JobEvent:
    job, _, value = payload.partition(b"\n")
    return JobEvent(job.decode(), value)


def _payload(payload: bytes) -> PayloadEvent:
    run, _, value = payload.partition(b"\n")
    return PayloadEvent(run.decode(), value)


def _calendar(payload: bytes) -> CalendarEvent:
    team, name, version, made_at, body = payload.split(b"\n", 4)
    return CalendarEvent(team.decode(), name.decode(), int(version), int(made_at), body)


def _lines(payload: bytes) -> list[str]:
    return payload.decode(errors="replace").split("\n")


def _skip(payload: bytes) -> SkipEvent:
    job, first, last, total, reason, at, *_ = _lines(payload)
    return SkipEvent(job, int(first), int(last), int(total), reason, int(at))


def _range(payload: bytes) -> RangeEvent:
    job, made_at, end, start, schedule_version, flags, at, *_ = _lines(payload)
    return RangeEvent(job, int(made_at), int(end), int(start), int(schedule_version), flags, int(at))


def _trigger(payload: bytes) -> TriggerEvent:
    job, key_hash, at, *_ = _lines(payload)
    return TriggerEvent(job, key_hash, int(at))


def _watermark(payload: bytes) -> WatermarkEvent:
    partition, ms, *_ = _lines(payload)
    return WatermarkEvent(int(partition), int(ms))


def _worker(payload: bytes) -> WorkerEvent:
    worker, queues, at, *_ = _lines(payload)
    return WorkerEvent(worker, queues, int(at))


def _quarantine(payload: bytes) -> QuarantineEvent:
    kind, key, at, *raw = _lines(payload)
    return QuarantineEvent(kind, key, "\n".join(raw), int(at))


_READERS: dict[bytes, Callable[[bytes], Event]] = {
    EventKind.RUN.value: _run,
    EventKind.JOB.value: _job,
    EventKind.SKIP.value: _skip,
    EventKind.RANGE.value: _range,
    EventKind.PAYLOAD.value: _payload,
    EventKind.CALENDAR.value: _calendar,
    EventKind.TRIGGER.value: _trigger,
    EventKind.WATERMARK.value: _watermark,
    EventKind.WORKER.value: _worker,
    EventKind.QUARANTINE.value: _quarantine,
}


def unpack_event(kind: bytes, payload: bytes) -> Event:
    """Reads one (kind, payload) pair of a journal entry.

    Raises:
        ValueError: The kind is unknown, or the payload is not of this kind.
        KeyError: The payload holds a run with a state that there is none of.
    """
    reader = _READERS.get(kind)
    if reader is None:
        raise ValueError(f"not a kind of event: {kind!r}")
    return reader(payload)
