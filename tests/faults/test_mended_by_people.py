"""Faults of the servers that last until people have fixed them: each process says so, waits, and goes on."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import psycopg
import pytest
import redis.asyncio as aioredis

from tests.faults.fault_run import RUNS, Run, drive, fault_run

pytestmark = pytest.mark.faults
AWAY_MS = 4000
_ADMIN = "hand"
Fault = Callable[[Run], AbstractAsyncContextManager[None]]


@asynccontextmanager
async def rights_taken(run: Run) -> AsyncIterator[None]:
    """Of the user that every process is, on connections that stay."""
    await run.w.store.connection.client.execute_command("ACL", "SETUSER", _ADMIN, "on", ">hand", "~*", "&*", "+@all")
    port = run.w.servers.redis.port if run.w.servers.redis else 0
    async with aioredis.Redis(port=port, username=_ADMIN, password="hand", protocol=2) as admin:
        await admin.execute_command("ACL", "SETUSER", "default", "-@all")
        try:
            yield
        finally:
            await admin.execute_command("ACL", "SETUSER", "default", "+@all")


def of_another_type(name: str) -> Fault:
    """The key that a hand wrote over is put back as it was: what became of it must be told by the processes alone."""

    @asynccontextmanager
    async def fault(run: Run) -> AsyncIterator[None]:
        key, client = getattr(run.w.store.keys, name), run.w.store.connection.client
        kept = f"{key}:kept"
        async with client.pipeline(transaction=True) as swap:
            swap.rename(key, kept)
            swap.set(key, "by hand")
            await swap.execute()
        try:
            yield
        finally:
            await client.rename(kept, key)

    return fault


@asynccontextmanager
async def table_gone(run: Run) -> AsyncIterator[None]:
    """As in a database that was restored and not migrated."""
    with psycopg.connect(run.w.database_url, autocommit=True) as c:
        c.execute("ALTER TABLE unfinished_runs RENAME TO runs_kept_away")
        try:
            yield
        finally:
            c.execute("ALTER TABLE runs_kept_away RENAME TO unfinished_runs")


@pytest.mark.parametrize(
    ("fault", "said", "by"),
    [
        (rights_taken, "waiting: Redis does not permit it", "scheduler worker recorder"),
        (of_another_type("runs"), "waiting: a key in Redis is of another type", "scheduler worker"),
        (of_another_type("definitions"), "waiting: a key in Redis is of another type", "recorder"),
        (table_gone, "waiting: the database is not as this release needs it", "recorder"),
    ],
    ids=["rights", "type of runs", "type of a journal", "table"],
)
def test_every_process_says_once_what_people_have_to_fix_and_goes_on_when_they_have(
    fault: Fault, said: str, by: str
) -> None:
    async def scenario() -> None:
        async with fault_run() as run:
            await run.put_spread(RUNS)
            await run.until_recorded()
            await run.until_started(0.2)
            pids = {name: p.pid for name, p in run.fleet.processes.items()}
            async with fault(run):
                await run.w.clock.sleep(AWAY_MS)
            await run.until_settled(within_s=60)
            await run.verdict()
            assert {name: p.pid for name, p in run.fleet.processes.items()} == pids
            assert not [name for name, p in run.fleet.processes.items() if p.poll() is not None]
            for kind in by.split():
                name = next(n for n in pids if n.startswith(kind) and said in run.fleet.log(n))
                loops = re.findall(r": ([^:]+): waiting: ", run.fleet.log(name))
                assert len(loops) <= 2 * len(set(loops)), f"{name} said it again:\n{run.fleet.log(name)[-3000:]}"

    drive(scenario)


def reconcile(run: Run) -> None:
    """Its exit code says whether there was something to fix."""
    try:
        run.fleet.run("reconcile")
    except RuntimeError as error:
        if "REPAIRED" not in str(error):
            raise


@pytest.mark.parametrize("name", ["staged", "leases", "fence", "heads"])
def test_what_a_hand_wrote_over_comes_back_once_key_and_marker_are_deleted(name: str) -> None:
    async def scenario() -> None:
        async with fault_run() as run:
            await run.put_spread(RUNS, function="steady")
            await run.until_recorded()
            await run.until_started(0.3)
            keys, client = run.w.store.keys, run.w.store.connection.client
            await client.set(getattr(keys, name), "by hand")

            def said() -> bool:
                logs = "".join(run.fleet.log(p) for p in run.fleet.processes)
                return f"then delete {keys.marker}" in logs

            await run.until(said, "a process that says what to delete")
            await client.delete(getattr(keys, name))
            await client.delete(keys.marker)
            await run.until_open()
            reconcile(run)
            await run.until_settled(within_s=60)
            await run.verdict()

    drive(scenario)
