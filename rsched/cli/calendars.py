"""Lists, shows and changes a team's holiday calendars over the API (`rsched calendars ...`)."""

from __future__ import annotations

from typing import Annotated

import msgspec
import typer

from rsched.cli import options
from rsched.cli.group import Commands
from rsched.cli.options import Ack, Cursor, Json, Limit, Url
from rsched.cli.output import print_fields, print_json, print_table

app = typer.Typer(
    cls=Commands, help="Manage the dates that a team's schedules exclude.", no_args_is_help=True, rich_markup_mode=None
)

_Team = Annotated[str, typer.Option("--team", help="The team that the calendars belong to.")]
_Name = Annotated[str, typer.Argument(metavar="NAME", help="The name of the calendar.", show_default=False)]
_Version = Annotated[
    int | None,
    typer.Option("--if-match", help="Change it only if it still has this version.", show_default=False),
]


@app.command("list")
def list_calendars(
    team: _Team = "default", limit: Limit = 100, cursor: Cursor = None, url: Url = None, as_json: Json = False
) -> None:
    """List a team's calendars."""
    with options.client(url) as client:
        page = client.list_calendars_page(team, cursor=cursor, limit=limit)
    if as_json:
        print_json(page)
        return
    print_table(("CALENDAR", "VERSION", "DATES"), [(c.name, str(c.version), str(c.total)) for c in page.items])
    if page.next_cursor is not None:
        typer.echo(f"there are more: --cursor {page.next_cursor}", err=True)


@app.command()
def show(name: _Name, team: _Team = "default", url: Url = None, as_json: Json = False) -> None:
    """Show a calendar's dates, one in each line."""
    with options.client(url) as client:
        calendar = client.get_calendar(team, name)
    if as_json:
        print_json(calendar)
        return
    for entry in calendar.dates if calendar.dates is not msgspec.UNSET else ():
        typer.echo(entry)


@app.command()
def put(
    name: _Name,
    dates: Annotated[
        list[str],
        typer.Argument(
            metavar="DATE...",
            help="A date, a range such as 2026-12-24/2027-01-02, or @file with one a line or as JSON; @- is standard input.",
            show_default=False,
        ),
    ],
    team: _Team = "default",
    if_match: _Version = None,
    ack: Ack = None,
    url: Url = None,
    as_json: Json = False,
) -> None:
    """Create a calendar, or replace its dates; the jobs that use it follow."""
    entries = [entry for given in dates for entry in _entries(given)]
    with options.client(url) as client:
        calendar = client.put_calendar(team, name, dates=entries, if_match=if_match, ack=ack)
    if as_json:
        print_json(calendar)
        return
    print_fields([("calendar", calendar.name), ("version", str(calendar.version)), ("dates", str(calendar.total))])


@app.command()
def delete(
    name: _Name,
    team: _Team = "default",
    if_match: _Version = None,
    ack: Ack = None,
    url: Url = None,
    as_json: Json = False,
) -> None:
    """Delete a calendar that no job uses."""
    with options.client(url) as client:
        client.delete_calendar(team, name, if_match=if_match, ack=ack)
    print_json({"deleted": name}) if as_json else typer.echo(f"deleted {name}")


def _entries(given: str) -> list[str]:
    """Returns the dates of one argument: itself, or those of its file in the form of show or show --json."""
    if not given.startswith("@"):
        return [given]
    text = options.text_of("DATE", given)
    if text.lstrip()[:1] not in ("[", "{"):
        # What follows a # is a comment.
        return [day for line in text.splitlines() if (day := line.partition("#")[0].strip())]
    value = options.json_of("DATE", text)
    listed = value.get("dates") if isinstance(value, dict) else value
    if not isinstance(listed, list) or not all(isinstance(day, str) for day in listed):
        raise typer.BadParameter(
            'must hold one date a line, a JSON array of dates, or {"dates": [...]}', param_hint="DATE"
        )
    return listed
