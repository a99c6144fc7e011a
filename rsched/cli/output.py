"""Prints tables for people, plain columns for pipes and JSON for programs; errors go to standard error instead."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import msgspec
import typer

Rows = Sequence[Sequence[str]]


def print_json(value: Any) -> None:
    """Prints one JSON document, indented."""
    typer.echo(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())


def print_table(columns: Sequence[str], rows: Rows, *, styles: Sequence[str] = ()) -> None:
    """Prints a table on a terminal, and tab-separated lines with a header for cut and awk where the output is piped."""
    if not sys.stdout.isatty():
        for row in (columns, *rows):
            typer.echo("\t".join(clean(cell) for cell in row))
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="bold")
    for i, column in enumerate(columns):
        table.add_column(column, overflow="fold", style=styles[i] if i < len(styles) else "")
    for row in rows:
        table.add_row(*(_coloured(Text, clean(cell)) for cell in row))
    Console().print(table)


def print_fields(pairs: Sequence[tuple[str, str]]) -> None:
    """Prints a `name  value` line for each pair."""
    width = max((len(name) for name, _ in pairs), default=0)
    for name, value in pairs:
        typer.echo(f"{name:<{width}}  {clean(value)}".rstrip())


def clean(text: str) -> str:
    """Returns the text in one line without control characters: a job's name or error must not move the cursor."""
    return "".join(c if c.isprintable() else " " for c in text)


_COLOURS = {
    "active": "green",
    "SUCCEEDED": "green",
    "ok": "green",
    "RUNNING": "cyan",
    "paused": "yellow",
    "RETRYING": "yellow",
    "SKIPPED": "yellow",
    "warn": "yellow",
    "invalid": "red",
    "DEAD": "red",
    "fail": "red",
}


def _coloured(text: Any, cell: str) -> Any:
    return text(cell, style=_COLOURS.get(cell, ""))
