"""The row of a job: columns that people and indexes need, from the record that Redis has."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from rsched.core.jobs.model import Definition, HttpTarget, decode_definition
from rsched.core.jobs.packed import JobEvent, JobHead, unpack_head
from rsched.core.states import JobState
from rsched.ledger.keys import timestamp

_DIGITS = 16
# Past it Postgres has no timestamps: in the year 287,000.
_LATEST_MS = 9_000_000_000_000_000


class JobRow(NamedTuple):
    """The columns of staged_jobs, in order. team None: a tombstone, whose row keeps its own definition."""

    job_id: str
    shard: str
    team: str | None
    name: str | None
    idempotency_key: str | None
    incarnation: int
    state: str
    version: int
    state_rank: int
    tags: list[str] | None
    created_at: int
    updated_at: int
    ended_at: int | None
    schedule_kind: bytes
    due_once_at: int | None
    interval_ms: int | None
    phase_ms: int | None
    schedule_key: str | None
    schedule: str | None
    target: str | None
    value: bytes


def job_row(event: JobEvent, *, shard: str, now_ms: int, before: JobRow | None) -> JobRow | None:
    """Makes the row of a job from its event.

    Args:
        event: What became of the job.
        shard: The job's shard.
        now_ms: The recorder's clock (ms).
        before: The row that the batch has of the job already.

    Returns:
        The row, or None where the one before is later.

    Raises:
        ValueError, KeyError: The value is not a job's record.
    """
    head = unpack_head(event.value)
    if before is not None and (before.version, before.state_rank) > (head.version, head.state.rank):
        return None
    ended = head.state in (JobState.COMPLETED, JobState.DELETED)
    body = event.value.partition(b"\n")[2]
    if body:
        row = _of_definition(event, decode_definition(body), shard=shard)
    elif before is not None and before.team is not None:
        # A tombstone: the definition stays, be it in this batch or in the table (team None tells).
        row = before._replace(value=event.value + before.value.partition(b"\n")[2])
    else:
        row = _tombstone(event, shard=shard)
    due_once, interval, phase, key = _due_columns(head)
    return row._replace(
        state=head.state.value,
        version=head.version,
        state_rank=head.state.rank,
        ended_at=timestamp(now_ms) if ended else None,
        schedule_kind=head.kind.encode(),
        due_once_at=due_once,
        interval_ms=interval,
        phase_ms=phase,
        schedule_key=key,
    )


def _of_definition(event: JobEvent, d: Definition, *, shard: str) -> JobRow:
    return JobRow(
        event.job, shard, d.team, d.name, d.key, d.incarnation, "", 0, 0, list(d.tags) or None, timestamp(d.created_at),
        timestamp(d.updated_at), None, b"", None, None, None, None, _json(_schedule_of(d)), _json(_target_of(d)), event.value,
    )  # fmt: skip


def _tombstone(event: JobEvent, *, shard: str) -> JobRow:
    return JobRow(event.job, shard, None, None, None, 0, "", 0, 0, None, 0, 0, None, b"", None, None, None, None, None,
                  None, event.value)  # fmt: skip


def _due_columns(head: JobHead) -> tuple[int | None, int | None, int | None, str | None]:
    """Returns what a restore finds an active job by; all None where the head's text is not as it should be."""
    if head.kind == "c":
        return None, None, None, head.arg
    first, _, second = head.arg.partition(",")
    if head.kind == "o":
        at = _number(head.arg)
        return (timestamp(at) if at is not None and at < _LATEST_MS else None), None, None, None
    anchor, every = _number(first), _number(second)
    if anchor is None or every is None or every <= 0:
        return None, None, None, None
    return None, every, anchor % every, None


def _number(text: str) -> int | None:
    digits = text.removeprefix("-")
    return int(text) if digits.isascii() and digits.isdecimal() and len(digits) <= _DIGITS else None


def _schedule_of(d: Definition) -> object:
    return d.schedules if d.schedules else d.schedule


def _target_of(d: Definition) -> object:
    # Headers may hold secrets, which whoever may query the table is not to see.
    return msgspec.structs.replace(d.target, headers={}) if isinstance(d.target, HttpTarget) else d.target


def _json(value: object) -> str | None:
    if value is None:
        return None
    # jsonb takes no NUL, which is legal in JSON.
    return msgspec.json.encode(value).decode().replace("\\u0000", "\\ufffd")
