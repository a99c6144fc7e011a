"""Redis CPU: by script in a real run, and call by call on a server that does nothing else."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from rsched.store.scripts import load, verbs
from rsched.store.store import Store

_LOG_US = 50


async def watch_scripts(store: Store) -> None:
    """Has the server log every call from 50 us on; what is shorter is idle polling."""
    client = store.connection.client
    await client.config_set("slowlog-max-len", 1_000_000)
    await client.config_set("slowlog-log-slower-than", _LOG_US)
    await client.slowlog_reset()
    await client.config_resetstat()


async def scripts_seen(store: Store, runs: int) -> dict[str, Any]:
    """Time inside each script since watch_scripts, in us a run. `logged` is the part of all script time that was seen."""
    client = store.connection.client
    by_sha = {load(verb).sha: verb for verb in verbs()}
    entries: list[list[Any]] = await client.execute_command("SLOWLOG", "GET", -1)  # type: ignore[no-untyped-call]
    spent: dict[str, list[int]] = defaultdict(list)
    for entry in entries:
        command = entry["command"] if isinstance(entry, dict) else b" ".join(entry[3])
        duration = entry["duration"] if isinstance(entry, dict) else entry[2]
        words = command.split()
        if words and words[0].lower() == b"evalsha":
            spent[by_sha.get(words[1].decode(), "other")].append(int(duration))
    stats: dict[str, Any] = await client.info("commandstats")
    total = float(stats.get("cmdstat_evalsha", {}).get("usec", 0))
    return {
        "us_per_run": {verb: round(sum(d) / runs, 2) for verb, d in sorted(spent.items())},
        "calls": {verb: len(d) for verb, d in sorted(spent.items())},
        "longest_ms": {verb: round(max(d) / 1000, 2) for verb, d in sorted(spent.items())},
        "all_scripts_us_per_run": round(total / runs, 2),
        "logged": round(sum(map(sum, spent.values())) / total, 3) if total else 0.0,
        "other_commands_us_per_run": {
            name.removeprefix("cmdstat_"): round(float(s["usec"]) / runs, 2)
            for name, s in stats.items()
            # Calls that scripts make are counted in the script, and again by name: those are left out.
            if name in ("cmdstat_xread", "cmdstat_xtrim", "cmdstat_hget", "cmdstat_zrange", "cmdstat_publish")
            and float(s["usec"]) / runs >= 0.01
        },
    }
