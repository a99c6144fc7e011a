"""The environment variables that settings are read from."""

from __future__ import annotations

from collections.abc import Mapping

from rsched.core.settings.kinds import KINDS, Settings
from rsched.core.settings.typos import meant

ENV_PREFIX = "RSCHED_"
# Read by the commands themselves, not by a kind of process.
OTHER_VARIABLES = frozenset({"RSCHED_CONFIG", "RSCHED_FAULTS", "RSCHED_URL"})


def kind_of(cls: type[Settings]) -> str | None:
    """Returns api, scheduler, worker or recorder; None for what they share."""
    return next((kind for kind, struct in KINDS.items() if struct is cls), None)


def variable(cls: type[Settings], setting: str) -> str:
    """Returns the environment variable that people set for a setting, such as `RSCHED_WORKER_LEASE_MS`."""
    kind = kind_of(cls)
    if kind is None or setting in Settings.__struct_fields__:
        return ENV_PREFIX + setting.upper()
    return own_variable(kind, setting)


def own_variable(kind: str, setting: str) -> str:
    """Returns the variable that sets a setting of one kind of process alone."""
    return f"{ENV_PREFIX}{kind.upper()}_{setting.upper()}"


def unknown_variables(env: Mapping[str, str]) -> list[str]:
    """Returns the RSCHED_ variables that set nothing, each likely a slip of the pen, with the likeliest one meant."""
    known = set(OTHER_VARIABLES)
    for kind, cls in KINDS.items():
        for setting in cls.__struct_fields__:
            known |= {variable(cls, setting), own_variable(kind, setting)}
    return [f"{name}{meant(name, known)}" for name in sorted(env) if name.startswith(ENV_PREFIX) and name not in known]


def config_path(env: Mapping[str, str], option: str | None) -> str | None:
    """Returns the settings file in force: --config, else RSCHED_CONFIG; None without one."""
    return option or env.get("RSCHED_CONFIG") or None
