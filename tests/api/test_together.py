from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest
from rsched_api.http.call_batcher import Together

from rsched.core.errors import Unavailable

pytestmark = pytest.mark.anyio


class Call:
    """Each call stands still until it is let go."""

    def __init__(self) -> None:
        self.seen: list[list[int]] = []
        self.begun, self.go = asyncio.Semaphore(0), asyncio.Semaphore(0)
        self.fails = False

    async def __call__(self, arguments: Sequence[int]) -> list[int | None]:
        self.seen.append(list(arguments))
        self.begun.release()
        await self.go.acquire()
        if self.fails:
            raise Unavailable("away")
        return [a * 10 if a else None for a in arguments]


async def _until(call: Call, count: int) -> None:
    async with asyncio.timeout(5):
        while len(call.seen) < count:
            await call.begun.acquire()


async def test_what_comes_while_one_call_is_under_way_shares_the_next() -> None:
    call = Call()
    together = Together(call, most=3)
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(together(n)) for n in range(6)]
        for count in (1, 2, 3):
            await _until(call, count)
            call.go.release()
    assert call.seen == [[0], [1, 2, 3], [4, 5]]
    assert [t.result() for t in tasks] == [None, 10, 20, 30, 40, 50]
    call.go.release()
    assert await together(7) == 70


async def test_an_error_is_that_of_all_who_went_along_and_of_nobody_else() -> None:
    call = Call()
    call.fails = True
    together = Together(call, most=10)
    tasks = [asyncio.create_task(together(n)) for n in range(1, 4)]
    await _until(call, 1)
    call.go.release()
    await _until(call, 2)
    call.fails = False
    call.go.release()
    found = await asyncio.gather(*tasks, return_exceptions=True)
    assert [type(f) for f in found] == [Unavailable, int, int]


@pytest.mark.parametrize("victim", [0, 1, 2])
async def test_a_caller_that_is_cancelled_never_leaves_the_others_waiting(victim: int) -> None:
    call = Call()
    together = Together(call, most=10)
    tasks = [asyncio.create_task(together(n)) for n in range(1, 5)]
    await _until(call, 1)
    call.go.release()
    if victim:
        await _until(call, 2)
    tasks[victim].cancel()
    for _ in range(4):
        call.go.release()
    async with asyncio.timeout(5):
        found = await asyncio.gather(*tasks, return_exceptions=True)
    others = [f for n, f in enumerate(found) if n != victim]
    # Those whose carrier was cancelled are told so; the rest have their results.
    assert all(isinstance(f, int | Unavailable) for f in others)
    call.go.release()
    assert await together(9) == 90


async def test_one_that_is_cancelled_as_its_turn_comes_passes_it_on() -> None:
    call = Call()
    together = Together(call, most=1)

    async def first() -> None:
        await together(1)
        second.cancel()  # its turn has been given, and it has not run since

    tasks = [asyncio.create_task(first())]
    second, third = asyncio.create_task(together(2)), asyncio.create_task(together(3))
    await _until(call, 1)
    call.go.release()
    call.go.release()
    async with asyncio.timeout(5):
        assert await third == 30
    assert call.seen == [[1], [3]]
    await asyncio.gather(*tasks)
