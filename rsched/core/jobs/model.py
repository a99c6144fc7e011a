"""The shapes people send and get, and the durable definition of a job. JSON field names are these names."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from rsched.core.durations import parse_duration

Duration = str | int | float
MisfirePolicy = Literal["run_once", "run_all", "skip"]
Overlap = Literal["allow", "skip", "queue_one", "queue_all", "cancel_running"]
Priority = Literal["high", "normal", "low"]
# Where a change has to be before it is answered: postgres survives the total loss of Redis, redis does not.
Ack = Literal["postgres", "redis"]

PRIORITY_CODE: dict[Priority, str] = {"high": "0", "normal": "1", "low": "2"}
HTTP_QUEUE = "http"
MAX_DEFINITION_BYTES = 65_536


class DstPolicy(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """What cron does where the clocks change. What is left out: a job of every hour follows elapsed time (skip, both), any
    other fires each wall slot once (shift, first).

    gap: of slots that the clock jumps over, one run at the first instant after it, or none. overlap: slots that come
    twice fire on the first pass, or on both.
    """

    gap: Literal["shift", "skip"] | None = None
    overlap: Literal["first", "both"] | None = None


class ScheduleSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """One of {cron, timezone}, {every, anchor}, {at}, {delay}. Instants are RFC 3339 with offset.

    second, year: cron fields beside `cron`. anchor: sets the phase of an interval, by default its start, or the creation.
    exclude: dates, date ranges (`2026-12-24/2027-01-02`, both included) in the schedule's zone (`timezone`, by default
    UTC), and names of the team's calendars. start, end: occurrences lie in start <= t < end. max_runs: the first so many
    from start (by default the creation); one that is skipped uses one up, one that is excluded does not. window: each run
    starts at a fixed point in so long after its occurrence, before the next one and the end.
    """

    cron: str | None = None
    timezone: str | None = None
    every: Duration | None = None
    anchor: str | None = None
    at: str | None = None
    delay: Duration | None = None
    second: str | int | None = None
    year: str | int | None = None
    dst: DstPolicy | None = None
    exclude: list[str] | str = []
    start: str | None = None
    end: str | None = None
    max_runs: int | None = None
    window: Duration | None = None


class HttpTarget(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True, tag="http"):
    """An HTTP call; 2xx is success. body: any JSON, by default the job's payload."""

    url: str
    method: Literal["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD"] = "POST"
    headers: dict[str, str] = {}
    body: Any = None


class FunctionTarget(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True, tag="function"
):
    """A Python function that workers of `queue` serve under the name `function`."""

    function: str
    queue: str = "default"
    args: list[Any] = []
    kwargs: dict[str, Any] = {}


Target = HttpTarget | FunctionTarget


def queue_of(target: Target) -> str:
    """The queue whose workers can call the target."""
    return HTTP_QUEUE if isinstance(target, HttpTarget) else target.queue


