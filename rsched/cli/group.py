"""Ends every command: with 0 when it worked, 1 when it was refused or failed, 2 when it was typed wrongly."""

from __future__ import annotations

import sys
from typing import Any

import typer
from typer.core import TyperGroup

from rsched.core.errors import RschedError

# A file of many jobs may be wrong in each of them; the first errors are enough.
_MOST = 20


class Commands(TyperGroup):
    """Turns the error tree into a few lines on standard error, so that nobody reads a traceback of a typing error."""

    def invoke(self, ctx: Any) -> Any:
        """Runs the command, and reports the errors that people can do something about."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            raise typer.Exit(130) from None
        except (RschedError, BaseExceptionGroup) as raised:
            errors = expected(raised)
            if not errors:
                raise
            for error in errors:
                report(error)
        raise typer.Exit(1)


def report(error: RschedError) -> None:
    """Prints what went wrong and the fix, one line for each field."""
    lines = [f"{e.field}: {e.message}" if e.field else e.message for e in error.errors]
    for line in lines[:_MOST] or [str(error) or error.code]:
        print(f"error: {line}", file=sys.stderr)
    if len(lines) > _MOST:
        print(f"error: and {len(lines) - _MOST} more", file=sys.stderr)


def expected(raised: BaseException) -> list[RschedError]:
    """Returns the errors that were raised, each once; none where a bug is among them, since it needs its traceback."""
    if isinstance(raised, RschedError):
        return [raised]
    by_text: dict[str, RschedError] = {}
    for each in raised.exceptions if isinstance(raised, BaseExceptionGroup) else ():
        inner = expected(each)
        if not inner:
            return []
        by_text |= {str(e): e for e in inner}
    return list(by_text.values())
