"""`rsched reconcile` on real servers."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from rsched.cli.main import app
from rsched.store.restore import RestoreProgress
from tests.recorder.stepped_shard import HOUR, Shard, within

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


def test_a_pass_prints_what_it_repaired_by_kind(
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
    assert (done.exit_code, done.stdout.split()) == (1, ["KIND", "REPAIRED", "lease_without_run", "1"])
    again = reconcile()
    assert (again.exit_code, again.stdout) == (0, "nothing to repair\n")
    watched = reconcile("--watch", "--once")
    assert "2 passes, the last one" in watched.stdout


def test_a_restoration_is_shown_and_not_disturbed(
    on_shard: Callable[[Callable[[Shard], Awaitable[None]]], None], reconcile: Run
) -> None:
    async def body(s: Shard) -> None:
        await s.redis.zadd(s.keys.leases, {"j_0000000000000:1": 1})
        marker = await s.store.recovery.get_marker()
        assert marker is not None
        await s.store.restore.set_progress(
            RestoreProgress("jobs", marker.generation, 250, 1000, 3, await s.store.clock.read())
        )

    on_shard(body)
    result = reconcile()
    assert result.exit_code == 2
    assert "shard s0 is being restored" in result.stderr
    assert "open, restoring definitions: 250 of 1000 (25 %)" in reconcile("--watch", "--once").stdout
    assert json.loads(reconcile("--watch", "--once", "--json").stdout)["restore"]["jobs_total"] == 1000


def test_the_servers_of_a_running_up_are_found_by_its_folder(
    redis_url: str, database_url: str, redis_prefix: str, tmp_path: Path
) -> None:
    facts = {"api": "http://x", "redis_url": redis_url, "postgres_url": database_url, "processes": []}
    (tmp_path / "processes.json").write_text(json.dumps(facts))
    env = {"RSCHED_PREFIX": redis_prefix}
    for command in (["doctor"], ["reconcile", "--watch", "--once"], ["tz", "refresh"]):
        found = CliRunner().invoke(app, [*command, "--data-dir", str(tmp_path)], env=env)
        assert "Error 111" not in found.stderr
        assert "is away" not in found.output, command
        lost = CliRunner().invoke(app, [*command, "--data-dir", str(tmp_path / "none")], env=env)
        assert (lost.exit_code, lost.stdout) == (1, "")
        assert lost.stderr.startswith("error: --data-dir: no `rsched up` runs with ")


def in_its_own_process(redis_url: str, database_url: str, prefix: str) -> subprocess.CompletedProcess[str]:
    """As a user runs it: pytest has log handlers, which hide the one that prints by default."""
    env = {"RSCHED_REDIS_URL": redis_url, "RSCHED_DATABASE_URL": database_url, "RSCHED_PREFIX": prefix}
    return subprocess.run(
        [sys.executable, "-m", "rsched", "reconcile"],
        env={**os.environ, **env},
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_what_processes_log_is_not_mixed_into_the_answer(
    on_shard: Callable[[Callable[[Shard], Awaitable[None]]], None], redis_url: str, database_url: str, redis_prefix: str
) -> None:
    async def body(s: Shard) -> None:
        await s.redis.zadd(s.keys.leases, {"j_0000000000000:1": 1})

    on_shard(body)
    done = in_its_own_process(redis_url, database_url, redis_prefix)
    assert (done.returncode, done.stdout.split()[-1], done.stderr) == (1, "1", "")


def test_what_cannot_be_judged_is_not_said_to_be_in_order(
    on_shard: Callable[[Callable[[Shard], Awaitable[None]]], None], redis_url: str, database_url: str, redis_prefix: str
) -> None:
    async def body(s: Shard) -> None:
        await s.redis.set(s.keys.retries, "of another type")

    on_shard(body)
    done = in_its_own_process(redis_url, database_url, redis_prefix)
    assert done.returncode == 2
    assert "nothing to repair" not in done.stdout
    assert done.stderr.startswith("error: a part of the reconciliation failed {'shard': 's0', 'part': ")
    assert "could not be judged: the ledger is behind, or there is an error above" in done.stderr
