"""Prints the settings in force and whether the servers can keep the promises (`rsched doctor`)."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import typer

from rsched.cli.options import ConfigFile, DataDir, Json, environment, read_toml
from rsched.cli.output import print_json, print_table

if TYPE_CHECKING:
    from rsched.cli.checks import Check
    from rsched.core.settings import Effective


def doctor(config: ConfigFile = None, data_dir: DataDir = None, as_json: Json = False) -> None:
    """Print the effective settings and check both servers; the exit code is 1 if a promise cannot be kept."""
    import asyncio

    from rsched.cli.checks import Check
    from rsched.cli.servers import ask_both
    from rsched.core.settings import Settings, load, unknown_variables
    from rsched.runtime.clock import SystemClock

    env, toml = environment(data_dir), read_toml(config)
    shared = load(Settings, env=env, toml=toml)
    found = _settings(env, toml)
    checks = [
        Check(name="settings", status="warn", message=f"{name} sets nothing", fix="correct the name or unset it")
        for name in unknown_variables(env)
    ]
    checks += asyncio.run(ask_both(shared, clock=SystemClock()))
    failed = any(c.status == "fail" for c in checks)
    if as_json:
        print_json({"ok": not failed, "settings": _as_json(found), "checks": checks})
    else:
        _print(found, checks)
    if failed:
        raise typer.Exit(1)


def _settings(env: Mapping[str, str], toml: dict[str, Any]) -> dict[str, list[Effective]]:
    """Returns the shared settings under "all", then what each kind of process has beside them."""
    from rsched.core.settings import KINDS, Settings, effective, load

    shared = load(Settings, env=env, toml=toml)
    found = {"all": effective(shared, env=env, toml=toml)}
    common = {e.name: e.value for e in found["all"]}
    for kind, cls in KINDS.items():
        settings = effective(load(cls, env=env, toml=toml), env=env, toml=toml)
        found[kind] = [e for e in settings if common.get(e.name) != e.value]
    return found


def _as_json(found: dict[str, list[Effective]]) -> dict[str, Any]:
    return {
        kind: {e.name: {"value": e.value, "source": e.source, "reason": e.reason} for e in settings}
        for kind, settings in found.items()
    }


def _print(found: dict[str, list[Effective]], checks: list[Check]) -> None:
    rows = [(kind, e.name, e.value or "-", e.source) for kind, settings in found.items() for e in settings]
    print_table(("PROCESS", "SETTING", "VALUE", "FROM"), rows)
    print()
    print_table(("CHECK", "STATUS", "FOUND"), [(c.name, c.status, c.message) for c in checks])
    for check in checks:
        if check.fix:
            print(f"{check.status}: {check.name}: {check.fix}", file=sys.stderr)
