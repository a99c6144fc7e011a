"""Calls a part of lua/lib alone: a few lines of Lua behind what they call, run on a server as one script."""

from __future__ import annotations

import json
from typing import Any

from rsched.store.keys import Keys
from rsched.store.scripts import lua_folder, source_of

_NOWHERE = Keys("part", "s0")


def run_part(client: Any, parts: str, driver: str, *args: str | bytes | int, keys: Keys = _NOWHERE) -> Any:
    """Runs a driver that calls parts of lua/lib.

    Args:
        client: of a Redis server.
        parts: the names of those that the driver calls itself, with spaces between.
        driver: Lua that returns the reply, with the arguments in ARGV.
        args: its arguments.
        keys: the shard of which the parts see the keys.

    Returns:
        The reply, where text is bytes.
    """
    includes = "\n".join(f"--include {name}" for name in parts.split())
    return client.eval(source_of(lua_folder(), f"{includes}\n{driver}"), 1, keys.marker, *args)


def run_part_json(client: Any, parts: str, driver: str, *args: Any, keys: Keys = _NOWHERE) -> Any:
    """Runs a driver like `run_part`, which has its arguments as values in `args` and whose table comes back as a value."""
    decode = "local args = {} for i = 1, #ARGV do args[i] = cjson.decode(ARGV[i]) end\n"
    return json.loads(run_part(client, parts, decode + driver, *(json.dumps(a) for a in args), keys=keys))
