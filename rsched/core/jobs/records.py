"""From a JobSpec to the record that Redis and the ledger keep, and whether two requests ask for the same."""

from __future__ import annotations

import hashlib

import msgspec

from rsched.core.durations import parse_duration
from rsched.core.errors import FieldError, TooLarge, invalid
from rsched.core.jobs.model import MAX_DEFINITION_BYTES, Definition, JobSpec, encode_definition, shared_fields
from rsched.core.jobs.packed import JobHead, JobRecord, misfire_code, overlap_code
from rsched.core.schedule import schedule as schedules
from rsched.core.schedule.parsed import ParsedSchedules
from rsched.core.schedule.schedule import Calendars, Resolved, Schedule
from rsched.core.states import JobState

_encode = msgspec.json.Encoder(order="sorted").encode


def body_hash(spec: JobSpec) -> str:
    """The same for two requests that ask for the same job, whatever their spelling, order and left-out defaults."""
    return hashlib.blake2b(_encode(spec), digest_size=12).hexdigest()


# A record's body_hash holds the creating request's hash and, after a PUT, that of the last one behind a dot: a late
# repeat of the create and a repeat of the PUT are both known again.
def is_created_by(definition: Definition, request_hash: str) -> bool:
    """Returns whether a request with this hash created the job."""
    return definition.body_hash.partition(".")[0] == request_hash


def is_last_put_by(definition: Definition, request_hash: str) -> bool:
    """Returns whether a request with this hash made the version that there is."""
    return definition.body_hash.rpartition(".")[2] == request_hash


def hash_after_put(before: Definition, request_hash: str) -> str:
    """Returns the body_hash of a job after a replace.

    Args:
        before: The definition that is replaced.
        request_hash: Of the request that replaces it.
    """
    return f"{before.body_hash.partition('.')[0]}.{request_hash}"


def definition_too_large() -> TooLarge:
    """Returns the refusal of a definition that is over the limit."""
    fix = "keep large payloads elsewhere and send a reference"
    return TooLarge(errors=[FieldError("", f"a definition has at most {MAX_DEFINITION_BYTES} bytes; {fix}")])


def definition_of(
    spec: JobSpec,
    resolved: Resolved,
    *,
    incarnation: int,
    created_at: int,
    updated_at: int,
    key: str | None,
    request_hash: str,
) -> Definition:
    """The definition with its resolved schedule. TooLarge where it is over the limit."""
    fields = shared_fields(spec)
    fields["schedule"], fields["schedules"] = resolved
    definition = Definition(
        **fields,
        incarnation=incarnation,
        created_at=created_at,
        updated_at=updated_at,
        key=key,
        body_hash=request_hash,
    )
    if len(encode_definition(definition)) > MAX_DEFINITION_BYTES:
        raise definition_too_large()
    return definition


def record_of(
    definition: Definition,
    schedule: Schedule,
    *,
    state: JobState,
    version: int,
    schedule_version: int,
    schedule_changed_at: int,
    pause: JobHead | None = None,
) -> JobRecord:
    """pause: the head whose pause goes on, for a paused job."""
    head = JobHead(
        state=state,
        version=version,
        schedule_version=schedule_version,
        schedule_changed_at=schedule_changed_at,
        kind=schedule.kind,
        arg=schedule.arg,
        misfire=misfire_code(definition.misfire_policy, windowed=definition.misfire.catchup_window is not None),
        grace_ms=parse_duration(definition.misfire.grace),
        queue_key=definition.queue_key,
        window_ms=schedule.window_ms,
        end_ms=schedule.end_ms or 0 if schedule.window_ms else 0,
        overlap=overlap_code(definition.overlap),
    )
    if pause is not None:
        head = head._replace(paused_from=pause.paused_from, until=pause.until, missed=pause.missed, note=pause.note)
    return JobRecord(head, definition)


def first_due(schedule: Schedule, now: int) -> int:
    """The instant a new schedule is first due; a one-off's own, even if it is a moment ago. Invalid where none follows."""
    due = int(schedule.arg) if schedule.kind == "o" else schedule.next_after(now)
    if due is None:
        raise invalid("schedule", "has no occurrence after now; write one that has")
    return due


def resolve(
    spec: JobSpec, now: int, calendars: Calendars | None = None, *, parsed: ParsedSchedules | None = None
) -> tuple[Resolved, Schedule]:
    """Returns a job's schedule as of now.

    Args:
        spec: The job.
        now: As of when (ms).
        calendars: The holiday calendars of its team, by name.
        parsed: Its schedules, where they were read already.

    Raises:
        Invalid: It names every wrong field.
    """
    return schedules.resolve(spec, now_ms=now, calendars=calendars, parsed=parsed)
