"""`rsched runs ...`: one run, over the API."""

from __future__ import annotations

import typer

from rsched.cli import options, shown
from rsched.cli.group import Commands
from rsched.cli.options import Json, RunRef, Url
from rsched.cli.output import print_json

app = typer.Typer(cls=Commands, help="See and cancel runs.", no_args_is_help=True, rich_markup_mode=None)


@app.command()
def show(run: RunRef, url: Url = None, as_json: Json = False) -> None:
    """Show one run and its attempts."""
    with options.client(url) as client:
        view = client.get_run(run)
    print_json(view) if as_json else shown.run(view)


@app.command()
def cancel(run: RunRef, url: Url = None, as_json: Json = False) -> None:
    """Cancel a run; an attempt that is running is asked to stop."""
    with options.client(url) as client:
        view = client.cancel_run(run)
    asked = " and asked to stop" if view.status == "RUNNING" else ""
    print_json(view) if as_json else typer.echo(f"{view.run_id} is {view.status}{asked}")
