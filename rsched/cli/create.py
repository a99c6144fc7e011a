"""`rsched jobs create` and `rsched jobs apply`: one job from options, or many from a file."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
import typer

from rsched.cli import options, shown, when
from rsched.cli.options import Ack, Json, Url
from rsched.cli.output import print_json, print_table

# As many as a request to create many takes.
_BATCH = 10_000


def _option(name: str, text: str) -> Any:
    return typer.Option(name, help=text, show_default=False)


def create(
    *,
    name: Annotated[str | None, _option("--name", "Unique in its team; free text.")] = None,
    team: Annotated[str | None, _option("--team", "The team that owns it, by default `default`.")] = None,
    cron: Annotated[str | None, _option("--cron", "Five fields, such as '0 2 * * *', or @daily.")] = None,
    tz: when.Zone = None,
    second: when.Second = None,
    year: when.Year = None,
    gap: when.Gap = None,
    dst_overlap: when.DstOverlap = None,
    every: when.Every = None,
    anchor: when.Anchor = None,
    at: when.At = None,
    delay: when.Delay = None,
    exclude: when.Exclude = None,
    start: when.Start = None,
    end: when.End = None,
    max_runs: when.MaxRuns = None,
    window: when.Window = None,
    schedule: when.Whole = None,
    url: Annotated[str | None, _option("--url", "Call this http or https address.")] = None,
    method: Annotated[str | None, _option("--method", "Of the call, by default POST.")] = None,
    header: Annotated[list[str] | None, _option("--header", "'Name: value', any number of times.")] = None,
    body: Annotated[str | None, _option("--body", "JSON to send, or @file; by default the payload.")] = None,
    function: Annotated[str | None, _option("--function", "Run this Python function, such as reports.nightly.")] = None,
    queue: Annotated[str | None, _option("--queue", "The queue of workers that have the function.")] = None,
    args: Annotated[str | None, _option("--args", "A JSON array of its arguments.")] = None,
    kwargs: Annotated[str | None, _option("--kwargs", "A JSON object of its keyword arguments.")] = None,
    payload: Annotated[str | None, _option("--payload", "Any JSON, or @file.")] = None,
    timeout: Annotated[str | None, _option("--timeout", "Of one attempt, by default 60s.")] = None,
    max_attempts: Annotated[int | None, _option("--max-attempts", "Before a run is DEAD, by default 3.")] = None,
    misfire: Annotated[
        str | None, _option("--misfire", "Late occurrences: run_once (default), run_all or skip.")
    ] = None,
    grace: Annotated[str | None, _option("--grace", "Later than this is late, by default 60s.")] = None,
    catchup_window: Annotated[
        str | None,
        _option("--catchup-window", "What was missed longer ago is skipped, such as 7d; by default nothing."),
    ] = None,
    overlap: Annotated[
        str | None,
        _option("--overlap", "While a run is open: allow (default), skip, queue_one, queue_all or cancel_running."),
    ] = None,
    priority: Annotated[str | None, _option("--priority", "high, normal or low.")] = None,
    tag: Annotated[list[str] | None, _option("--tag", "Any number of times.")] = None,
    file: Annotated[
        str | None, _option("--file", "A whole job as JSON from this file, or - for standard input.")
    ] = None,
    key: Annotated[str | None, _option("--idempotency-key", "A repeat with this key gives the same job.")] = None,
    replace: Annotated[bool, _option("--replace", "Replace the whole job of this name, if there is one.")] = False,
    if_match: Annotated[int | None, _option("--if-match", "With --replace: only where it has this version.")] = None,
    ack: Ack = None,
    api: Annotated[str | None, _option("--api", f"The API, by default RSCHED_URL or {options.DEFAULT_URL}.")] = None,
    as_json: Json = False,
) -> None:
    """Create a job: a schedule, a target, and what differs from the defaults."""
    times = when.fields(
        {
            "cron": cron, "timezone": tz, "second": second, "year": year, "every": every, "anchor": anchor, "at": at,
            "delay": delay, "exclude": exclude, "start": start, "end": end, "max_runs": max_runs, "window": window,
        },
        gap=gap, overlap=dst_overlap,
    )  # fmt: skip
    late = {"grace": grace, "catchup_window": catchup_window}
    given: dict[str, Any] = {
        "team": team,
        "url": url,
        "method": method.upper() if method else None,
        "headers": dict(options.pair_of("--header", h) for h in header) if header else None,
        "body": None if body is None else options.json_of("--body", body),
        "function": function,
        "queue": queue,
        "args": None if args is None else options.json_of("--args", args),
        "kwargs": None if kwargs is None else options.json_of("--kwargs", kwargs),
        "payload": None if payload is None else options.json_of("--payload", payload),
        "timeout_s": None if timeout is None else _seconds(timeout),
        "max_attempts": max_attempts,
        "misfire_policy": misfire,
        "misfire": {k: options.length_of(v) for k, v in late.items() if v is not None} or None,
        "overlap": overlap,
        "priority": priority,
        "tags": tag or None,
    }
    given = {k: v for k, v in given.items() if v is not None}
    if file is not None:
        spec = _whole(file, name=name, given=given, times=[*times, *(["schedule"] if schedule else [])])
    else:
        spec = _from_options(name, given, times, schedule)
    called = _to_replace(spec, key, if_match, replace=replace)
    with options.client(api) as client:
        if called is None:
            job = client.create_job(spec=spec, idempotency_key=key, ack=ack)
        else:
            job = client.replace_job(called, spec=spec, if_match=if_match, ack=ack)
    print_json(job) if as_json else shown.job(job)
    shown.warn_of(job)


def apply(
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="A JSON array of jobs, or one job a line; - for standard input.")
    ],
    key: Annotated[str | None, _option("--idempotency-key", "A repeat with this key gives the same jobs.")] = None,
    ack: Ack = None,
    url: Url = None,
    as_json: Json = False,
) -> None:
    """Create many jobs, all or none, and print their ids in order."""
    specs = _many(options.text_of("FILE", f"@{file}"))
    with options.client(url) as client:
        jobs = client.create_jobs(specs, idempotency_key=key, ack=ack)
    if as_json:
        print_json(jobs)
        return
    print_table(("JOB", "NAME", "NEXT RUN"), [(j.job_id, j.name or "-", j.next_run_at or "-") for j in jobs])


def add_to(app: typer.Typer) -> None:
    for command in (create, apply):
        app.command()(command)


def _to_replace(spec: dict[str, Any], key: str | None, if_match: int | None, *, replace: bool) -> str | None:
    """The name of the job that spec replaces; None where it is to be a new one. BadParameter where options do not agree."""
    if not replace:
        if if_match is not None:
            raise typer.BadParameter("goes with --replace only", param_hint="--if-match")
        return None
    name = spec.get("name")
    if not isinstance(name, str):
        raise typer.BadParameter("needs --name: which job is it?", param_hint="--replace")
    if key is not None:
        raise typer.BadParameter(
            "is for new jobs; a repeat of --replace changes nothing", param_hint="--idempotency-key"
        )
    return name


def _seconds(text: str) -> float:
    from rsched.core.durations import parse_duration

    try:
        return parse_duration(options.length_of(text)) / 1000
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--timeout") from None


def _from_options(
    name: str | None, given: dict[str, Any], times: dict[str, Any], schedule: str | None
) -> dict[str, Any]:
    """The body of a job; a usage error where an option that everything hangs on was left out."""
    from rsched.client.bodies import job_body

    part = {"schedule": times} if schedule is None else when.whole(schedule, times)
    if schedule is None and not any(k in times for k in ("cron", "every", "at", "delay")):
        raise typer.BadParameter(
            "say when: one of --cron, --every, --at, --delay, --schedule, or a whole job with --file"
        )
    if not any(k in given for k in ("url", "function")):
        raise typer.BadParameter("say what: --url URL or --function NAME, or a whole job with --file")
    body = job_body(name, None, {**given, "schedule": {}})
    del body["schedule"]
    return {**body, **part}


def _whole(file: str, *, name: str | None, given: dict[str, Any], times: list[str]) -> dict[str, Any]:
    others = sorted({*given, *times} - {"team"})
    if others:
        raise typer.BadParameter(f"holds the whole job; put {', '.join(others)} into it", param_hint="--file")
    spec = options.json_of("--file", f"@{file}")
    if not isinstance(spec, dict):
        raise typer.BadParameter(
            "must hold one JSON object; for many jobs see `rsched jobs apply`", param_hint="--file"
        )
    return {**spec, **({"name": name} if name is not None else {}), **given}


def _many(text: str) -> list[dict[str, Any]]:
    """The jobs of a file. BadParameter names the line that is none."""
    if text.lstrip().startswith("["):
        jobs = options.json_of("FILE", text)
    else:
        jobs = []
        for number, line in enumerate(text.splitlines(), 1):
            if not line.strip():
                continue
            try:
                jobs.append(msgspec.json.decode(line))
            except msgspec.DecodeError as error:
                raise typer.BadParameter(
                    f"line {number} is no JSON ({error}); write an array, or one job a line", param_hint="FILE"
                ) from None
    if not jobs or not all(isinstance(job, dict) for job in jobs):
        raise typer.BadParameter("must hold one or more JSON objects, in an array or one a line", param_hint="FILE")
    if len(jobs) > _BATCH:
        raise typer.BadParameter(
            f"holds {len(jobs)} jobs; split it into files of at most {_BATCH} each", param_hint="FILE"
        )
    return list(jobs)
