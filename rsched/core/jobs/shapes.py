"""What a type takes at a path of its JSON, for messages that name the choices."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Any

from msgspec import inspect

_INDEX = re.compile(r"\[[0-9]+\]|\.\*")


@cache
def _info(kind: Any) -> inspect.Type:
    return inspect.type_info(kind)


def fields_at(kind: Any, path: str) -> list[str]:
    """Returns the fields of the object at path (`schedule.dst`, "" for the whole); none where several kinds may be there."""
    structs = [t for t in _at(_info(kind), path) if isinstance(t, inspect.StructType)]
    return [field.encode_name for field in structs[0].fields] if len(structs) == 1 else []


def choices_at(kind: Any, path: str) -> list[str]:
    """Returns the texts that may be at path, where only certain ones may."""
    return [str(v) for t in _at(_info(kind), path) if isinstance(t, inspect.LiteralType) for v in t.values]


def _at(info: inspect.Type, path: str) -> Iterator[inspect.Type]:
    here = list(_plain(info))
    for name in filter(None, _INDEX.sub("", path).split(".")):
        here = [
            t
            for one in here
            if isinstance(one, inspect.StructType)
            for field in one.fields
            if field.encode_name == name
            for t in _plain(field.type)
        ]
    yield from here


def _plain(info: inspect.Type) -> Iterator[inspect.Type]:
    """The kinds of a union, and of a list those of its items."""
    if isinstance(info, inspect.UnionType):
        for one in info.types:
            yield from _plain(one)
    elif isinstance(info, inspect.ListType | inspect.VarTupleType):
        yield from _plain(info.item_type)
    elif isinstance(info, inspect.Metadata):
        yield from _plain(info.type)
    else:
        yield info
