"""Calls a part of lua/lib alone: a few lines of Lua with what they include, run on a server as one script."""

from __future__ import annotations

from typing import Any

from rsched.store.scripts import lua_folder, source_of

# Parts find the prefix of their keys in KEYS[1]: `shard` cut off, the kind of key put on.
PREFIX = "{part:s0}:"


def run_part(client: Any, parts: str, driver: str, *args: str | bytes | int) -> Any:
    """Runs `driver`, which has the arguments in ARGV, behind the parts (names with spaces between) that it calls.

    Returns:
        The reply, where text is bytes.
    """
    includes = "\n".join(f"--include {name}" for name in parts.split())
    return client.eval(source_of(lua_folder(), f"{includes}\n{driver}"), 1, f"{PREFIX}shard", *args)
