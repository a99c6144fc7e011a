from __future__ import annotations

import asyncio
import re
from importlib import resources

import psycopg
import pytest

from rsched.core.errors import Misconfigured, Unavailable
from rsched.core.states import JobState, RunState
from rsched.ledger import Ledger, migrate, schema_version
from rsched.ledger.migrate import Migration, _step, database_version, migrations
from rsched.runtime.clock import SystemClock


def _checked(table: str) -> list[str]:
    sql = (resources.files("rsched.ledger") / "migrations" / "0001_initial.sql").read_text()
    body = re.search(rf"CREATE TABLE {table} \((.*?)\n\)", sql, re.S)
    assert body
    found = re.search(r"state\s+IN\s*\(([^)]*)\)", body[1])
    assert found
    return re.findall(r"'([^']+)'", found[1])


def test_sql_knows_the_run_states_of_the_table_of_moves() -> None:
    assert _checked("runs") == [s.value for s in RunState]
    assert _checked("attempts") == ["RETRYING", "DEAD"]


def test_sql_knows_the_job_states() -> None:
    assert _checked("jobs") == [s.value for s in JobState]


async def _again(url: str) -> None:
    assert await database_version(url) == schema_version()
    assert await migrate(url) == []


def test_migrating_twice_does_nothing(database_url: str) -> None:
    asyncio.run(_again(database_url))


def test_two_processes_migrate_one_after_the_other(database_url: str) -> None:
    steps = [*migrations(), Migration(schema_version() + 1, "more", "CREATE TABLE more (x int)")]

    async def both() -> list[list[str]]:
        return list(await asyncio.gather(migrate(database_url, steps=steps), migrate(database_url, steps=steps)))

    assert sorted(map(len, asyncio.run(both()))) == [0, 1]


def test_a_failed_step_leaves_the_schema_as_it_was(database_url: str) -> None:
    bad = [*migrations(), Migration(schema_version() + 1, "bad", "CREATE TABLE half (x int); SELECT 1/0")]
    with pytest.raises(psycopg.DataError):
        asyncio.run(migrate(database_url, steps=bad))
    with psycopg.connect(database_url) as c:
        assert c.execute("SELECT to_regclass('half')").fetchone() == (None,)
    asyncio.run(_again(database_url))


def test_a_newer_schema_is_refused_with_the_fix(database_url: str) -> None:
    with psycopg.connect(database_url) as c:
        c.execute("INSERT INTO schema_version (version) VALUES (99)")

    async def check() -> None:
        async with Ledger(database_url, clock=SystemClock()) as ledger:
            await ledger.database.check_schema()

    with pytest.raises(Misconfigured, match="upgrade rsched"):
        asyncio.run(migrate(database_url))
    with pytest.raises(Misconfigured, match="upgrade rsched"):
        asyncio.run(check())


def test_a_server_that_is_away_is_unavailable() -> None:
    with pytest.raises(Unavailable):
        asyncio.run(migrate("postgresql://app@127.0.0.1:1/none?connect_timeout=1"))


def test_a_program_goes_on_beside_the_next_schema_that_says_so_and_no_further(database_url: str) -> None:
    known = schema_version()
    following = [
        Migration(known + 1, "wider", "ALTER TABLE skips ADD COLUMN more int", works_with=known),
        Migration(known + 2, "narrow", "SELECT 1", works_with=known + 1),
    ]

    async def check() -> None:
        async with Ledger(database_url, clock=SystemClock()) as ledger:
            await ledger.database.check_schema()

    asyncio.run(migrate(database_url, steps=[*migrations(), following[0]]))
    asyncio.run(check())
    asyncio.run(migrate(database_url, steps=[*migrations(), *following]))
    with pytest.raises(Misconfigured, match="upgrade rsched"):
        asyncio.run(check())


def test_a_migration_says_in_a_line_of_its_own_what_it_works_with() -> None:
    assert _step("0007_x.sql", "-- Why.\n-- works with: 6\nSELECT 1").works_with == 6
    assert _step("0007_x.sql", "-- it works with: 6\nSELECT 1").works_with == 0