class RetryPolicy(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    max_attempts: int = 3
    backoff: Literal["exponential", "fixed"] = "exponential"
    base: Duration = "1s"
    factor: float = 2
    cap: Duration = "10m"
    jitter: Literal["full", "none"] = "full"

    @property
    def base_ms(self) -> int:
        return parse_duration(self.base)

    @property
    def cap_ms(self) -> int:
        return parse_duration(self.cap)


class Misfire(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """grace: an occurrence later than this is a misfire. catchup_window: one missed longer ago is skipped on record,
    whatever the policy; none: however long ago.
    """

    grace: Duration = "60s"
    catchup_window: Duration | None = None


class JobSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The body of POST /v1/jobs. One of schedule and schedules (their union, one occurrence an instant)."""

    target: Target
    schedule: ScheduleSpec | None = None
    schedules: list[ScheduleSpec] = []
    name: str | None = None
    team: str = "default"
    payload: Any = None
    timeout_s: float = 60
    retry: RetryPolicy = RetryPolicy()
    misfire_policy: MisfirePolicy = "run_once"
    misfire: Misfire = Misfire()
    overlap: Overlap = "allow"
    priority: Priority = "normal"
    tags: list[str] = []


class Definition(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """What Redis and the ledger keep of a job (msgpack, positional: fields are only ever added at the end).

    schedule is resolved: a delay has become `at`, an interval has its anchor. key: the Idempotency-Key it was created
    with; body_hash: of the request that made this version, to tell a repeat from a conflict.
    """

    team: str
    name: str | None
    incarnation: int
    schedule: ScheduleSpec | None
    target: Target
    payload: Any
    timeout_s: float
    retry: RetryPolicy
    misfire_policy: MisfirePolicy
    misfire: Misfire
    overlap: Overlap
    priority: Priority
    tags: list[str]
    created_at: int
    updated_at: int
    key: str | None
    body_hash: str
    schedules: list[ScheduleSpec] = []

    @property
    def queue_key(self) -> str:
        """queue:team:priority, which names the queue stream its runs go through."""
        return f"{queue_of(self.target)}:{self.team}:{PRIORITY_CODE[self.priority]}"


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(Definition)


def encode_definition(definition: Definition) -> bytes:
    return _encoder.encode(definition)


def decode_definition(body: bytes) -> Definition:
    return _decoder.decode(body)


def with_payload(definition: Definition, payload: bytes) -> Definition:
    """The definition as a run with a payload (msgpack) of its own is called by."""
    value = msgspec.msgpack.decode(payload)
    target = definition.target
    if isinstance(target, HttpTarget):
        target = msgspec.structs.replace(target, body=None)
    return msgspec.structs.replace(definition, payload=value, target=target)


class RetryView(RetryPolicy, frozen=True, kw_only=True, omit_defaults=False):
    """A retry policy with every default said."""


class MisfireView(Misfire, frozen=True, kw_only=True, omit_defaults=False):
    """As Misfire, with every default said."""


class PauseView(msgspec.Struct, frozen=True, kw_only=True):
    """note: why, in the words of who paused. until: when it resumes by itself, and what it does then about the occurrences
    missed.
    """

    note: str | None
    until: str | None
    missed: MisfirePolicy


class JobView(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A job as the API shows it. Instants are RFC 3339; next_run_at has the offset of the job's own zone.

    One of schedule and schedules is there. pause: of a paused job. warnings: what in the schedule is legal and perhaps not
    meant, in the answer to a create or replace. skipped: occurrences that made no run, by reason, only where one job is
    asked for.
    """

    job_id: str
    name: str | None
    team: str
    target: Target
    payload: Any
    timeout_s: float
    retry: RetryView
    misfire_policy: MisfirePolicy
    misfire: MisfireView
    overlap: Overlap
    priority: Priority
    tags: list[str]
    state: str
    next_run_at: str | None
    version: int
    created_at: str
    updated_at: str
    schedule: ScheduleSpec | None = None
    schedules: list[ScheduleSpec] = []
    pause: PauseView | None = None
    warnings: list[str] = []
    skipped: dict[str, int] | msgspec.UnsetType = msgspec.UNSET


class AttemptView(msgspec.Struct, frozen=True, kw_only=True):
    """One numbered try at a run; status is the run state that the try ended in, RUNNING while it lasts."""

    attempt: int
    fence: int
    worker: str
    status: str
    started_at: str | None
    finished_at: str | None
    duration_s: float | None
    lateness_ms: int | None
    error: str | None


class RunView(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A run as the API shows it; status is one of the run states. `attempts` only where one run is asked for, and `payload` where
    that run has one of its own.
    """

    run_id: str
    job_id: str
    scheduled_at: str
    status: str
    attempt: int
    created_at: str
    started_at: str | None
    finished_at: str | None
    duration_s: float | None
    lateness_ms: int | None
    error: str | None
    attempts: list[AttemptView] | msgspec.UnsetType = msgspec.UNSET
    payload: Any = msgspec.UNSET
