"""The `rsched` command. What a command needs is imported inside it, so that `rsched --help` answers at once."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from rsched.cli import calendars, doctor, forecast, jobs, processes, reconcile, runs, tz, upcoming
from rsched.cli.group import Commands

app = typer.Typer(
    cls=Commands,
    name="rsched",
    help="A Redis-native job scheduler: once, after a delay, or on cron; at least once, one active attempt.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
app.add_typer(jobs.app, name="jobs")
app.add_typer(runs.app, name="runs")
app.add_typer(calendars.app, name="calendars")
app.command("next")(upcoming.next_occurrences)
app.command("forecast")(forecast.forecast)
app.add_typer(tz.app, name="tz")
app.command()(doctor.doctor)
app.command()(reconcile.reconcile)
processes.add_to(app)


def _version(wanted: bool) -> None:
    if wanted:
        from rsched import __version__

        typer.echo(f"rsched {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    pass


def main() -> None:
    """Runs the command that was typed."""
    if hasattr(sys.stdout, "reconfigure"):
        # Names may hold any character; a terminal of another encoding shows a substitute instead of failing.
        sys.stdout.reconfigure(errors="replace")
        sys.stderr.reconfigure(errors="replace")  # type: ignore[union-attr]
    app()
