"""The packed records of the data model, for everybody outside this package: import these names from here.

head is the value of a job, run the record of a run, events what a journal entry holds. Fields are only ever added at the end.
Field orders and codes are declared here as data; scripts read the same in parts of lua/lib that are generated from here.
"""

from __future__ import annotations

from rsched.core.jobs.packed.events import (
    CalendarEvent,
    Event,
    EventKind,
    JobEvent,
    PayloadEvent,
    QuarantineEvent,
    RangeEvent,
    RunEvent,
    SkipEvent,
    TriggerEvent,
    WatermarkEvent,
    WorkerEvent,
    unpack_event,
)
from rsched.core.jobs.packed.head import (
    HEAD_FIELDS,
    OPTIONAL_FIELDS,
    SCHEDULE_KINDS,
    JobHead,
    JobRecord,
    ScheduleKind,
    misfire_code,
    misfire_policy_of,
    overlap_code,
    pack_note,
    unpack_head,
    unpack_job,
)
from rsched.core.jobs.packed.run import (
    FLAG_BACKFILL,
    FLAG_CANCEL,
    FLAG_LAST,
    FLAG_MANUAL,
    FLAG_PAYLOAD,
    KEYED_FOR_MS,
    OVERLAP_ANYWAY,
    RunRecord,
    unpack_run,
)

__all__ = [
    "FLAG_BACKFILL",
    "FLAG_CANCEL",
    "FLAG_LAST",
    "FLAG_MANUAL",
    "FLAG_PAYLOAD",
    "HEAD_FIELDS",
    "KEYED_FOR_MS",
    "OPTIONAL_FIELDS",
    "OVERLAP_ANYWAY",
    "SCHEDULE_KINDS",
    "CalendarEvent",
    "Event",
    "EventKind",
    "JobEvent",
    "JobHead",
    "JobRecord",
    "PayloadEvent",
    "QuarantineEvent",
    "RangeEvent",
    "RunEvent",
    "RunRecord",
    "ScheduleKind",
    "SkipEvent",
    "TriggerEvent",
    "WatermarkEvent",
    "WorkerEvent",
    "misfire_code",
    "misfire_policy_of",
    "overlap_code",
    "pack_note",
    "unpack_event",
    "unpack_head",
    "unpack_job",
    "unpack_run",
]
