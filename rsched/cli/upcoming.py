"""`rsched next`: when a cron expression fires, computed here; no server is asked."""

from __future__ import annotations

from typing import Annotated

import typer

from rsched.cli.options import Json
from rsched.cli.output import print_json, print_table


def next_occurrences(
    expression: Annotated[str, typer.Argument(metavar="EXPR", help="Such as '0 2 * * *', in quotes, or @daily.")],
    tz: Annotated[str, typer.Option("--tz", help="The zone it is meant in.")] = "UTC",
    start: Annotated[
        str | None,
        typer.Option("--from", help="Only what comes after this instant, by default now.", show_default=False),
    ] = None,
    count: Annotated[int, typer.Option("-n", "--count", min=1, max=1000, help="How many.")] = 5,
    team: Annotated[str, typer.Option("--team", help="For H: the job's team.")] = "default",
    name: Annotated[str | None, typer.Option("--name", help="For H: the job's name.", show_default=False)] = None,
    as_json: Json = False,
) -> None:
    """Show the next occurrences of a cron expression."""
    from rsched.client.views import Occurrence
    from rsched.core import schedule as schedules
    from rsched.core.errors import invalid
    from rsched.core.instants import format_local, format_utc, parse_instant
    from rsched.core.model import ScheduleSpec
    from rsched.runtime.clock import SystemClock

    try:
        after = SystemClock().wall_ms() if start is None else parse_instant(start)
    except ValueError as error:
        raise invalid("--from", str(error)) from None
    spec = ScheduleSpec(cron=expression, timezone=tz)
    _, schedule = schedules.resolve(schedules.Draft(spec, team=team, name=name), now_ms=after)
    found = [
        Occurrence(utc=format_utc(t, short=t % 1000 == 0), local=format_local(t, schedule.zone), note=None)
        for t in schedule.upcoming(after, count)
    ]
    if as_json:
        print_json({"occurrences": found})
    else:
        print_table(("UTC", "LOCAL", "NOTE"), [(o.utc, o.local, o.note or "") for o in found])
