"""Computes when a schedule fires, without asking any server (`rsched next`)."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from rsched.cli import job_options, when
from rsched.cli.options import Json
from rsched.cli.output import print_json, print_table
from rsched.core.schedule.spec import ScheduleSpec


def _option(flag: str, text: str) -> Any:
    return typer.Option(flag, help=text, show_default=False)


@job_options.takes(ScheduleSpec, leaves_out=("cron", "at", "delay"), more_flags={"dst_overlap": ("--overlap",)})
def next_occurrences(
    given: dict[str, Any],
    *,
    expression: Annotated[
        str | None,
        typer.Argument(metavar="[EXPR]", help="Such as '0 2 * * *', in quotes, or @daily.", show_default=False),
    ] = None,
    schedule: when.Whole = None,
    from_: Annotated[str | None, _option("--from", "Only what comes after this instant, by default now.")] = None,
    count: Annotated[int, typer.Option("-n", "--count", min=1, max=1000, help="How many.")] = 5,
    team: Annotated[str, typer.Option("--team", help="For H: the job's team.")] = "default",
    name: Annotated[str | None, _option("--name", "For H: the job's name.")] = None,
    as_json: Json = False,
) -> None:
    """Show in words and as instants when a schedule fires."""
    from rsched.core.errors import invalid
    from rsched.core.instants import parse_instant
    from rsched.core.schedule.preview import preview_of
    from rsched.runtime.clock import SystemClock

    try:
        after = SystemClock().wall_ms() if from_ is None else parse_instant(from_)
    except ValueError as error:
        raise invalid("--from", str(error)) from None
    if expression is not None:
        given = {"cron": expression, **given}
    preview = preview_of(_draft(given, schedule, team=team, name=name), start=after, count=count)
    if as_json:
        print_json(preview)
        return
    typer.echo(preview.description)
    for warning in preview.warnings:
        typer.echo(f"warning: {warning}", err=True)
    print_table(("UTC", "LOCAL", "NOTE"), [(o.utc, o.local, o.note or "") for o in preview.occurrences])


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

    return msgspec.defstruct(
        "Schedules", [("schedule", ScheduleSpec | None, None), ("schedules", list[ScheduleSpec], [])]
    )
