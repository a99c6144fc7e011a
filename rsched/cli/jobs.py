"""`rsched jobs ...`: everything about definitions, over the API."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from rsched.cli import control, options, shown
from rsched.cli.group import Commands
from rsched.cli.options import Cursor, JobRef, Json, Limit, Team, Url
from rsched.cli.output import print_json

app = typer.Typer(cls=Commands, help="Create, see and change jobs.", no_args_is_help=True, rich_markup_mode=None)


def _option(name: str, text: str) -> Any:
    return typer.Option(name, help=text, show_default=False)


@app.command()
def create(
    *,
    name: Annotated[str | None, _option("--name", "Unique in its team; free text.")] = None,
    team: Annotated[str | None, _option("--team", "The team that owns it, by default `default`.")] = None,
    cron: Annotated[str | None, _option("--cron", "Five fields, such as '0 2 * * *', or @daily.")] = None,
    tz: Annotated[str | None, _option("--tz", "The zone of --cron, such as Asia/Kolkata; by default UTC.")] = None,
    every: Annotated[str | None, _option("--every", "An interval, such as 5m or 1h30m.")] = None,
    at: Annotated[str | None, _option("--at", "One instant with offset, such as 2026-10-25T20:30:00Z.")] = None,
    delay: Annotated[str | None, _option("--delay", "Once, this long from now, such as 90s.")] = None,
    url: Annotated[str | None, _option("--url", "Call this http or https address.")] = None,
    api: Annotated[str | None, _option("--api", "The API, by default RSCHED_URL or this machine's.")] = None,
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
    misfire: Annotated[str | None, _option("--misfire", "Late occurrences: run_once, run_all or skip.")] = None,
    overlap: Annotated[
        str | None, _option("--overlap", "While a run is open: allow, skip, queue_one and so on.")
    ] = None,
    priority: Annotated[str | None, _option("--priority", "high, normal or low.")] = None,
    tag: Annotated[list[str] | None, _option("--tag", "Any number of times.")] = None,
    file: Annotated[
        str | None, _option("--file", "A whole job as JSON from this file, or - for standard input.")
    ] = None,
    key: Annotated[str | None, _option("--idempotency-key", "A repeat with this key gives the same job.")] = None,
    as_json: Json = False,
) -> None:
    """Create a job: a schedule, a target, and what differs from the defaults."""
    given: dict[str, Any] = {
        "team": team,
        "cron": cron,
        "timezone": tz,
        "every": None if every is None else options.length_of(every),
        "at": at,
        "delay": None if delay is None else options.length_of(delay),
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
        "overlap": overlap,
        "priority": priority,
        "tags": tag or None,
    }
    given = {k: v for k, v in given.items() if v is not None}
    if file is not None:
        spec = _whole(file, name=name, given=given)
    else:
        from rsched.client.bodies import job_body

        _complete(given)
        spec = job_body(name, given)
    with options.client(api) as client:
        job = client.create_spec(spec, idempotency_key=key)
    print_json(job) if as_json else shown.job(job)


def _seconds(text: str) -> float:
    from rsched.core.durations import parse_duration

    try:
        return parse_duration(options.length_of(text)) / 1000
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--timeout") from None


def _complete(given: dict[str, Any]) -> None:
    """A usage error where an option that everything hangs on was left out."""
    if not any(k in given for k in ("cron", "every", "at", "delay")):
        raise typer.BadParameter("say when: one of --cron, --every, --at, --delay, or a whole job with --file")
    if not any(k in given for k in ("url", "function")):
        raise typer.BadParameter("say what: --url URL or --function NAME, or a whole job with --file")


def _whole(file: str, *, name: str | None, given: dict[str, Any]) -> dict[str, Any]:
    others = sorted(set(given) - {"team"})
    if others:
        raise typer.BadParameter(f"holds the whole job; put {', '.join(others)} into it", param_hint="--file")
    spec = options.json_of("--file", f"@{file}")
    if not isinstance(spec, dict):
        raise typer.BadParameter("must hold one JSON object", param_hint="--file")
    return {**spec, **({"name": name} if name is not None else {}), **given}


@app.command("list")
def list_jobs(
    team: Annotated[str | None, _option("--team", "Of this team only.")] = None,
    state: Annotated[str | None, _option("--state", "active, paused, completed or invalid.")] = None,
    name: Annotated[str | None, _option("--name", "Of exactly this name.")] = None,
    tag: Annotated[str | None, _option("--tag", "With this tag.")] = None,
    limit: Limit = 100,
    cursor: Cursor = None,
    url: Url = None,
    as_json: Json = False,
) -> None:
    """List jobs."""
    with options.client(url) as client:
        page = client.jobs_page(team=team, state=state, name=name, tag=tag, limit=limit, cursor=cursor)
    print_json(page) if as_json else shown.jobs(page)


@app.command()
def show(job: JobRef, team: Team = None, url: Url = None, as_json: Json = False) -> None:
    """Show one job."""
    with options.client(url) as client:
        found = client.get_job(job, team=team)
    print_json(found) if as_json else shown.job(found)


@app.command()
def runs(
    job: JobRef,
    team: Team = None,
    status: Annotated[str | None, _option("--status", "Only runs in this state, such as DEAD.")] = None,
    limit: Limit = 20,
    cursor: Cursor = None,
    url: Url = None,
    as_json: Json = False,
) -> None:
    """List the runs of a job, the latest first."""
    with options.client(url) as client:
        page = client.runs_page(job, team=team, status=status, limit=limit, cursor=cursor)
    print_json(page) if as_json else shown.runs(page)


control.add_to(app)
