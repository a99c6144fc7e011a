"""Creates, shows and changes jobs over the API (`rsched jobs ...`)."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from rsched.cli import control, create, options, shown, update
from rsched.cli.group import Commands
from rsched.cli.options import Cursor, JobRef, Json, Limit, Team, Url
from rsched.cli.output import print_json

app = typer.Typer(cls=Commands, help="Create, see and change jobs.", no_args_is_help=True, rich_markup_mode=None)


def _option(name: str, text: str) -> Any:
    return typer.Option(name, help=text, show_default=False)


create.add_to(app)
update.add_to(app)


@app.command("list")
def list_jobs(
    team: Annotated[str | None, _option("--team", "List the jobs of this team only.")] = None,
    state: Annotated[
        str | None, _option("--state", "List the jobs in this state: active, paused, completed or invalid.")
    ] = None,
    name: Annotated[str | None, _option("--name", "List the jobs with exactly this name.")] = None,
    tag: Annotated[str | None, _option("--tag", "List the jobs with this tag.")] = None,
    q: Annotated[str | None, _option("--q", "List the jobs with this text in their name.")] = None,
    limit: Limit = 100,
    cursor: Cursor = None,
    url: Url = None,
    as_json: Json = False,
) -> None:
    """List jobs."""
    with options.client(url) as client:
        page = client.list_jobs_page(team=team, state=state, name=name, tag=tag, q=q, limit=limit, cursor=cursor)
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
    status: Annotated[str | None, _option("--status", "List only runs in this state, such as DEAD.")] = None,
    limit: Limit = 20,
    cursor: Cursor = None,
    url: Url = None,
    as_json: Json = False,
) -> None:
    """List the runs of a job, the latest first."""
    with options.client(url) as client:
        page = client.list_runs_page(job, team=team, status=status, limit=limit, cursor=cursor)
    print_json(page) if as_json else shown.runs(page)


control.add_to(app)
