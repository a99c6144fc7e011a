"""Events as the scripts journal them, and a clock for whoever records them."""

from __future__ import annotations

from typing import Any

from rsched.core.ids import derive_job_id
from rsched.core.jobs.model import Definition, FunctionTarget, Misfire, RetryPolicy, ScheduleSpec
from rsched.core.jobs.packed import JobEvent, JobHead, JobRecord, RunEvent, RunRecord
from rsched.core.states import JobState, RunState
from rsched.runtime.clock import SystemClock

T0 = 1_793_000_000_000


class WallClock(SystemClock):
    """Says what it is told (ms); the rest is the machine's."""

    def __init__(self, now: int = T0) -> None:
        self.now = now

    def wall_ms(self) -> int:
        return self.now


def definition(name: str = "nightly", **changes: object) -> Definition:
    fields: dict[str, object] = {
        "team": "default",
        "name": name,
        "incarnation": 1,
        "schedule": ScheduleSpec(every="60s", anchor="2026-10-25T20:30:00Z"),
        "target": FunctionTarget(function="f"),
        "payload": None,
        "timeout_s": 60,
        "retry": RetryPolicy(),
        "misfire_policy": "run_once",
        "misfire": Misfire(),
        "overlap": "allow",
        "priority": "normal",
        "tags": [],
        "created_at": T0,
        "updated_at": T0,
        "key": None,
        "body_hash": "h",
    }
    return Definition(**{**fields, **changes})  # type: ignore[arg-type]


def job_id(name: str = "nightly") -> str:
    return derive_job_id("default", name, 1)


def job(
    name: str = "nightly",
    *,
    version: int = 1,
    state: JobState = JobState.ACTIVE,
    kind: str = "e",
    arg: str = "",
    **changes: object,
) -> JobEvent:
    d = definition(name, **changes)
    head = JobHead(state, version, 1, T0, kind, arg or f"{T0},60000", "o", 60_000, d.queue_key)  # type: ignore[arg-type]
    value = head.pack().encode() + b"\n" if state is JobState.DELETED else JobRecord(head, d).pack()
    return JobEvent(job_id(name), value)


def run(scheduled_at: int = T0, *, name: str = "nightly", at: int = T0, detail: str = "", **record: Any) -> RunEvent:
    """Returns an event of a run that is queued and was never tried. record: fields of its RunRecord in place of these."""
    fields: dict[str, Any] = {
        "state": RunState.QUEUED, "revision": 1, "queue_key": "default:default:1", "schedule_version": 1, "attempt": 0,
        "fence": 0, "worker": "", "due_at": scheduled_at, "started_at": 0, "flags": "",
    }  # fmt: skip
    fields |= record | {"claimed_at": record.get("claimed_at") or scheduled_at}
    return RunEvent(f"{job_id(name)}:{scheduled_at}", RunRecord(**fields), at, detail)
