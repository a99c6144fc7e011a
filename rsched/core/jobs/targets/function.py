"""Targets that are Python functions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

import msgspec

from rsched.core.errors import FieldError
from rsched.core.jobs.targets.base import TargetKind, check_slug
from rsched.core.options import option

MAX_FUNCTION_NAME = 200


class FunctionTarget(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True, tag="function"
):
    """A Python function that workers serve.

    Attributes:
        function: The name that workers serve it under.
        queue: The queue of those workers.
        args: Its arguments.
        kwargs: Its keyword arguments.
    """

    function: Annotated[str, option("--function", text="Run this Python function, such as reports.nightly.")]
    queue: Annotated[str, option("--queue", text="The queue of workers that have the function.")] = "default"
    args: Annotated[list[Any], option("--args", text="A JSON array of its arguments.", reads="json")] = []
    kwargs: Annotated[
        dict[str, Any], option("--kwargs", text="A JSON object of its keyword arguments.", reads="json")
    ] = {}


def _check(target: FunctionTarget) -> Iterator[FieldError]:
    if not 1 <= len(target.function) <= MAX_FUNCTION_NAME:
        yield FieldError("target.function", f"write the name of a function, 1 to {MAX_FUNCTION_NAME} characters")
    elif any(c <= " " or "\x7f" <= c <= "\x9f" for c in target.function):
        yield FieldError("target.function", "must not contain spaces or control characters")
    yield from check_slug(target.queue, "target.queue")


FUNCTION = TargetKind(
    struct=FunctionTarget,
    check=_check,
    queue=lambda target: target.queue,
    summary=lambda target: f"{target.function} on {target.queue}",
)
