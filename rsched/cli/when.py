"""A whole schedule as an option: the same for `jobs create` and `next`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from rsched.cli import options


def _option(*flags: str, text: str) -> Any:
    return typer.Option(*flags, help=text, show_default=False)


Whole = Annotated[
    str | None,
    _option(
        "--schedule", text="The whole schedule as JSON, or @file; a JSON array: several. Instead of the options above."
    ),
]


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
