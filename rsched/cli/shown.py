"""Jobs and runs as people read them."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from rsched.cli.output import clean, print_fields, print_table
from rsched.core.answers import JobView, PauseView, RunView
from rsched.core.errors import RschedError
from rsched.core.jobs.model import JobFields, RetryPolicy, ScheduleSpec
from rsched.core.jobs.targets import Target, summary_of

if TYPE_CHECKING:
    from rsched.client import Page
    from rsched.core.answers import BulkAnswer, SkipView


def schedule_text(job: JobView) -> str:
    return " + ".join(_schedule_text(spec) for spec in ([job.schedule] if job.schedule else job.schedules))


def _schedule_text(spec: ScheduleSpec) -> str:
    if spec.cron is not None:
        more = [f"{name} {value}" for name in ("second", "year") if (value := getattr(spec, name)) is not None]
        return " ".join(["cron", spec.cron, *more, f"({spec.timezone or 'UTC'})"])
    if spec.every is not None:
        return f"every {_length(spec.every)}"
    return f"at {spec.at}" if spec.at is not None else f"delay {_length(spec.delay)}"


def _bounds(spec: ScheduleSpec) -> str:
    """What a schedule has beside its rule, by the names of its fields."""
    dst = [f"{name} {value}" for name in ("gap", "overlap") if spec.dst and (value := getattr(spec.dst, name))]
    exclude = [spec.exclude] if isinstance(spec.exclude, str) else spec.exclude
    parts = ["dst: " + " and ".join(dst)] if dst else []
    parts += ["exclude " + " ".join(exclude)] if exclude else []
    for name in ("anchor", "start", "end", "max_runs", "window"):
        if (value := getattr(spec, name)) is not None:
            parts.append(f"{name} {_length(value) if name == 'window' else value}")
    return ", ".join(parts)


def _in_words(job: JobView) -> str:
    """The schedule as a sentence; nothing where this release cannot read it."""
    from rsched.core.schedule.words import describe

    try:
        return describe(job)
    except (RschedError, ValueError):
        return ""


def warn_of(job: JobView) -> None:
    """Says on standard error what the schedule may do that was not meant."""
    for text in job.warnings:
        print(f"warning: {clean(text)}", file=sys.stderr)


def _length(value: Any) -> str:
    return value if isinstance(value, str) else f"{value:g}s"


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def jobs(page: Page[JobView]) -> None:
    rows = [
        (
            job.job_id,
            job.name or "-",
            job.team,
            job.state,
            job.next_run_at or "-",
            schedule_text(job),
            summary_of(job.target),
        )
        for job in page.items
    ]
    print_table(("JOB", "NAME", "TEAM", "STATE", "NEXT RUN", "SCHEDULE", "TARGET"), rows, styles=("cyan",))
    _more(page)


def job(job: JobView) -> None:
    specs = [job.schedule] if job.schedule else job.schedules
    pairs = [("job_id", job.job_id), ("name", job.name or "-"), ("team", job.team), ("state", job.state)]
    for spec in specs:
        pairs.append(("schedule", ", ".join(filter(None, (_schedule_text(spec), _bounds(spec))))))
    pairs += [
        ("in words", _in_words(job) or "-"),
        ("next_run_at", job.next_run_at or "-"),
        *(row for name in JobFields.__struct_fields__ if name not in _SAID_ELSEWHERE for row in _field(job, name)),
        ("version", str(job.version)),
        ("created_at", job.created_at),
        ("updated_at", job.updated_at),
    ]
    if job.pause is not None:
        pairs += [("pause", _pause(job.pause)), ("note", job.pause.note or "-")]
    if job.skipped:
        pairs.append(("skipped", ", ".join(f"{total} {reason}" for reason, total in job.skipped.items())))
    print_fields(pairs)


# Beside other fields, or above them.
_SAID_ELSEWHERE = ("name", "team", "schedule", "schedules", "misfire_policy")


def _field(job: JobView, name: str) -> list[tuple[str, str]]:
    """The rows of one field of a job."""
    value = getattr(job, name)
    match name:
        case "target":
            return [(name, summary_of(value)), *_call(value)]
        case "retry":
            return [(name, _retry(value))]
        case "misfire":
            return [(name, _misfire(job))]
        case "tags":
            return [(name, ", ".join(value) or "-")]
        case "overlap" | "priority":
            return [(name, value)]
        case _:
            return [(name, f"{value:g}" if isinstance(value, float) else _json(value))]


def _call(target: Target) -> list[tuple[str, str]]:
    """What is sent beside the payload: the target's fields of JSON, where there is something in them."""
    fields = [name for name in target.__struct_fields__ if not isinstance(getattr(target, name), str)]
    return [(f"  {name}", _json(value)) for name in fields if (value := getattr(target, name)) not in ([], {}, None)]


