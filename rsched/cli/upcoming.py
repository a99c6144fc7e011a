"""`rsched next`: when a schedule fires, computed here; no server is asked."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from rsched.cli.options import Json
from rsched.cli.output import print_json, print_table


def _option(flag: str, text: str) -> Any:
    return typer.Option(flag, help=text, show_default=False)


def next_occurrences(
    expression: Annotated[
        str | None,
        typer.Argument(metavar="[EXPR]", help="Such as '0 2 * * *', in quotes, or @daily.", show_default=False),
    ] = None,
    tz: Annotated[str | None, _option("--tz", "The zone it is meant in, by default UTC.")] = None,
    every: Annotated[str | None, _option("--every", "Instead of EXPR: an interval, such as 90s or 6h.")] = None,
    second: Annotated[str | None, _option("--second", "The cron field of seconds.")] = None,
    year: Annotated[str | None, _option("--year", "The cron field of years.")] = None,
    gap: Annotated[str | None, _option("--gap", "Of slots that the clock jumps over: shift or skip.")] = None,
    overlap: Annotated[str | None, _option("--overlap", "Of slots that come twice: first or both.")] = None,
    exclude: Annotated[
        list[str] | None, _option("--exclude", "A date, or a range such as 2026-12-24/2027-01-02; repeat for more.")
    ] = None,
    schedule: Annotated[
        str | None, _option("--schedule", "The whole schedule as JSON, instead of the options.")
    ] = None,
    start: Annotated[str | None, _option("--from", "Only what comes after this instant, by default now.")] = None,
    count: Annotated[int, typer.Option("-n", "--count", min=1, max=1000, help="How many.")] = 5,
    team: Annotated[str, typer.Option("--team", help="For H: the job's team.")] = "default",
    name: Annotated[str | None, _option("--name", "For H: the job's name.")] = None,
    as_json: Json = False,
) -> None:
    """Show in words and by instants when a schedule fires."""
    from rsched.core.errors import invalid
    from rsched.core.instants import parse_instant
    from rsched.core.preview import preview_of
    from rsched.runtime.clock import SystemClock

    try:
        after = SystemClock().wall_ms() if start is None else parse_instant(start)
    except ValueError as error:
        raise invalid("--from", str(error)) from None
    fields: dict[str, Any] = {
        "cron": expression, "timezone": tz, "every": every, "second": second, "year": year, "exclude": exclude or None,
        "dst": {k: v for k, v in (("gap", gap), ("overlap", overlap)) if v is not None} or None,
    }  # fmt: skip
    given = {k: v for k, v in fields.items() if v is not None}
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
    from rsched.core.model import ScheduleSpec
    from rsched.core.schedule import Draft
    from rsched.core.validate import decode

    if whole is not None:
        if given:
            raise invalid(
                "--schedule", f"is given, and {', '.join(sorted(given))} too; write it in one of the two ways"
            )
        return Draft(decode(whole.encode(), ScheduleSpec), team=team, name=name)
    if not given:
        raise invalid("EXPR", "is missing; give a cron expression in quotes, --every, or --schedule")
    return Draft(decode(msgspec.json.encode(given), ScheduleSpec), team=team, name=name)
