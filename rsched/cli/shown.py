"""Jobs and runs as people read them."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import msgspec

from rsched.cli.output import print_fields, print_table
from rsched.core.model import HttpTarget, JobView, RunView, ScheduleSpec, Target

if TYPE_CHECKING:
    from rsched.client import Page


def schedule_text(job: JobView) -> str:
    return " + ".join(_schedule_text(spec) for spec in ([job.schedule] if job.schedule else job.schedules))


def _schedule_text(spec: ScheduleSpec) -> str:
    if spec.cron is not None:
        return f"cron {spec.cron} ({spec.timezone or 'UTC'})"
    if spec.every is not None:
        return f"every {_length(spec.every)}"
    return f"at {spec.at}" if spec.at is not None else f"delay {_length(spec.delay)}"


def _length(value: Any) -> str:
    return value if isinstance(value, str) else f"{value:g}s"


def target_text(target: Target) -> str:
    if isinstance(target, HttpTarget):
        return f"{target.method} {target.url}"
    return f"{target.function} on {target.queue}"


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def jobs(page: Page[JobView]) -> None:
    rows = [
        (
            j.job_id,
            j.name or "-",
            j.team,
            j.state,
            j.next_run_at or "-",
            schedule_text(j),
            target_text(j.target),
        )
        for j in page.items
    ]
    print_table(("JOB", "NAME", "TEAM", "STATE", "NEXT RUN", "SCHEDULE", "TARGET"), rows, styles=("cyan",))
    _more(page)


def job(j: JobView) -> None:
    pairs = [
        ("job_id", j.job_id),
        ("name", j.name or "-"),
        ("team", j.team),
        ("state", j.state),
        ("schedule", schedule_text(j)),
        ("next_run_at", j.next_run_at or "-"),
        ("target", target_text(j.target)),
        ("payload", _json(j.payload)),
        ("timeout_s", f"{j.timeout_s:g}"),
        ("retry", f"{j.retry.max_attempts} attempts, {j.retry.backoff} from {_length(j.retry.base)}"),
        ("misfire_policy", j.misfire_policy),
        ("priority", j.priority),
        ("tags", ", ".join(j.tags) or "-"),
        ("version", str(j.version)),
        ("created_at", j.created_at),
        ("updated_at", j.updated_at),
    ]
    print_fields(pairs)


def runs(page: Page[RunView]) -> None:
    rows = [
        (
            r.run_id,
            r.status,
            str(r.attempt),
            r.scheduled_at,
            _number(r.lateness_ms),
            _number(r.duration_s),
            r.error or "-",
        )
        for r in page.items
    ]
    columns = ("RUN", "STATUS", "ATTEMPT", "SCHEDULED AT", "LATE MS", "SECONDS", "ERROR")
    print_table(columns, rows, styles=("cyan",))
    _more(page)


def run(r: RunView) -> None:
    print_fields(
        [
            ("run_id", r.run_id),
            ("job_id", r.job_id),
            ("status", r.status),
            ("attempt", str(r.attempt)),
            ("scheduled_at", r.scheduled_at),
            ("started_at", r.started_at or "-"),
            ("finished_at", r.finished_at or "-"),
            ("duration_s", _number(r.duration_s)),
            ("lateness_ms", _number(r.lateness_ms)),
            ("error", r.error or "-"),
        ]
    )
    if r.attempts is msgspec.UNSET or not r.attempts:
        return
    print()
    rows = [
        (str(a.attempt), a.status, str(a.fence), a.worker, a.started_at or "-", _number(a.duration_s), a.error or "-")
        for a in r.attempts
    ]
    print_table(("ATTEMPT", "STATUS", "FENCE", "WORKER", "STARTED AT", "SECONDS", "ERROR"), rows)


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:g}"


def _more(page: Page[Any]) -> None:
    if page.next_cursor is not None:
        print(f"there are more: --cursor {page.next_cursor}", file=sys.stderr)
