"""Keyed triggers in the ledger: recorded with their run, read by page, deleted past a day."""

from __future__ import annotations

import psycopg

from rsched.core.ids import JobId
from rsched.core.jobs.packed import TriggerEvent, unpack_event
from rsched.ledger import Ledger
from rsched.ledger.recovery.triggers import Key
from tests.ledger.events import T0, job_id
from tests.ledger.test_record import ledger_test, record

A, B = JobId(job_id("a")), JobId(job_id("b"))


def count(url: str, table: str) -> int:
    with psycopg.connect(url) as c:
        row = c.execute(f"SELECT count(*) FROM {table}".encode()).fetchone()
    assert row is not None
    return int(row[0])


def test_the_latest_run_of_a_key_is_kept_whatever_order_events_come_in(database_url: str) -> None:
    async def body(ledger: Ledger) -> None:
        assert await record(ledger, [TriggerEvent(A, "k", T0 + 5), TriggerEvent(A, "k", T0), TriggerEvent(B, "k", T0)])
        assert await record(ledger, [TriggerEvent(A, "k", T0 + 1)], expected="1-0", new="1-1")
        assert await ledger.recovery.triggers.triggered_at(A, "k", since=T0) == T0 + 5
        assert await record(ledger, [TriggerEvent(A, "k", T0 + 9)], expected="1-1", new="1-2")
        assert await ledger.recovery.triggers.triggered_at(A, "k", since=T0) == T0 + 9
        assert await ledger.recovery.triggers.triggered_at(B, "k", since=T0) == T0
        assert await ledger.recovery.triggers.triggered_at(B, "k", since=T0 + 1) is None
        assert await ledger.recovery.triggers.triggered_at(B, "l", since=T0) is None

    ledger_test(database_url, body)


def test_pages_give_each_once_that_is_not_too_old(database_url: str) -> None:
    async def body(ledger: Ledger) -> None:
        wanted = sorted((job, f"{n}", T0 + n) for job in (A, B) for n in range(5))
        events = [TriggerEvent(*w) for w in wanted] + [TriggerEvent(A, f"old{n}", T0 - 1) for n in range(5)]
        assert await record(ledger, [*events])
        found: list[tuple[str, str, int]] = []
        after: Key = ("", "")
        while page := await ledger.recovery.triggers.page("s0", after=after, since=T0, limit=3):
            found += page
            after = page[-1][:2]
        assert found == wanted
        assert await ledger.recovery.triggers.page("s1", after=("", ""), since=T0, limit=3) == []

    ledger_test(database_url, body)


def test_old_ones_are_deleted_in_bounded_steps(database_url: str) -> None:
    async def body(ledger: Ledger) -> None:
        assert await record(ledger, [TriggerEvent(A, f"{n}", T0 + n) for n in range(7)])
        assert [await ledger.recovery.triggers.drop("s0", before=T0 + 5, limit=2) for _ in range(4)] == [2, 2, 1, 0]
        assert await ledger.recovery.triggers.drop("s1", before=T0 + 9, limit=2) == 0
        left = await ledger.recovery.triggers.page("s0", after=("", ""), since=0, limit=9)
        assert [at for _, _, at in left] == [T0 + 5, T0 + 6]

    ledger_test(database_url, body)


def test_one_that_is_being_recorded_anew_is_not_waited_for(database_url: str) -> None:
    async def body(ledger: Ledger) -> None:
        assert await record(ledger, [TriggerEvent(A, "k", T0), TriggerEvent(B, "k", T0)])
        async with await psycopg.AsyncConnection.connect(database_url) as c:
            await c.execute("UPDATE triggers SET at = %s WHERE job_id = %s", (T0 + 9, A))
            assert await ledger.recovery.triggers.drop("s0", before=T0 + 5, limit=9) == 1
        assert [t[:1] for t in await ledger.recovery.triggers.page("s0", after=("", ""), since=0, limit=9)] == [(A,)]

    ledger_test(database_url, body)


def test_one_that_postgres_refuses_is_quarantined_alone(database_url: str) -> None:
    async def body(ledger: Ledger) -> None:
        assert await record(
            ledger, [TriggerEvent(A, "k", T0), TriggerEvent(A, "no\0text", T0), TriggerEvent(A, "l", 2**70)]
        )
        assert await ledger.recovery.triggers.triggered_at(A, "k", since=T0) == T0

    ledger_test(database_url, body)
    assert (count(database_url, "triggers"), count(database_url, "quarantine")) == (1, 2)


def test_the_event_is_read_as_the_script_writes_it() -> None:
    assert unpack_event(b"t", f"{A}\nkey\n{T0}".encode()) == TriggerEvent(A, "key", T0)
