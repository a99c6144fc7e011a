"""`rsched jobs create` and `rsched jobs apply`: one job from options, or many from a file."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
import typer

from rsched.cli import job_options, options, shown, when
from rsched.cli.options import Ack, Json, Url
from rsched.cli.output import print_json, print_table
from rsched.core.errors import invalid
from rsched.core.jobs.model import JobFields
from rsched.core.jobs.targets import TARGET_KINDS
from rsched.core.schedule.spec import KINDS

# As many as a request to create many takes.
_BATCH = 10_000


def _option(name: str, text: str) -> Any:
    return typer.Option(name, help=text, show_default=False)


@job_options.takes(JobFields)
def create(
    given: dict[str, Any],
    *,
    schedule: when.Whole = None,
    file: Annotated[
        str | None, _option("--file", "A whole job as JSON from this file, or - for standard input.")
    ] = None,
    key: Annotated[str | None, _option("--idempotency-key", "A repeat with this key gives the same job.")] = None,
    replace: Annotated[bool, _option("--replace", "Replace the whole job of this name, if there is one.")] = False,
    if_match: Annotated[int | None, _option("--if-match", "With --replace: only where it has this version.")] = None,
    ack: Ack = None,
    api: Annotated[str | None, _option("--api", f"The API, by default RSCHED_URL or {options.DEFAULT_URL}.")] = None,
    as_json: Json = False,
) -> None:
    """Create a job: a schedule, a target, and what differs from the defaults."""
    spec = _from_options(given, schedule) if file is None else _whole(file, given, schedule)
    called = _to_replace(spec, key, if_match, replace=replace)
    with options.client(api) as client:
        if called is None:
            job = client.create_job(spec=spec, idempotency_key=key, ack=ack)
        else:
            job = client.replace_job(called, spec=spec, if_match=if_match, ack=ack)
    print_json(job) if as_json else shown.job(job)
    shown.warn_of(job)


def apply(
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="A JSON array of jobs, or one job a line; - for standard input.")
    ],
    key: Annotated[str | None, _option("--idempotency-key", "A repeat with this key gives the same jobs.")] = None,
    ack: Ack = None,
    url: Url = None,
    as_json: Json = False,
) -> None:
    """Create many jobs, all or none, and print their ids in order."""
    specs = _many(options.text_of("FILE", f"@{file}"))
    with options.client(url) as client:
        jobs = client.create_jobs(specs, idempotency_key=key, ack=ack)
    if as_json:
        print_json(jobs)
        return
    print_table(("JOB", "NAME", "NEXT RUN"), [(j.job_id, j.name or "-", j.next_run_at or "-") for j in jobs])


def add_to(app: typer.Typer) -> None:
    for command in (create, apply):
        app.command()(command)


def _to_replace(spec: dict[str, Any], key: str | None, if_match: int | None, *, replace: bool) -> str | None:
    """The name of the job that spec replaces; None where it is to be a new one. BadParameter where options do not agree."""
    if not replace:
        if if_match is not None:
            raise typer.BadParameter("goes with --replace only", param_hint="--if-match")
        return None
    name = spec.get("name")
    if not isinstance(name, str):
        raise typer.BadParameter("needs --name: which job is it?", param_hint="--replace")
    if key is not None:
        raise typer.BadParameter(
            "is for new jobs; a repeat of --replace changes nothing", param_hint="--idempotency-key"
        )
    return name


def _from_options(given: dict[str, Any], whole: str | None) -> dict[str, Any]:
    """The body of a job; a usage error where an option that everything hangs on was left out."""
    times = given.pop("schedule", {})
    part = {"schedule": times} if whole is None else when.whole(whole, times)
    if whole is None and not any(kind in times for kind in KINDS):
        raise typer.BadParameter(
            "say when: one of --cron, --every, --at, --delay, --schedule, or a whole job with --file"
        )
    return {**given, **part, "target": _target(given.get("target", {}))}


def _target(given: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """The target, from the options of its kind. BadParameter where no kind is whole, Invalid where there are two."""
    needed = {kind.tag: kind.struct.__struct_fields__[0] for kind in TARGET_KINDS}
    if not any(needed[tag] in fields for tag, fields in given.items()):
        flags = " or ".join(f"--{name}" for name in needed.values())
        raise typer.BadParameter(f"say what: {flags}, or a whole job with --file")
    if len(given) > 1:
        said = [f"{next(iter(fields))} is of the kind {tag}" for tag, fields in given.items()]
        raise invalid("target", f"{' and '.join(said)}; give one kind")
    ((tag, fields),) = given.items()
    return {"type": tag, **fields}


def _whole(file: str, given: dict[str, Any], schedule: str | None) -> dict[str, Any]:
    """The job in a file, with the team and name of the options."""
    named = {field: given.pop(field) for field in ("name", "team") if field in given}
    others = sorted([*job_options.flags_of(JobFields, given), *(["--schedule"] if schedule else [])])
    if others:
        raise typer.BadParameter(f"holds the whole job; put {', '.join(others)} into it", param_hint="--file")
    spec = options.json_of("--file", f"@{file}")
    if not isinstance(spec, dict):
        raise typer.BadParameter(
            "must hold one JSON object; for many jobs see `rsched jobs apply`", param_hint="--file"
        )
    return {**spec, **named}


def _many(text: str) -> list[dict[str, Any]]:
    """The jobs of a file. BadParameter names the line that is none."""
    if text.lstrip().startswith("["):
        jobs = options.json_of("FILE", text)
    else:
        jobs = []
        for number, line in enumerate(text.splitlines(), 1):
            if not line.strip():
                continue
            try:
                jobs.append(msgspec.json.decode(line))
            except msgspec.DecodeError as error:
                raise typer.BadParameter(
                    f"line {number} is not valid JSON ({error}); write an array, or one job a line", param_hint="FILE"
                ) from None
    if not jobs or not all(isinstance(job, dict) for job in jobs):
        raise typer.BadParameter("must hold one or more JSON objects, in an array or one a line", param_hint="FILE")
    if len(jobs) > _BATCH:
        raise typer.BadParameter(
            f"holds {len(jobs)} jobs; split it into files of at most {_BATCH} each", param_hint="FILE"
        )
    return list(jobs)
