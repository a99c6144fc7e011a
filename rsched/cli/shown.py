"""Jobs and runs as people read them."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from rsched.cli.output import clean, print_fields, print_table
from rsched.core.answers import JobView, PauseView, RunView
from rsched.core.errors import RschedError
from rsched.core.jobs.model import RetryPolicy, ScheduleSpec
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
            j.job_id,
            j.name or "-",
            j.team,
            j.state,
            j.next_run_at or "-",
            schedule_text(j),
            summary_of(j.target),
        )
        for j in page.items
    ]
    print_table(("JOB", "NAME", "TEAM", "STATE", "NEXT RUN", "SCHEDULE", "TARGET"), rows, styles=("cyan",))
    _more(page)


def job(j: JobView) -> None:
    specs = [j.schedule] if j.schedule else j.schedules
    pairs = [("job_id", j.job_id), ("name", j.name or "-"), ("team", j.team), ("state", j.state)]
    for spec in specs:
        pairs.append(("schedule", ", ".join(filter(None, (_schedule_text(spec), _bounds(spec))))))
    pairs += [
        ("in words", _in_words(j) or "-"),
        ("next_run_at", j.next_run_at or "-"),
        ("target", summary_of(j.target)),
        *_call(j.target),
        ("payload", _json(j.payload)),
        ("timeout_s", f"{j.timeout_s:g}"),
        ("retry", _retry(j.retry)),
        ("misfire", _misfire(j)),
        ("overlap", j.overlap),
        ("priority", j.priority),
        ("tags", ", ".join(j.tags) or "-"),
        ("version", str(j.version)),
        ("created_at", j.created_at),
        ("updated_at", j.updated_at),
    ]
    if j.pause is not None:
        pairs += [("pause", _pause(j.pause)), ("note", j.pause.note or "-")]
    if j.skipped:
        pairs.append(("skipped", ", ".join(f"{total} {reason}" for reason, total in j.skipped.items())))
    print_fields(pairs)


def _call(target: Target) -> list[tuple[str, str]]:
    """What is sent beside the payload: the target's fields of JSON, where there is something in them."""
    fields = [name for name in target.__struct_fields__ if not isinstance(getattr(target, name), str)]
    return [(f"  {name}", _json(value)) for name in fields if (value := getattr(target, name)) not in ([], {}, None)]


def _retry(r: RetryPolicy) -> str:
    wait = f"{r.backoff} from {_length(r.base)}"
    if r.backoff == "exponential":
        wait += f" times {r.factor:g} up to {_length(r.cap)}"
    return f"{r.max_attempts} attempts, {wait}, jitter {r.jitter}"


def _misfire(j: JobView) -> str:
    old = j.misfire.catchup_window
    ended = "" if old is None else f", skip what was missed over {_length(old)} ago"
    return f"{j.misfire_policy} when over {_length(j.misfire.grace)} late{ended}"


def _pause(p: PauseView) -> str:
    """Until when, and what becomes of the occurrences missed until then."""
    return f"until {p.until or 'it is resumed'}, then {p.missed} of what was missed"


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
    if r.payload is not msgspec.UNSET:
        print_fields([("payload", _json(r.payload))])
    if r.attempts is msgspec.UNSET or not r.attempts:
        return
    print()
    rows = [
        (str(a.attempt), a.status, str(a.fence), a.worker, a.started_at or "-", _number(a.duration_s), a.error or "-")
        for a in r.attempts
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
