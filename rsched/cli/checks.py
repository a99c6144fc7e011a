"""Checks how servers are set, with the fix for each finding: `fail` breaks a promise, `warn` is unwise."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import msgspec

from rsched.core.errors import Misconfigured

Status = Literal["ok", "warn", "fail"]
OLDEST_REDIS = (7, 0)
# With a greater offset logs and displays mislead; no run is wrong, since due times go by Redis' clock alone.
CLOCK_OFFSET_MS = 500
# Half of the lease that workers have by default: a primary that is cut off for longer may have renewed what its successor reaps.
MAX_LAG_S = 30


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one check.

    Attributes:
        name: What was checked.
        status: "ok", "warn" or "fail".
        message: What the server has.
        fix: What to do about it; "" where there is nothing to do.
    """

    name: str
    status: Status
    message: str
    fix: str = ""


def redis_checks(facts: Mapping[str, Any]) -> list[Check]:
    """Checks Redis' settings against the promises.

    Args:
        facts: The fields of INFO, and CONFIG as `config:<name>` ("" where the server does not tell).
    """
    return [
        _version(facts),
        _role(facts),
        _eviction(facts),
        _memory(facts),
        _append_only(facts),
        _fsync(facts),
        _replicas(facts),
    ]


def _check(name: str, good: bool, message: str, fix: str, *, bad: Status = "fail") -> Check:
    return (
        Check(name=name, status="ok", message=message)
        if good
        else Check(name=name, status=bad, message=message, fix=fix)
    )


def _told(facts: Mapping[str, Any], config: str, info: str) -> str:
    """Returns CONFIG's value, or INFO's where a managed server forbids CONFIG; "" where neither says."""
    value = facts.get(f"config:{config}") or facts.get(info, "")
    return str(value)


def _version(facts: Mapping[str, Any]) -> Check:
    text = str(facts.get("redis_version", ""))
    m = re.match(r"(\d+)\.(\d+)", text)
    named = f"Valkey {facts['valkey_version']}" if facts.get("valkey_version") else f"Redis {text or '?'}"
    good = m is not None and (int(m[1]), int(m[2])) >= OLDEST_REDIS
    return _check("redis version", good, named, "scripts need Redis 7.0 or Valkey 7.2 at least: upgrade the server")


def _role(facts: Mapping[str, Any]) -> Check:
    role = str(facts.get("role", "master"))
    return _check("redis role", role == "master", role, "this is a replica: point RSCHED_REDIS_URL to its primary")


def _eviction(facts: Mapping[str, Any]) -> Check:
    policy = _told(facts, "maxmemory-policy", "maxmemory_policy")
    fix = "any other policy may drop jobs silently: set `maxmemory-policy noeviction`"
    if not policy:
        return Check(name="redis eviction", status="warn", message="the server does not tell", fix=fix)
    return _check("redis eviction", policy == "noeviction", policy, fix)


def _memory(facts: Mapping[str, Any]) -> Check:
    told = _told(facts, "maxmemory", "maxmemory")
    limit = int(told) if told.isdigit() else 0
    fix = "without a limit the system kills the server instead of refusing a write: set `maxmemory` to about 70 % of its RAM"
    return _check("redis maxmemory", limit > 0, f"{limit // 2**20} MB" if limit else "no limit", fix)


def _append_only(facts: Mapping[str, Any]) -> Check:
    told = str(facts.get("config:appendonly") or ("yes" if facts.get("aof_enabled") else "no"))
    fix = (
        "a restart would forget leases and results of the last minutes: set `appendonly yes` and `appendfsync everysec`"
    )
    return _check("redis appendonly", told == "yes", told, fix)


def _fsync(facts: Mapping[str, Any]) -> Check:
    told = str(facts.get("config:appendfsync") or "everysec")
    fix = "a crash of the machine loses up to 30 s, which have to be rebuilt from Postgres: set `appendfsync everysec`"
    return _check("redis appendfsync", told in ("everysec", "always"), told, fix, bad="warn")


def _replicas(facts: Mapping[str, Any]) -> Check:
    count = int(facts.get("connected_slaves") or 0)
    if count == 0:
        return Check(name="redis replicas", status="ok", message="none")
    told = str(facts.get("config:min-replicas-to-write", ""))
    fix = (
        "a primary that is cut off would go on taking writes that its failover drops: set `min-replicas-to-write 1` and "
        "`min-replicas-max-lag 10`"
    )
    if not told.isdigit():
        return Check(name="redis replicas", status="warn", message=f"{count}, min-replicas-to-write unknown", fix=fix)
    if int(told) == 0:
        return Check(name="redis replicas", status="fail", message=f"{count}, min-replicas-to-write 0", fix=fix)
    lag = str(facts.get("config:min-replicas-max-lag", ""))
    message = f"{count}, min-replicas-to-write {told}, min-replicas-max-lag {lag or 'unknown'}"
    if not lag.isdigit():
        return Check(name="redis replicas", status="warn", message=message, fix=fix)
    # 0 switches the limit off altogether.
    return _check("redis replicas", 0 < int(lag) < MAX_LAG_S, message, fix)


def clock_check(offset_ms: int) -> Check:
    """Checks the offset between clocks: Redis' clock minus this machine's (ms)."""
    fix = "let NTP keep both machines' clocks; runs are on time by Redis' clock, logs are by this machine's"
    return _check("clock offset", abs(offset_ms) <= CLOCK_OFFSET_MS, f"{offset_ms} ms", fix, bad="warn")


def schema_check(version: int, *, known: int) -> Check:
    """Checks that the database has the schema version that this release knows."""
    fix = "run `rsched migrate`" if version < known else "the database is of a newer release: upgrade rsched"
    return _check("postgres schema", version == known, f"version {version}, this release has {known}", fix)


def durability_checks(facts: Mapping[str, str]) -> list[Check]:
    """Checks the settings of Postgres, as sessions of rsched have them, against the promises."""
    commit, fsync = facts.get("synchronous_commit", ""), facts.get("fsync", "")
    return [
        _check(
            "postgres synchronous_commit", commit != "off", commit,
            "what was acknowledged could be lost: set `synchronous_commit` to `on`, at least `local`, for server, database, role",
        ),
        _check("postgres fsync", fsync != "off", fsync, "a crash of the machine could lose the whole database: set `fsync on`"),
    ]  # fmt: skip


def away(name: str, detail: str, *, variable: str, refuses: bool = False) -> Check:
    """Returns the failed check of a server that cannot be used.

    Args:
        name: The server.
        detail: Its address and error.
        variable: The setting that names it.
        refuses: Whether it answers and refuses; its error then says the fix.
    """
    fix = "fix what it says above" if refuses else f"start it, or correct {variable}"
    return Check(name=name, status="fail", message=detail, fix=fix)


def refuse_broken(checks: Sequence[Check]) -> None:
    """Does nothing where all promises can be kept on these servers.

    Raises:
        Misconfigured: Some cannot; it names all of them, with their fixes.
    """
    broken = [f"{c.name} ({c.message}): {c.fix}" for c in checks if c.status == "fail"]
    if broken:
        raise Misconfigured("refusing to start: " + "; ".join(broken))
