"""The settings that are in force, each with where it comes from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from rsched.core.settings.kinds import Settings
from rsched.core.settings.loading import find
from rsched.core.settings.shown import reason_of, text_of


class Effective(NamedTuple):
    """One setting as it is in force.

    Attributes:
        name: Its name.
        value: Its value as text, passwords masked.
        source: An option, a variable, the file, or default.
        reason: Why it has its default.
    """

    name: str
    value: str
    source: str
    reason: str


def effective(
    settings: Settings,
    *,
    env: Mapping[str, str] | None = None,
    toml: Mapping[str, Any] | None = None,
    options: Mapping[str, Any] | None = None,
) -> list[Effective]:
    """Returns every setting as it is in force.

    Args:
        settings: As load() returned them.
        env: The environment that load() was given, to say where each comes from.
        toml: The settings file that load() was given.
        options: What load() was given of a command line.
    """
    cls = type(settings)
    rows = []
    for field in msgspec.structs.fields(cls):
        source, _ = find(cls, field.name, env=env or {}, toml=toml or {}, options=options or {})
        rows.append(
            Effective(field.name, text_of(field.name, getattr(settings, field.name)), source, reason_of(field.type))
        )
    return rows
