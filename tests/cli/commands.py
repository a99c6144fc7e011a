"""Runs commands in this process, and the options that they share."""

from __future__ import annotations

from typing import Any

from typer.testing import CliRunner, Result

from rsched.cli.main import app

# One option for each field of a schedule, with what the API is sent.
FIELDS: dict[str, tuple[list[str], Any]] = {
    "cron": (["--cron", "0 2 * * *"], "0 2 * * *"),
    "timezone": (["--tz", "Asia/Kolkata"], "Asia/Kolkata"),
    "second": (["--second", "0,30"], "0,30"),
    "year": (["--year", "2027"], "2027"),
    "dst": (["--gap", "skip", "--dst-overlap", "both"], {"gap": "skip", "overlap": "both"}),
    "every": (["--every", "90"], 90.0),
    "anchor": (["--anchor", "2027-01-01T00:00:00Z"], "2027-01-01T00:00:00Z"),
    "at": (["--at", "2027-01-01T00:00:00Z"], "2027-01-01T00:00:00Z"),
    "delay": (["--delay", "5m"], "5m"),
    "exclude": (["--exclude", "2026-12-25", "--exclude", "holidays"], ["2026-12-25", "holidays"]),
    "start": (["--start", "2027-01-01T00:00:00Z"], "2027-01-01T00:00:00Z"),
    "end": (["--end", "2028-01-01T00:00:00Z"], "2028-01-01T00:00:00Z"),
    "max_runs": (["--max-runs", "3"], 3),
    "window": (["--window", "5m"], "5m"),
}


def rsched(*args: str, env: dict[str, str] | None = None, text: str | None = None) -> Result:
    return CliRunner().invoke(app, list(args), env=env, input=text)
