"""Options of a command from the fields of a job: each field that has an Option in its annotation becomes one.

`takes(JobSpec)` adds them to a command; what was typed comes back as JSON of the same shape, so that no command lists fields.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Annotated, Any, NamedTuple, get_args, get_origin, get_type_hints

import msgspec
import typer

from rsched.cli import options
from rsched.core.options import Option, Reads

_TYPES: Mapping[Reads, Any] = {"integer": int | None, "texts": list[str] | None, "headers": list[str] | None}


class JobOption(NamedTuple):
    """An option, and the field that it gives.

    Attributes:
        path: To the field in JSON; of a union of tagged structs the tag is part of it (`target`, `http`, `url`).
        option: As declared beside the field.
    """

    path: tuple[str, ...]
    option: Option

    @property
    def parameter(self) -> str:
        """The name of the command's parameter."""
        return "_".join(self.path)


@cache
def options_of(struct: type[msgspec.Struct]) -> tuple[JobOption, ...]:
    """Returns the options of a struct's fields, those of structs in it included, in their order."""
    return tuple(_walk(struct, ()))


def _walk(struct: type[msgspec.Struct], path: tuple[str, ...]) -> Iterator[JobOption]:
    hints = get_type_hints(struct, include_extras=True)
    for name in struct.__struct_fields__:
        hint = hints[name]
        declared = [one for one in getattr(hint, "__metadata__", ()) if isinstance(one, Option)]
        if declared:
            yield JobOption((*path, name), declared[0])
            continue
        for part in get_args(hint) or (hint,):
            if isinstance(part, type) and issubclass(part, msgspec.Struct) and get_origin(hint) is not list:
                tag = part.__struct_config__.tag
                yield from _walk(part, (*path, name, *([str(tag)] if tag is not None else [])))


def takes(
    struct: type[msgspec.Struct],
    *,
    leaves_out: tuple[str, ...] = (),
    more_flags: Mapping[str, tuple[str, ...]] | None = None,
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Returns a decorator: the command has the options of a struct's fields, and gets what was given as its first argument.

    Args:
        struct: Whose fields they are.
        leaves_out: Parameters that the command does not have, or has in a way of its own.
        more_flags: Other spellings of an option, by its parameter.
    """
    taken = [one for one in options_of(struct) if one.parameter not in leaves_out]

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        def wrapped(**typed: Any) -> None:
            values = {one: typed.pop(one.parameter) for one in taken}
            command(_given(values), **typed)

        own = list(inspect.signature(command, eval_str=True).parameters.values())[1:]
        added = [_parameter(one, (more_flags or {}).get(one.parameter, ())) for one in taken]
        wrapped.__name__, wrapped.__doc__ = command.__name__, command.__doc__
        wrapped.__signature__ = inspect.Signature([*added, *own])  # type: ignore[attr-defined]
        wrapped.__annotations__ = {p.name: p.annotation for p in (*added, *own)}
        return wrapped

    return decorate


def flags_of(struct: type[msgspec.Struct], given: Mapping[str, Any], path: tuple[str, ...] = ()) -> list[str]:
    """Returns the options that gave the fields, for messages.

    Args:
        struct: Whose fields they are.
        given: As a command gets it.
        path: Of `given` in the struct.
    """
    flags = {one.path: one.option.flags[0] for one in options_of(struct)}
    out = []
    for name, value in given.items():
        here = (*path, name)
        if here in flags:
            out.append(flags[here])
        elif isinstance(value, dict):
            out += flags_of(struct, value, here)
    return out


def _parameter(one: JobOption, more_flags: tuple[str, ...]) -> inspect.Parameter:
    option = typer.Option(*one.option.flags, *more_flags, help=one.option.help, show_default=False)
    type_ = _TYPES.get(one.option.reads, str | None)
    return inspect.Parameter(
        one.parameter, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=Annotated[type_, option]
    )


def _given(values: Mapping[JobOption, Any]) -> dict[str, Any]:
    """The fields as nested JSON, those alone that were typed."""
    given: dict[str, Any] = {}
    for one, typed in values.items():
        if typed is None or typed == []:
            continue
        here = given
        for name in one.path[:-1]:
            here = here.setdefault(name, {})
        here[one.path[-1]] = _read(one.option, typed)
    return given


def _read(option: Option, typed: Any) -> Any:
    flag = option.flags[0]
    match option.reads:
        case "upper":
            return typed.upper()
        case "headers":
            return dict(options.pair_of(flag, line) for line in typed)
        case "json":
            return options.json_of(flag, typed)
        case "length":
            return options.length_of(typed)
        case "seconds":
            return options.seconds_of(flag, typed)
        case _:
            return typed
