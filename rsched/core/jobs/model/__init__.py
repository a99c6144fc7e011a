"""What a job is made of, for everybody outside this package: import these names from here.

fields declares them once; spec is what people send, definition what is kept. Views, which people get back, are in
rsched.core.answers.
"""

from __future__ import annotations

from rsched.core.durations import Duration
from rsched.core.jobs.model.definition import (
    MAX_DEFINITION_BYTES,
    Definition,
    decode_definition,
    encode_definition,
    with_payload,
)
from rsched.core.jobs.model.fields import JobFields, shared_fields
from rsched.core.jobs.model.spec import JobSpec
from rsched.core.jobs.policies import (
    PRIORITY_CODE,
    Ack,
    Misfire,
    MisfirePolicy,
    Overlap,
    Priority,
    RetryPolicy,
)
from rsched.core.jobs.targets import HTTP_QUEUE, FunctionTarget, HttpTarget, Target, queue_of
from rsched.core.schedule.spec import DstPolicy, ScheduleSpec

__all__ = [
    "HTTP_QUEUE",
    "MAX_DEFINITION_BYTES",
    "PRIORITY_CODE",
    "Ack",
    "Definition",
    "DstPolicy",
    "Duration",
    "FunctionTarget",
    "HttpTarget",
    "JobFields",
    "JobSpec",
    "Misfire",
    "MisfirePolicy",
    "Overlap",
    "Priority",
    "RetryPolicy",
    "ScheduleSpec",
    "Target",
    "decode_definition",
    "encode_definition",
    "queue_of",
    "shared_fields",
    "with_payload",
]
