from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from rsched.core.errors import Invalid
from rsched.core.jobs.packed import Event
from rsched.core.states import JobState, RunState
from rsched.ledger import Ledger
from rsched.runtime.clock import SystemClock
from tests.ledger.events import T0, job, job_id, run
from tests.ledger.support import unfinished_ids

DAY = 86_400_000


def with_events(url: str, events: list[Event], body: Callable[[Ledger], Awaitable[None]]) -> None:
    async def main() -> None:
        async with Ledger(url, pool_max=4, clock=SystemClock()) as ledger:
            assert await ledger.write.record("s0", stream="journal", expected="0-0", new="1-0", events=events)
            await body(ledger)

    asyncio.run(main())


async def all_pages(page: Callable[..., Awaitable[tuple[list[Any], str | None]]]) -> list[Any]:
    items, cursor = await page(None)
    while cursor is not None:
        more, cursor = await page(cursor)
        assert more
        items += more
    return items


def test_pages_of_jobs_are_complete_and_newest_first(database_url: str) -> None:
    jobs: list[Event] = [job(f"job-{i}", created_at=T0 + i // 3) for i in range(25)]

    async def body(ledger: Ledger) -> None:
        found = await all_pages(lambda c: ledger.jobs.list(cursor=c, limit=4))
        assert len({j.job_id for j in found}) == len(found) == 25
        keys = [(j.definition.created_at, j.job_id) for j in found]
        assert keys == sorted(keys, reverse=True)

    with_events(database_url, jobs, body)


def test_jobs_are_found_by_each_filter(database_url: str) -> None:
    jobs: list[Event] = [
        job("100%", tags=["red", "blue"]),
        job("under_score", state=JobState.PAUSED),
        job("Plain", team="other", tags=["red"]),
    ]

    async def body(ledger: Ledger) -> None:
        async def names(**filters: Any) -> set[str | None]:
            return {j.definition.name for j in (await ledger.jobs.list(**filters))[0]}

        assert await names(team="other") == {"Plain"}
        assert await names(tag="red") == {"100%", "Plain"}
        assert await names(tag="red", team="default") == {"100%"}
        assert await names(state=JobState.PAUSED) == {"under_score"}
        assert await names(q="%") == {"100%"}
        assert await names(q="r_s") == {"under_score"}
        assert await names(q="plain") == {"Plain"}
        assert await names(name="Plain") == {"Plain"}
        assert await names(q="a\0") == set()

    with_events(database_url, jobs, body)


def test_runs_of_one_job_come_newest_first_across_days(database_url: str) -> None:
    runs: list[Event] = [run(T0 + i * DAY // 4) for i in range(12)]
    runs += [run(T0, name="nightlx"), run(T0 + 7, state=RunState.SUCCEEDED, fence=1, attempt=1)]
    manual = run(T0 + 8)
    runs.append(manual._replace(run=f"{job_id()}:m-{T0 + 8}-abcd"))

    async def body(ledger: Ledger) -> None:
        found = await all_pages(lambda c: ledger.runs.list(job_id(), cursor=c, limit=3))
        assert len({r.run_id for r in found}) == len(found) == 14
        at = [r.scheduled_at for r in found]
        assert at == sorted(at, reverse=True)
        done, _ = await ledger.runs.list(job_id(), status=RunState.SUCCEEDED)
        assert [r.scheduled_at for r in done] == [T0 + 7]

    with_events(database_url, runs, body)


def test_a_run_claimed_again_on_another_day_is_shown_once(database_url: str) -> None:
    first = run(state=RunState.SKIPPED, revision=2, claimed_at=T0)
    again = run(state=RunState.QUEUED, revision=9, claimed_at=T0 + DAY)

    async def body(ledger: Ledger) -> None:
        items, _ = await ledger.runs.list(job_id())
        assert [r.record.state for r in items] == [RunState.QUEUED]
        found = await ledger.runs.get(again.run)
        assert found is not None
        assert found.record.revision == 9
        assert await unfinished_ids(ledger, limit=5) == [again.run]

    async def separately() -> None:
        async with Ledger(database_url, clock=SystemClock()) as ledger:
            assert await ledger.write.record("s0", stream="journal", expected="0-0", new="1-0", events=[first])
            assert await ledger.write.record("s0", stream="journal", expected="1-0", new="1-1", events=[again])
            await body(ledger)

    asyncio.run(separately())


@pytest.mark.parametrize("cursor", ["", "x", "!!!!", "gqFhoWI", "////"])
def test_a_made_up_cursor_is_invalid(database_url: str, cursor: str) -> None:
    async def body(ledger: Ledger) -> None:
        with pytest.raises(Invalid, match="cursor"):
            await ledger.jobs.list(cursor=cursor)

    with_events(database_url, [job()], body)
