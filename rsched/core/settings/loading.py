"""Loads the settings of a process.

A value comes from a command's option, else `RSCHED_<KIND>_<SETTING>`, else `RSCHED_<SETTING>` (settings that all kinds share),
else the TOML file's `[kind]` table, else its top level, else the default. Nothing is read at import.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

from rsched.core.errors import Misconfigured
from rsched.core.settings.kinds import KINDS, Settings
from rsched.core.settings.relations import relations
from rsched.core.settings.shown import reason_of
from rsched.core.settings.typos import meant
from rsched.core.settings.variables import ENV_PREFIX, kind_of, own_variable, variable

S = TypeVar("S", bound=Settings)


def load(
    cls: type[S], *, env: Mapping[str, str], toml: Mapping[str, Any], options: Mapping[str, Any] | None = None
) -> S:
    """Returns the settings of one kind of process.

    Args:
        cls: The kind.
        env: The environment.
        toml: The settings file, read.
        options: What a command line said; None entries are ignored.

    Raises:
        Misconfigured: A setting is unknown, cannot be read, or does not go with another.
    """
    _refuse_unknown(toml)
    values: dict[str, Any] = {}
    for field in msgspec.structs.fields(cls):
        source, raw = find(cls, field.name, env=env, toml=toml, options=options or {})
        if source != "default":
            values[field.name] = _convert(raw, field.type, source)
    settings = cls(**values)
    if problems := relations(settings):
        raise Misconfigured("; ".join(problems))
    return settings


def find(
    cls: type[Settings], setting: str, *, env: Mapping[str, str], toml: Mapping[str, Any], options: Mapping[str, Any]
) -> tuple[str, Any]:
    """Finds the value of a setting that is in force. An empty variable counts as none.

    Args:
        cls: The kind of process.
        setting: Its name.
        env: The environment.
        toml: The settings file, read.
        options: What a command line said.

    Returns:
        Where the value comes from, and that value; `default` and None where nobody set it.
    """
    kind = kind_of(cls)
    if options.get(setting) is not None:
        return f"option --{setting.replace('_', '-')}", options[setting]
    names = [own_variable(kind, setting)] if kind else []
    for name in [*names, variable(cls, setting)]:
        if env.get(name, "") != "":
            return name, env[name]
    table = toml.get(kind, {}) if kind else {}
    if setting in table:
        return f"[{kind}] {setting}", table[setting]
    if setting in Settings.__struct_fields__ and setting in toml:
        return setting, toml[setting]
    return "default", None


def _convert(raw: Any, type_: Any, source: str) -> Any:
    # Variables are text for all types; in the file a number in quotes is a slip.
    text = isinstance(raw, str) and source.startswith(ENV_PREFIX)
    if text and "tuple" in str(type_):
        raw = [part.strip() for part in raw.split(",") if part.strip()]
    if isinstance(raw, str) and "'ERROR'" in str(type_):
        raw = raw.upper()
    try:
        return msgspec.convert(raw, type_, strict=not text)
    except msgspec.ValidationError as error:
        refusal = str(error).replace("`", "").partition(" - at")[0].partition(", got")[0]
        told = "" if refusal.startswith("Invalid") else f"{refusal[0].lower()}{refusal[1:]}, "
        raise Misconfigured(f"{source}: {told}not {raw!r}; {_fix(type_)}") from None


def _fix(type_: Any) -> str:
    text = str(type_)
    if "Literal" in text:
        return "write one of " + ", ".join(re.findall(r"'([A-Za-z]+)'", text.partition("Meta")[0]))
    if "bool" in text:
        return "write true or false"
    return f"it is: {reason_of(type_)}"


def _refuse_unknown(toml: Mapping[str, Any]) -> None:
    for key, value in toml.items():
        if key in KINDS:
            if not isinstance(value, Mapping):
                raise Misconfigured(f"{key} is a table in the settings file; write [{key}] and its settings below")
            for setting in value:
                if setting not in KINDS[key].__struct_fields__:
                    hint = meant(setting, KINDS[key].__struct_fields__)
                    raise Misconfigured(f"[{key}] {setting}: unknown setting{hint}; correct it or take it out")
        elif key not in Settings.__struct_fields__:
            owners = [k for k, cls in KINDS.items() if key in cls.__struct_fields__]
            if owners:
                raise Misconfigured(f"{key}: unknown setting; it belongs below [{owners[0]}]")
            hint = meant(key, [*Settings.__struct_fields__, *KINDS])
            raise Misconfigured(f"{key}: unknown setting{hint}; correct it or take it out")
