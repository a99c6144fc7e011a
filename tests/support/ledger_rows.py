"""What a benchmark and the checker read from the ledger, in SQL of their own: whole tables, which no page of the API gives."""

from __future__ import annotations

from urllib.parse import urlsplit

import psycopg
from psycopg import sql

from tests.support.checker import Recorded, Skipped


async def make_database(url: str) -> None:
    """Makes the database that the URL names, where there is none."""
    parts = urlsplit(url)
    name = parts.path.lstrip("/")
    admin = parts._replace(path="/postgres").geturl()
    async with await psycopg.AsyncConnection.connect(admin, autocommit=True) as connection:
        there = await connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", (name,))
        if await there.fetchone() is None:
            await connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))


async def read_recorded(url: str) -> list[Recorded]:
    """All runs."""
    async with await psycopg.AsyncConnection.connect(url) as connection:
        cursor = await connection.execute(
            "SELECT run_id, status::text, attempt, fence, coalesce(ms_of(due_at), 0), coalesce(ms_of(started_at), 0) FROM runs"
        )
        return [Recorded(*row) for row in await cursor.fetchall()]


async def read_skips(url: str) -> list[Skipped]:
    async with await psycopg.AsyncConnection.connect(url) as connection:
        cursor = await connection.execute("SELECT job_id, ms_of(first_at), ms_of(last_at) FROM skips")
        return [Skipped(*row) for row in await cursor.fetchall()]


async def count_final(url: str) -> int:
    """Runs that are over, as far as recorded."""
    query = "SELECT count(*) FROM finished_runs"
    async with await psycopg.AsyncConnection.connect(url) as connection:
        row = await (await connection.execute(query)).fetchone()
        return int(row[0]) if row else 0


async def last_ended(url: str) -> int:
    """Instant (Redis-clock ms) at which the last run ended."""
    async with await psycopg.AsyncConnection.connect(url) as connection:
        row = await (await connection.execute("SELECT ms_of(max(ended_at)) FROM finished_runs")).fetchone()
        return int(row[0]) if row and row[0] is not None else 0


async def position(url: str, stream: str) -> str:
    """The last entry of the stream that is recorded, as the stream writes it."""
    query = "SELECT generation, sequence FROM positions WHERE stream = %s"
    async with await psycopg.AsyncConnection.connect(url) as connection:
        row = await (await connection.execute(query, (stream,))).fetchone()
        return f"{row[0]}-{row[1]}" if row else "0-0"