def _retry(retry: RetryPolicy) -> str:
    wait = f"{retry.backoff} from {_length(retry.base)}"
    if retry.backoff == "exponential":
        wait += f" times {retry.factor:g} up to {_length(retry.cap)}"
    return f"{retry.max_attempts} attempts, {wait}, jitter {retry.jitter}"


def _misfire(job: JobView) -> str:
    old = job.misfire.catchup_window
    ended = "" if old is None else f", skip what was missed over {_length(old)} ago"
    return f"{job.misfire_policy} when over {_length(job.misfire.grace)} late{ended}"


def _pause(pause: PauseView) -> str:
    """Until when, and what becomes of the occurrences missed until then."""
    return f"until {pause.until or 'it is resumed'}, then {pause.missed} of what was missed"


def runs(page: Page[RunView]) -> None:
    rows = [
        (
            run.run_id,
            run.status,
            str(run.attempt),
            run.scheduled_at,
            _number(run.lateness_ms),
            _number(run.duration_s),
            run.error or "-",
        )
        for run in page.items
    ]
    columns = ("RUN", "STATUS", "ATTEMPT", "SCHEDULED AT", "LATE MS", "SECONDS", "ERROR")
    print_table(columns, rows, styles=("cyan",))
    _more(page)


def run(run: RunView) -> None:
    print_fields(
        [
            ("run_id", run.run_id),
            ("job_id", run.job_id),
            ("status", run.status),
            ("attempt", str(run.attempt)),
            ("scheduled_at", run.scheduled_at),
            ("started_at", run.started_at or "-"),
            ("finished_at", run.finished_at or "-"),
            ("duration_s", _number(run.duration_s)),
            ("lateness_ms", _number(run.lateness_ms)),
            ("error", run.error or "-"),
        ]
    )
    if run.payload is not msgspec.UNSET:
        print_fields([("payload", _json(run.payload))])
    if run.attempts is msgspec.UNSET or not run.attempts:
        return
    print()
    rows = [
        (str(a.attempt), a.status, str(a.fence), a.worker, a.started_at or "-", _number(a.duration_s), a.error or "-")
        for a in run.attempts
    ]
    print_table(("ATTEMPT", "STATUS", "FENCE", "WORKER", "STARTED AT", "SECONDS", "ERROR"), rows)


def skips(page: Page[SkipView]) -> None:
    rows = [(s.first_at, s.last_at, str(s.total), s.reason, s.at) for s in page.items]
    print_table(("FIRST", "LAST", "TOTAL", "REASON", "DECIDED AT"), rows)
    _more(page)


def bulk(pages: Sequence[BulkAnswer]) -> None:
    """What became of the jobs, or which they would be."""
    if pages[0].dry_run:
        rows = [(i.job_id, i.name or "-", i.team) for page in pages for i in page.items]
        print_table(("JOB", "NAME", "TEAM"), rows, styles=("cyan",))
        return
    for failure in (f for page in pages for f in page.failed):
        print(f"error: {failure.job_id}: {clean(failure.detail)}", file=sys.stderr)
    counted = [sum(getattr(page, name) for page in pages) for name in ("matched", "changed", "unchanged")]
    failed = sum(len(page.failed) for page in pages)
    print_fields([*zip(("matched", "changed", "unchanged"), map(str, counted), strict=True), ("failed", str(failed))])


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:g}"


def _more(page: Page[Any]) -> None:
    if page.next_cursor is not None:
        print(f"there are more: --cursor {page.next_cursor}", file=sys.stderr)
