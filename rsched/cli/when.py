"""The options that say when: the same words for `jobs create` and `next`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from rsched.cli import options


def _option(*flags: str, text: str) -> Any:
    return typer.Option(*flags, help=text, show_default=False)


Zone = Annotated[
    str | None, _option("--tz", text="The zone of the wall's clock, such as Asia/Kolkata; by default UTC.")
]
Every = Annotated[str | None, _option("--every", text="An interval, such as 90s, 5m or 1h30m.")]
Anchor = Annotated[str | None, _option("--anchor", text="An instant that sets the phase of --every.")]
At = Annotated[str | None, _option("--at", text="One instant with offset, such as 2026-10-25T20:30:00Z.")]
Delay = Annotated[str | None, _option("--delay", text="Once, this long from now, such as 90s.")]
Second = Annotated[str | None, _option("--second", text="The cron field of seconds, such as 0,30.")]
Year = Annotated[str | None, _option("--year", text="The cron field of years, such as 2027-2028.")]
Gap = Annotated[str | None, _option("--gap", "--dst-gap", text="Of slots that the clock jumps over: shift or skip.")]
DST_OVERLAP = "Of slots that come twice when clocks go back: first or both."
DstOverlap = Annotated[str | None, _option("--dst-overlap", text=DST_OVERLAP)]
Exclude = Annotated[
    list[str] | None,
    _option(
        "--exclude",
        text="A date, a range such as 2026-12-24/2027-01-02, or a calendar of the team; any number of times.",
    ),
]
Start = Annotated[str | None, _option("--start", text="The first instant that may be one.")]
End = Annotated[str | None, _option("--end", text="The first instant that may not.")]
MaxRuns = Annotated[int | None, _option("--max-runs", text="The first so many, then it is completed.")]
Window = Annotated[
    str | None, _option("--window", text="Start each run at a fixed point in so long after its occurrence, such as 5m.")
]
Whole = Annotated[
    str | None,
    _option(
        "--schedule", text="The whole schedule as JSON, or @file; a JSON array: several. Instead of the options above."
    ),
]

_LENGTHS = ("every", "delay", "window")


def fields(given: Mapping[str, Any], *, gap: str | None, overlap: str | None) -> dict[str, Any]:
    """The fields of one schedule, from the options that were given."""
    found = {k: v for k, v in given.items() if v is not None and v != []}
    found |= {k: options.length_of(found[k]) for k in _LENGTHS if k in found}
    dst = {k: v for k, v in (("gap", gap), ("overlap", overlap)) if v is not None}
    return found | ({"dst": dst} if dst else {})


def whole(text: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """`schedule` or `schedules` of a job, from --schedule. BadParameter where it is neither, or is one way of two."""
    if given:
        raise typer.BadParameter(
            f"is the whole schedule; put {', '.join(sorted(given))} into it, or leave it out", param_hint="--schedule"
        )
    value = options.json_of("--schedule", text)
    if isinstance(value, list):
        return {"schedules": value}
    if not isinstance(value, dict):
        raise typer.BadParameter("must be a JSON object, or an array of them", param_hint="--schedule")
    return {"schedule": value}
