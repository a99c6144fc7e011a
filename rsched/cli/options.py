"""Options that many commands take, and how their text is read."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
import typer

if TYPE_CHECKING:
    from rsched.client import Client

DEFAULT_URL = "http://127.0.0.1:8080"
# People wait at the terminal: a failover passes within this, a server that is not there should be said soon.
RETRY_FOR_S = 5.0

Url = Annotated[
    str | None,
    typer.Option("--api", "--url", help=f"The API, by default RSCHED_URL or {DEFAULT_URL}.", show_default=False),
]
Json = Annotated[bool, typer.Option("--json", help="JSON instead of a table.")]
Team = Annotated[str | None, typer.Option("--team", help="The team whose name it is, by default `default`.")]
JobRef = Annotated[str, typer.Argument(metavar="JOB", help="A job_id, or a name in --team.", show_default=False)]
RunRef = Annotated[
    str, typer.Argument(metavar="RUN", help="A run_id, such as j_...:1793000000000.", show_default=False)
]
Limit = Annotated[int, typer.Option("--limit", min=1, max=1000, help="At most so many.")]
Cursor = Annotated[str | None, typer.Option("--cursor", help="Go on where the page before ended.")]
Ack = Annotated[
    Literal["postgres", "redis"] | None,
    typer.Option(
        "--ack",
        help="Answer when it is here; by default postgres, which survives the loss of Redis.",
        show_default=False,
    ),
]
DataDir = Annotated[
    str | None,
    typer.Option(
        "--data-dir", help="Use the servers of the `rsched up` that runs with this folder.", show_default=False
    ),
]
ConfigFile = Annotated[
    str | None, typer.Option("--config", help="Settings in TOML, by default RSCHED_CONFIG.", show_default=False)
]


def client(url: str | None) -> Client:
    """A client of --api, else RSCHED_URL, else this machine's API."""
    from rsched.client import Client

    return Client(url or os.environ.get("RSCHED_URL") or DEFAULT_URL, retry_for_s=RETRY_FOR_S)


def environment(data_dir: str | None) -> Mapping[str, str]:
    """The environment that settings are read from; with --data-dir the servers of the `rsched up` there. Misconfigured."""
    from rsched.core.errors import Misconfigured

    if data_dir is None:
        return os.environ
    path = Path(data_dir).expanduser() / "processes.json"
    try:
        facts = msgspec.json.decode(path.read_bytes(), type=dict[str, Any])
        return {**os.environ, "RSCHED_REDIS_URL": facts["redis_url"], "RSCHED_DATABASE_URL": facts["postgres_url"]}
    except (OSError, msgspec.DecodeError, KeyError):
        raise Misconfigured(
            f"--data-dir: no `rsched up` runs with {data_dir!r}; start it, or leave --data-dir out and set RSCHED_REDIS_URL "
            "and RSCHED_DATABASE_URL"
        ) from None


def quiet() -> None:
    """Of what a process logs, only errors beside the answer of a command that does its work by hand: it says the rest itself."""
    import logging

    if (handler := logging.lastResort) is not None:
        handler.setLevel(logging.ERROR)
        handler.setFormatter(logging.Formatter("error: %(message)s %(fields)s", defaults={"fields": ""}))


def read_toml(option: str | None) -> dict[str, Any]:
    """The settings file in force, or nothing. Misconfigured where there is one that cannot be read."""
    import tomllib

    from rsched.core.errors import Misconfigured
    from rsched.core.settings import config_path

    path = config_path(os.environ, option)
    if path is None:
        return {}
    try:
        return tomllib.loads(Path(path).expanduser().read_text("utf-8"))
    except OSError as error:
        raise Misconfigured(f"{path}: {error.strerror}; correct --config or RSCHED_CONFIG") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise Misconfigured(f"{path} is not valid TOML: {error}") from None


def text_of(option: str, value: str) -> str:
    """The value itself, the content of a file for @file, or standard input for @-."""
    if not value.startswith("@"):
        return value
    try:
        return sys.stdin.read() if value == "@-" else Path(value[1:]).expanduser().read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise typer.BadParameter(f"cannot read {value[1:]!r}: {error}", param_hint=option) from None


def json_of(option: str, value: str) -> Any:
    """A JSON value that was typed, or read from @file."""
    text = text_of(option, value)
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        raise typer.BadParameter(
            f"""is not valid JSON ({error}); put it in single quotes, such as '{{"a": 1}}' or '"text"', or write @file""",
            param_hint=option,
        ) from None


def pair_of(option: str, value: str) -> tuple[str, str]:
    """`Name: value`."""
    name, colon, rest = value.partition(":")
    if not colon or not name.strip():
        raise typer.BadParameter(f"{value!r} must be like 'Name: value'", param_hint=option)
    return name.strip(), rest.strip()


def length_of(value: str) -> str | float:
    """A duration as typed: digits alone are seconds, as in JSON."""
    try:
        return float(value)
    except ValueError:
        return value


def seconds_of(option: str, value: str) -> float:
    """A duration as typed, in seconds."""
    from rsched.core.durations import parse_duration

    try:
        return parse_duration(length_of(value)) / 1000
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint=option) from None
