from __future__ import annotations

import asyncio

import psycopg
import pytest

from rsched.core.errors import Misconfigured, Unavailable
from rsched.core.states import JobState, RunState
from rsched.ledger import Ledger, migrate, schema_version
from rsched.ledger.databases import drop_database, ensure_database, with_database
from rsched.ledger.migrate import Migration, _step, database_version, migrations
from rsched.runtime.clock import SystemClock


def _labels(url: str, name: str) -> list[str]:
    with psycopg.connect(url) as c:
        query = "SELECT enumlabel FROM pg_enum WHERE enumtypid = %s::regtype ORDER BY enumsortorder"
        return [row[0] for row in c.execute(query, (name,)).fetchall()]


def test_sql_knows_the_states_of_runs_and_jobs(database_url: str) -> None:
    assert _labels(database_url, "run_status") == [s.value for s in RunState]
    assert _labels(database_url, "job_state") == [s.value for s in JobState]


def test_each_table_and_view_that_people_read_says_what_it_is(database_url: str) -> None:
    with psycopg.connect(database_url) as c:
        query = (
            "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p', 'v')"
            " AND NOT relispartition AND obj_description(oid) IS NULL"
        )
        assert c.execute(query).fetchall() == [("schema_migrations",)]
        row = c.execute("SELECT col_description('jobs'::regclass, attnum) FROM pg_attribute WHERE attrelid = 'jobs'::regclass"
                        " AND attname = 'next_run_at'").fetchone()  # fmt: skip
    assert row is not None
    assert "up to a minute ago" in row[0]


def test_no_index_takes_a_packed_value_apart(database_url: str) -> None:
    with psycopg.connect(database_url) as c:
        query = "SELECT indexdef FROM pg_indexes WHERE schemaname = 'public' AND indexdef ~ 'value|split_part|encode|substring'"
        assert c.execute(query).fetchall() == []


def test_a_database_from_before_the_first_release_is_refused_with_what_to_do(postgres_admin: str) -> None:
    url = with_database(postgres_admin, "rsched_of_before")
    asyncio.run(ensure_database(url))
    try:
        with psycopg.connect(url) as c:
            c.execute("CREATE TABLE schema_version (version integer PRIMARY KEY, applied_at timestamptz DEFAULT now())")
            c.execute("INSERT INTO schema_version VALUES (1), (7)")

        async def check() -> None:
            async with Ledger(url, clock=SystemClock()) as ledger:
                await ledger.database.check_schema()

        for refused in (migrate(url), database_version(url), check()):
            with pytest.raises(
                Misconfigured, match=r"create a new, empty database .* RSCHED_DATABASE_URL; .*--data-dir"
            ):
                asyncio.run(refused)  # type: ignore[arg-type]
        with psycopg.connect(url) as c:
            assert c.execute("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'").fetchone() == (1,)
    finally:
        asyncio.run(drop_database(url))


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


def test_a_newer_schema_is_refused_and_told_how_to_fix(database_url: str) -> None:
    with psycopg.connect(database_url) as c:
        c.execute("INSERT INTO schema_migrations (version, name, works_with) VALUES (99, 'later', 99)")

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
