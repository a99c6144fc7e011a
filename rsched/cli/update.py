"""Changes some fields of a job and leaves all others as they are (`rsched jobs update`)."""

from __future__ import annotations

from typing import Annotated

import typer

from rsched.cli import options, shown
from rsched.cli.options import Ack, JobRef, Json, Team, Url
from rsched.cli.output import print_json


def update(
    job: JobRef,
    changes: Annotated[
        str,
        typer.Argument(
            metavar="CHANGES",
            help="What changes as a JSON merge patch, or @file: objects are merged, null removes a field or sets its default.",
            show_default=False,
        ),
    ],
    *,
    if_match: Annotated[
        int | None, typer.Option("--if-match", help="Change it only if it still has this version.", show_default=False)
    ] = None,
    team: Team = None,
    ack: Ack = None,
    url: Url = None,
    as_json: Json = False,
) -> None:
    """Change some fields of a job, such as '{"schedule": {"cron": "0 3 * * *"}, "tags": ["nightly"]}'."""
    patch = options.json_of("CHANGES", changes)
    if not isinstance(patch, dict):
        raise typer.BadParameter("must be a JSON object, such as '{\"timeout_s\": 60}'", param_hint="CHANGES")
    with options.client(url) as client:
        changed = client.update_job(job, changes=patch, if_match=if_match, team=team, ack=ack)
    print_json(changed) if as_json else shown.job(changed)
    shown.warn_of(changed)


def add_to(app: typer.Typer) -> None:
    """Adds the command to `rsched jobs`."""
    app.command()(update)
