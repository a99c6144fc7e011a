from __future__ import annotations

import asyncio
from typing import Any

import psycopg
import pytest

from rsched.cli.checks import Check, clock_check, durability_checks, redis_checks, refuse_broken, schema_check
from rsched.core.errors import Misconfigured
from rsched.ledger.databases import database_of
from rsched.ledger.facts import durability_facts

GOOD: dict[str, Any] = {
    "redis_version": "7.0.15",
    "role": "master",
    "maxmemory": 1 << 30,
    "maxmemory_policy": "noeviction",
    "aof_enabled": 1,
    "connected_slaves": 0,
    "config:maxmemory": str(1 << 30),
    "config:maxmemory-policy": "noeviction",
    "config:appendonly": "yes",
    "config:appendfsync": "everysec",
    "config:min-replicas-to-write": "0",
}


def found(**changes: Any) -> dict[str, Check]:
    return {c.name: c for c in redis_checks({**GOOD, **changes})}


def test_a_well_set_server_passes_every_check() -> None:
    assert {c.status for c in found().values()} == {"ok"}


@pytest.mark.parametrize(
    ("changes", "name", "fix"),
    [
        ({"redis_version": "6.2.14"}, "redis version", "7.0"),
        ({"redis_version": "?"}, "redis version", "7.0"),
        ({"role": "slave"}, "redis role", "primary"),
        ({"config:maxmemory-policy": "allkeys-lru"}, "redis eviction", "noeviction"),
        ({"config:maxmemory": "0"}, "redis maxmemory", "maxmemory"),
        ({"config:appendonly": "no"}, "redis appendonly", "appendonly yes"),
        ({"connected_slaves": 1}, "redis replicas", "min-replicas-to-write 1"),
        (
            {"connected_slaves": 1, "config:min-replicas-to-write": "1", "config:min-replicas-max-lag": "30"},
            "redis replicas",
            "min-replicas-max-lag 10",
        ),
        (
            {"connected_slaves": 1, "config:min-replicas-to-write": "1", "config:min-replicas-max-lag": "0"},
            "redis replicas",
            "min-replicas-max-lag 10",
        ),
    ],
)
def test_what_breaks_a_promise_fails_with_its_fix(changes: dict[str, Any], name: str, fix: str) -> None:
    check = found(**changes)[name]
    assert check.status == "fail"
    assert fix in check.fix
    with pytest.raises(Misconfigured, match="refusing to start"):
        refuse_broken(list(found(**changes).values()))


def test_a_replica_that_guards_its_primary_passes() -> None:
    guarded = {"connected_slaves": 1, "config:min-replicas-to-write": "1"}
    assert found(**guarded, **{"config:min-replicas-max-lag": "10"})["redis replicas"].status == "ok"
    assert found(**guarded)["redis replicas"].status == "warn"


def test_a_postgres_that_may_forget_what_it_committed_is_refused(database_url: str) -> None:
    def status() -> dict[str, str]:
        facts = asyncio.run(durability_facts(database_url))
        return {c.name.removeprefix("postgres "): c.status for c in durability_checks(facts)}

    assert status() == {"synchronous_commit": "ok", "fsync": "ok"}
    name = database_of(database_url)
    with psycopg.connect(database_url, autocommit=True) as c:
        c.execute(f"ALTER DATABASE {name} SET synchronous_commit = off")
        assert status() == {"synchronous_commit": "fail", "fsync": "ok"}
        c.execute(f"ALTER DATABASE {name} SET synchronous_commit = local")
        assert status() == {"synchronous_commit": "ok", "fsync": "ok"}
    with pytest.raises(Misconfigured, match="refusing to start: postgres fsync"):
        refuse_broken(durability_checks({"synchronous_commit": "on", "fsync": "off"}))


def test_a_managed_server_without_config_is_judged_by_info() -> None:
    silent = {k: "" for k in GOOD if k.startswith("config:")}
    checks = found(**silent)
    assert {c.status for c in checks.values()} == {"ok"}
    assert found(**silent, connected_slaves=2)["redis replicas"].status == "warn"
    assert found(**silent, maxmemory_policy="")["redis eviction"].status == "warn"
    assert found(**silent, aof_enabled=0)["redis appendonly"].status == "fail"


def test_what_is_only_unwise_warns_and_does_not_refuse() -> None:
    checks = [*found(**{"config:appendfsync": "no"}).values(), clock_check(-700)]
    assert sorted(c.name for c in checks if c.status == "warn") == ["clock offset", "redis appendfsync"]
    refuse_broken(checks)


def test_a_valkey_is_named_as_such() -> None:
    assert found(redis_version="7.2.4", valkey_version="9.1.2")["redis version"].message == "Valkey 9.1.2"


def test_the_schema_must_be_this_releases() -> None:
    assert schema_check(2, known=2).status == "ok"
    assert schema_check(0, known=2).fix == "run `rsched migrate`"
    assert "upgrade rsched" in schema_check(3, known=2).fix
