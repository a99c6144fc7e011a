"""`rsched next`: when a schedule fires, computed here; no server is asked."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from rsched.cli import when
from rsched.cli.options import Json
from rsched.cli.output import print_json, print_table


def _option(flag: str, text: str) -> Any:
    return typer.Option(flag, help=text, show_default=False)


def next_occurrences(
    expression: Annotated[
        str | None,
        typer.Argument(metavar="[EXPR]", help="Such as '0 2 * * *', in quotes, or @daily.", show_default=False),
    ] = None,
    tz: when.Zone = None,
    second: when.Second = None,
    year: when.Year = None,
    gap: when.Gap = None,
    overlap: Annotated[
        str | None, typer.Option("--dst-overlap", "--overlap", help=when.DST_OVERLAP, show_default=False)
    ] = None,
    every: when.Every = None,
    anchor: when.Anchor = None,
    exclude: when.Exclude = None,
    begin: when.Start = None,
    end: when.End = None,
    max_runs: when.MaxRuns = None,
    window: when.Window = None,
    schedule: when.Whole = None,
    start: Annotated[str | None, _option("--from", "Only what comes after this instant, by default now.")] = None,
    count: Annotated[int, typer.Option("-n", "--count", min=1, max=1000, help="How many.")] = 5,
    team: Annotated[str, typer.Option("--team", help="For H: the job's team.")] = "default",
    name: Annotated[str | None, _option("--name", "For H: the job's name.")] = None,
    as_json: Json = False,
) -> None:
    """Show in words and by instants when a schedule fires."""
    from rsched.core.errors import invalid
    from rsched.core.instants import parse_instant
    from rsched.core.schedule.preview import preview_of
    from rsched.runtime.clock import SystemClock

    try:
        after = SystemClock().wall_ms() if start is None else parse_instant(start)
    except ValueError as error:
        raise invalid("--from", str(error)) from None
    given = when.fields(
        {
            "cron": expression, "timezone": tz, "second": second, "year": year, "every": every, "anchor": anchor,
            "exclude": exclude, "start": begin, "end": end, "max_runs": max_runs, "window": window,
        },
        gap=gap, overlap=overlap,
    )  # fmt: skip
    found = preview_of(_draft(given, schedule, team=team, name=name), start=after, count=count)
    if as_json:
        print_json(found)
        return
    typer.echo(found.description)
    for warning in found.warnings:
        typer.echo(f"warning: {warning}", err=True)
    print_table(("UTC", "LOCAL", "NOTE"), [(o.utc, o.local, o.note or "") for o in found.occurrences])


def _draft(given: dict[str, Any], whole: str | None, *, team: str, name: str | None) -> Any:
    import msgspec

    from rsched.core.errors import invalid
    from rsched.core.jobs.validate import decode
    from rsched.core.schedule.schedule import Draft, calendar_names

    if whole is None and not given:
        raise invalid("EXPR", "is missing; give a cron expression in quotes, --every, or --schedule")
    body = {"schedule": given} if whole is None else when.whole(whole, given)
    spec = decode(msgspec.json.encode(body), _spec_type())
    draft = Draft(spec.schedule, tuple(spec.schedules), team, name)
    if names := sorted(calendar_names(draft)):
        raise invalid(
            "schedule.exclude",
            f"names the calendar {names[0]!r}, which only the API knows; write its dates, "
            "or ask POST /v1/schedules:preview",
        )
    return draft


def _spec_type() -> Any:
    """As a job has them, so that errors name the fields as the API's do."""
    import msgspec

    from rsched.core.jobs.model import ScheduleSpec

    return msgspec.defstruct(
        "Schedules", [("schedule", ScheduleSpec | None, None), ("schedules", list[ScheduleSpec], [])]
    )
