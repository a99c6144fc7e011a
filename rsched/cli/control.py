"""Stops, starts and repeats what schedules do (`rsched jobs pause|resume|delete|trigger|backfill|skips`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from rsched.cli import options, shown
from rsched.cli.options import Cursor, JobRef, Json, Limit, Team, Url
from rsched.cli.output import print_json

if TYPE_CHECKING:
    from rsched.client import Client


def _option(name: str, text: str) -> Any:
    return typer.Option(name, help=text, show_default=False)


_Job = Annotated[
    str | None,
    typer.Argument(metavar="[JOB]", help="A job_id or name; leave it out for all jobs that match.", show_default=False),
]
_Tag = Annotated[str | None, _option("--tag", "Take the jobs with this tag.")]
_State = Annotated[str | None, _option("--state", "Take the jobs in this state.")]
_Name = Annotated[str | None, _option("--name", "Take the jobs with this name; * stands for any text.")]
_All = Annotated[bool, _option("--all", "Do it to all jobs that match, not to one JOB.")]
_DryRun = Annotated[bool, _option("--dry-run", "Print which jobs would change, and change nothing.")]
_Missed = Annotated[
    str | None, _option("--missed", "What to do with occurrences missed meanwhile: skip, run_once or run_all.")
]
_Key = Annotated[str | None, _option("--idempotency-key", "A repeat with the same key returns the same run.")]


def pause(
    job: _Job = None,
    *,
    note: Annotated[str | None, _option("--note", "Say why.")] = None,
    until: Annotated[
        str | None, _option("--until", "Resume by itself at this instant, or after a time such as 2h.")
    ] = None,
    missed: _Missed = None,
    team: Team = None,
    tag: _Tag = None,
    state: _State = None,
    name: _Name = None,
    everything: _All = False,
    dry_run: _DryRun = False,
    url: Url = None,
    as_json: Json = False,
) -> None:
    """Pause a job until it is resumed, or all jobs that match."""
    given: dict[str, Any] = {"note": note, "until": until, "missed": missed}
    matching = _matching(job, everything, dry_run, {"team": team, "tag": tag, "state": state, "name": name})
    with options.client(url) as client:
        if matching is not None:
            _bulk(client, "pause", matching, dry_run=dry_run, as_json=as_json, **given)
            return
        paused = client.pause_job(str(job), team=team, **given)
    ends = f" until {paused.pause.until}" if paused.pause is not None and paused.pause.until else ""
    print_json(paused) if as_json else typer.echo(f"{paused.job_id} is {paused.state}{ends}")


def resume(
    job: _Job = None,
    *,
    missed: _Missed = None,
    team: Team = None,
    tag: _Tag = None,
    state: _State = None,
    name: _Name = None,
    everything: _All = False,
    dry_run: _DryRun = False,
    url: Url = None,
    as_json: Json = False,
) -> None:
    """Let a paused job go on with its next occurrence, or all jobs that match."""
    matching = _matching(job, everything, dry_run, {"team": team, "tag": tag, "state": state, "name": name})
    given: dict[str, Any] = {"missed": missed}
    with options.client(url) as client:
        if matching is not None:
            _bulk(client, "resume", matching, dry_run=dry_run, as_json=as_json, **given)
            return
        resumed = client.resume_job(str(job), team=team, **given)
    print_json(resumed) if as_json else typer.echo(
        f"{resumed.job_id} is {resumed.state}, next {resumed.next_run_at or 'never'}"
    )


def delete(
    job: _Job = None,
    *,
    team: Team = None,
    tag: _Tag = None,
    state: _State = None,
    name: _Name = None,
    everything: _All = False,
    dry_run: _DryRun = False,
    yes: Annotated[bool, _option("--yes", "Do not ask before many jobs are deleted.")] = False,
    url: Url = None,
    as_json: Json = False,
) -> None:
    """Delete a job, or all that match; their history stays."""
    matching = _matching(job, everything, dry_run, {"team": team, "tag": tag, "state": state, "name": name})
    with options.client(url) as client:
        if matching is not None:
            if not (dry_run or yes):
                matched = sum(page.matched for page in _pages(client, "delete", matching, dry_run=True))
                typer.confirm(f"delete {matched} jobs?", abort=True, err=True)
            _bulk(client, "delete", matching, dry_run=dry_run, as_json=as_json)
            return
        client.delete_job(str(job), team=team)
    print_json({"deleted": job}) if as_json else typer.echo(f"deleted {job}")


def trigger(
    job: JobRef,
    *,
    payload: Annotated[str | None, _option("--payload", "The payload as JSON, or @file; by default the job's.")] = None,
    overlap: Annotated[
        str | None, _option("--overlap", "The overlap policy in place of the job's, such as allow.")
    ] = None,
    team: Team = None,
    key: _Key = None,
    url: Url = None,
    as_json: Json = False,
) -> None:
    """Run a job once now, beside its schedule."""
    given: dict[str, Any] = {"overlap": overlap}
    if payload is not None:
        given["payload"] = options.json_of("--payload", payload)
    with options.client(url) as client:
        run = client.trigger_job(job, team=team, idempotency_key=key, **given)
    print_json(run) if as_json else typer.echo(f"{run.run_id} is {run.status}")


def backfill(
    job: JobRef,
    *,
    start: Annotated[str, _option("--from", "The start of the range, such as 2026-10-25T00:00:00Z.")],
    end: Annotated[
        str | None, _option("--to", "The end of the range, which does not belong to it; by default now.")
    ] = None,
    dry_run: Annotated[bool, _option("--dry-run", "Print how many runs there would be, and create none.")] = False,
    team: Team = None,
    url: Url = None,
    as_json: Json = False,
) -> None:
    """Run the occurrences of a past range that have no run."""
    with options.client(url) as client:
        report = client.backfill_job(job, start=start, end=end, dry_run=dry_run, team=team)
    if as_json:
        print_json(report)
        return
    verb = "would be pending" if report.dry_run else "are pending"
    span = f", {report.first} to {report.last}, {report.pace_per_s} a second" if report.occurrences else ""
    typer.echo(f"{report.occurrences} runs of {report.job_id} {verb}{span}; {report.already} were there already")


def skips(
    job: JobRef, team: Team = None, limit: Limit = 20, cursor: Cursor = None, url: Url = None, as_json: Json = False
) -> None:
    """List the occurrences of a job that made no run and why, the latest first."""
    with options.client(url) as client:
        page = client.list_skips_page(job, team=team, limit=limit, cursor=cursor)
    print_json(page) if as_json else shown.skips(page)


def add_to(app: typer.Typer) -> None:
    """Adds these commands to `rsched jobs`."""
    for command in (pause, resume, trigger, delete, backfill, skips):
        app.command()(command)


def _matching(job: str | None, everything: bool, dry_run: bool, given: dict[str, str | None]) -> dict[str, Any] | None:
    """Returns the filter of a bulk request; None where one job is meant."""
    others = [f"--{name}" for name in ("tag", "state", "name") if given[name] is not None]
    if job is not None:
        if everything or others or dry_run:
            extra = ", ".join([*others, *(["--all"] if everything else []), *(["--dry-run"] if dry_run else [])])
            raise typer.BadParameter(f"is one job, and {extra} is for many; leave one of the two out", param_hint="JOB")
        return None
    if not everything and not dry_run:
        raise typer.BadParameter("say which: a JOB, or --all with --team, --tag, --state or --name", param_hint="JOB")
    return {**given, "all_jobs": everything}


def _pages(
    client: Client, verb: Literal["pause", "resume", "delete"], matching: dict[str, Any], *, dry_run: bool, **more: Any
) -> Any:
    calls = {"pause": client.pause_jobs, "resume": client.resume_jobs, "delete": client.delete_jobs}
    cursor: str | None = None
    while True:
        page = calls[verb](**matching, **more, dry_run=dry_run, cursor=cursor)
        yield page
        cursor = page.next_cursor
        if cursor is None:
            return


def _bulk(
    client: Client,
    verb: Literal["pause", "resume", "delete"],
    matching: dict[str, Any],
    *,
    dry_run: bool,
    as_json: bool,
    **more: Any,
) -> None:
    pages = list(_pages(client, verb, matching, dry_run=dry_run, **more))
    if as_json:
        print_json(pages)
    else:
        shown.bulk(pages)
    if any(page.failed for page in pages):
        raise typer.Exit(1)
