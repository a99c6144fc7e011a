"""`rsched reconcile` on real servers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable

import pytest
from typer.testing import CliRunner, Result

from rsched.cli.main import app
from rsched.store.recovery import Repair
from tests.recorder.steps import HOUR, Shard, within

Run = Callable[..., Result]


@pytest.fixture
def on_shard(
    redis_url: str, database_url: str, redis_prefix: str
) -> Callable[[Callable[[Shard], Awaitable[None]]], None]:
    return lambda body: asyncio.run(within(redis_url, database_url, redis_prefix, body))


@pytest.fixture
def reconcile(redis_url: str, database_url: str, redis_prefix: str) -> Run:
    env = {"RSCHED_REDIS_URL": redis_url, "RSCHED_DATABASE_URL": database_url, "RSCHED_PREFIX": redis_prefix}
    return lambda *args: CliRunner().invoke(app, ["reconcile", *args], env=env)


def test_a_pass_prints_what_it_mended_by_kind(
    on_shard: Callable[[Callable[[Shard], Awaitable[None]]], None], reconcile: Run
) -> None:
    async def body(s: Shard) -> None:
        await s.put("a", due_in=HOUR)
        await s.record()
        await s.redis.zadd(s.keys.leases, {"j_0000000000000:1": 1})

    on_shard(body)
    dry = reconcile("--dry-run", "--json")
    assert (dry.exit_code, json.loads(dry.stdout)["found"]) == (1, {"lease_without_run": 1})
    done = reconcile()
    assert (done.exit_code, done.stdout.split()) == (1, ["KIND", "MENDED", "lease_without_run", "1"])
    again = reconcile()
    assert (again.exit_code, again.stdout) == (0, "nothing to mend\n")
    watched = reconcile("--watch", "--once")
    assert "2 passes, the last one" in watched.stdout


def test_a_restoration_is_shown_and_not_disturbed(
    on_shard: Callable[[Callable[[Shard], Awaitable[None]]], None], reconcile: Run
) -> None:
    async def body(s: Shard) -> None:
        await s.redis.zadd(s.keys.leases, {"j_0000000000000:1": 1})
        await s.store.set_repair(Repair("jobs", 1, 250, 1000, 3, await s.store.time()))

    on_shard(body)
    result = reconcile()
    assert result.exit_code == 2
    assert "shard s0 is being restored" in result.stderr
    assert "open, restoring definitions: 250 of 1000 (25 %)" in reconcile("--watch", "--once").stdout
    assert json.loads(reconcile("--watch", "--once", "--json").stdout)["repair"]["jobs_total"] == 1000
