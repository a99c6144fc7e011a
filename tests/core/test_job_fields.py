"""A field of a job is declared once; what is sent, kept, shown and typed follows from there."""

from __future__ import annotations

import msgspec

from rsched.cli import job_options
from rsched.core.answers import JobView
from rsched.core.jobs import records
from rsched.core.jobs.model import (
    Definition,
    FunctionTarget,
    JobFields,
    JobSpec,
    Misfire,
    RetryPolicy,
    ScheduleSpec,
    decode_definition,
    encode_definition,
)
from rsched.core.jobs.packed import JobHead
from rsched.core.states import JobState

# As definitions are kept: what stands here never moves, and a new field comes behind the last one.
KEPT = (
    *("incarnation", "created_at", "updated_at", "key", "body_hash"),
    *("target", "schedule", "schedules", "name", "team", "payload", "timeout_s", "retry", "misfire_policy", "misfire"),
    *("overlap", "priority", "tags"),
)
# Every field, with a value that is not its default.
SPEC = JobSpec(
    target=FunctionTarget(function="f", queue="q"),
    schedule=ScheduleSpec(every="6h", anchor="2027-01-01T00:00:00Z", window="5m"),
    name="n",
    team="ops",
    payload={"a": [1]},
    timeout_s=5,
    retry=RetryPolicy(max_attempts=7),
    misfire_policy="run_all",
    misfire=Misfire(grace="5m", catchup_window="7d"),
    overlap="queue_one",
    priority="high",
    tags=["t"],
)
NOW = 1_793_000_000_000


def kept() -> Definition:
    resolved, _ = records.resolve(SPEC, NOW)
    return records.definition_of(SPEC, resolved, incarnation=2, created_at=1, updated_at=2, key="k", request_hash="h")


def test_the_order_of_a_kept_definition_only_grows_at_its_end() -> None:
    assert Definition.__struct_fields__[: len(KEPT)] == KEPT
    assert set(KEPT) >= {"incarnation", *JobFields.__struct_fields__}


def test_a_definition_of_before_a_new_field_is_read_with_its_default() -> None:
    values = msgspec.msgpack.decode(encode_definition(kept()))
    assert len(values) == len(Definition.__struct_fields__)
    assert decode_definition(msgspec.msgpack.encode(values)) == kept()
    assert decode_definition(msgspec.msgpack.encode(values[:-1])) == msgspec.structs.replace(kept(), tags=[])
    assert decode_definition(msgspec.msgpack.encode([*values, "of a later release"])) == kept()


def test_each_field_that_is_sent_is_kept() -> None:
    definition = kept()
    defaults = JobSpec(target=SPEC.target)
    for name in JobFields.__struct_fields__:
        assert getattr(definition, name) == getattr(SPEC, name), name
        assert name in ("target", "schedules") or getattr(SPEC, name) != getattr(defaults, name), name


def test_each_field_that_is_kept_is_shown() -> None:
    assert JobView.__struct_fields__[: len(JobFields.__struct_fields__)] == JobFields.__struct_fields__
    assert set(JobView.leaves_out) < set(JobView.__struct_fields__)


def test_each_field_has_an_option_or_fields_that_have() -> None:
    with_options = {one.path[0] for one in job_options.options_of(JobFields)}
    # Several schedules are given by --schedule, as a JSON array.
    assert set(JobFields.__struct_fields__) - with_options == {"schedules"}
    parameters = [one.parameter for one in job_options.options_of(JobFields)]
    flags = [flag for one in job_options.options_of(JobFields) for flag in one.option.flags]
    assert (len(set(parameters)), len(set(flags))) == (len(parameters), len(flags))


def test_a_queue_key_and_a_head_follow_from_the_definition() -> None:
    definition = kept()
    _, schedule = records.resolve(SPEC, NOW)
    head: JobHead = records.record_of(
        definition, schedule, state=JobState.ACTIVE, version=1, schedule_version=1, schedule_changed_at=NOW
    ).head
    assert (head.queue_key, head.misfire, head.overlap, head.window_ms) == ("q:ops:0", "A", "q", 300_000)
