"""Draws what comes due in the next hours, minute by minute (`rsched forecast`)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import typer

from rsched.cli.options import Json, Url, client
from rsched.cli.output import print_json, print_table

if TYPE_CHECKING:
    from rsched.core.answers import ForecastView

_BLOCKS = " ▁▂▃▄▅▆▇█"


def forecast(
    hours: Annotated[int, typer.Option("--hours", min=1, max=168, help="How many hours to look ahead.")] = 24,
    team: Annotated[
        str | None, typer.Option("--team", help="Count the runs of this team only.", show_default=False)
    ] = None,
    as_json: Json = False,
    url: Url = None,
) -> None:
    """Show how many runs come due in each minute to come, and what windows would flatten."""
    with client(url) as api:
        found = api.forecast(hours=hours, team=team)
    if as_json:
        print_json(found)
        return
    _draw(found, team)


def _draw(f: ForecastView, team: str | None) -> None:
    sampled = "" if f.sampled == 1 else f" (counted {f.sampled:.1%} of them, scaled)"
    # The number of jobs is of all teams: what was looked at to find this one's.
    whose = f"of {f.jobs} jobs{sampled}" if team is None else f"of team {team}, of {f.jobs} jobs in all{sampled},"
    typer.echo(f"{f.runs} runs {whose} from {f.from_} to {f.to} (UTC); at most {f.peak} in a minute")
    typer.echo()
    typer.echo("hour    one mark a minute                                             runs")
    for label, row, runs in rows(f):
        typer.echo(f"{label}  |{row}|  {runs}")
    if f.spikes:
        typer.echo()
        print_table(("SPIKE", "RUNS", "TEAMS"), [(s.at, str(s.runs), _teams(s.teams)) for s in f.spikes])
    if len(f.teams) > 1:
        typer.echo()
        print_table(("TEAM", "RUNS", "PEAK"), [(t.team, str(t.runs), str(t.peak)) for t in f.teams])
    better = [x for x in f.flattened if x.peak < f.peak]
    if f.spikes and better:
        typer.echo()
        print_table(("WITH A WINDOW OF", "PEAK WOULD BE"), [(x.window, str(x.peak)) for x in better])


def rows(f: ForecastView) -> list[tuple[str, str, int]]:
    """Returns (hour, its minutes as marks, its runs); a mark's height is relative to the highest minute of all."""
    start = datetime.fromisoformat(f.from_.replace("Z", "+00:00"))
    out, at = [], 0
    while at < len(f.per_minute):
        first = start.minute if at == 0 else 0
        part = f.per_minute[at : at + 60 - first]
        hour = (start.hour + (at + start.minute) // 60) % 24
        out.append((f"{hour:02d}:00", " " * first + marks(part, f.peak).ljust(60 - first), sum(part)))
        at += len(part)
    return out


def marks(counts: Sequence[int], peak: int) -> str:
    """Returns one block for each count; every count above 0 is visible."""
    top = len(_BLOCKS) - 1
    return "".join(_BLOCKS[0 if n <= 0 else max(1, round(n * top / max(peak, 1)))] for n in counts)


def _teams(teams: dict[str, int]) -> str:
    return ", ".join(f"{team} {n}" for team, n in teams.items())
