"""Resync begins, and begins anew, whenever it has to, and judges nothing while Redis is not whole itself."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import anyio
import pytest

from rsched.core.errors import Unavailable
from rsched.core.ids import JobId
from rsched.core.states import JobState
from rsched.ledger.positions import Position
from rsched.recorder.resync.ended_in_gap import OUTCOME_UNKNOWN
from tests.recorder.one_offs import (
    in_the_gap,
    of_every_kind,
    rows,
)
from tests.recorder.restored import backup, without_tail, written_again
from tests.recorder.rollback import stale_generation
from tests.recorder.stepped_shard import HOUR, InShard, Shard


def test_it_goes_on_whatever_is_away_and_ends_as_if_nothing_had_been(
    shard: InShard, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def body(s: Shard) -> None:
        runs, active = await of_every_kind(s)
        kept = backup(database_url)
        ended = await in_the_gap(s, runs, active)
        resync = await without_tail(s, database_url, kept)
        calls, chance = 0, random.Random(1)

        def often_away(obj: object, name: str) -> None:
            real = getattr(obj, name)

            async def call(*args: Any, **kwargs: Any) -> Any:
                nonlocal calls
                calls += 1
                if chance.random() < 0.2:
                    raise Unavailable("away")
                return await real(*args, **kwargs)

            monkeypatch.setattr(obj, name, call)

        for part, name in (
            (s.ledger.write, "resync"), (s.ledger.recovery.compare, "runs"), (s.ledger.recovery.pages, "jobs_after"),
            (s.ledger.write, "position"), (s.store.resync, "read_runs"), (s.store.runs, "read_packed"),
            (s.store.resync, "request"), (s.store.resync, "finish"), (s.store.recovery, "get_marker"),
            (s.store.partitions, "get_first_due_times"), (s.store.catchup, "list_all"),
        ):  # fmt: skip
            often_away(part, name)
        more, tries = True, 0
        while more:
            tries += 1
            assert tries < 5000
            try:
                more = await resync.step()
            except Unavailable:
                continue
        monkeypatch.undo()
        assert calls > 20
        assert not await s.store.resync.is_requested()
        assert {run for run, row in (await rows(s)).items() if row == ("CANCELLED", OUTCOME_UNKNOWN)} == ended
        assert await s.reconcile() == {}

    shard(body)


@pytest.mark.parametrize(
    "place",
    [
        "resync.read_jobs",
        "catchup.list_all",
        "partitions.get_first_due_times",
        "resync.is_requested",
        "resync.finish",
    ],
)
def test_a_gap_that_is_found_meanwhile_begins_it_anew(
    shard: InShard, database_url: str, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    async def body(s: Shard) -> None:
        job = await s.put("a", due_in=HOUR, every=2 * HOUR)
        assert (await s.store.calendars.put("default", "days", expect=0, entries=["2030-01-01"])).tag == "ok"
        await s.record()
        kept = backup(database_url)
        await s.put("of the gap", due_in=HOUR, every=2 * HOUR)
        resync = await without_tail(s, database_url, kept)
        part, verb = place.split(".")
        place_of = getattr(s.store, part)
        real = getattr(place_of, verb)
        begun, falling, fallen = anyio.Event(), anyio.Event(), anyio.Event()

        def at_its_end() -> bool:
            return resync._parts is not None and not resync._parts

        async def waits(*args: Any, **kwargs: Any) -> Any:
            if not begun.is_set() and (place != "resync.is_requested" or at_its_end()):
                begun.set()
                # Whoever asks for the mark, or takes it away, holds the lock for which the gap then waits.
                await (falling if place in ("resync.is_requested", "resync.finish") else fallen).wait()
            return await real(*args, **kwargs)

        async def falls_back() -> None:
            await begun.wait()
            await s.ledger.database.execute("DELETE FROM jobs", ())
            await s.ledger.database.execute("DELETE FROM calendars", ())
            falling.set()
            await resync.found_gap("journal", Position(1, 1), Position(1, 5))
            fallen.set()

        monkeypatch.setattr(place_of, verb, waits)
        with anyio.fail_after(30):
            async with anyio.create_task_group() as group:
                group.start_soon(falls_back)
                while not fallen.is_set():
                    assert await resync.step() or place == "resync.finish"
                    if falling.is_set():
                        await fallen.wait()
        monkeypatch.undo()
        assert await s.store.resync.is_requested()
        await written_again(s, resync)
        assert job in await s.ledger.recovery.compare.jobs([job])
        # What comes first of all.
        assert [name for _, name, _, _ in await s.ledger.recovery.pages.calendars(s.shard)] == ["days"]

    shard(body)


def test_jobs_that_come_back_after_a_loss_of_redis_are_not_taken_for_ended(
    shard: InShard, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def body(s: Shard) -> None:
        jobs = [await s.put(f"job {n}", due_in=HOUR, every=2 * HOUR) for n in range(30)]
        await s.record()
        kept = backup(database_url)
        await s.put("of the gap", due_in=HOUR, every=2 * HOUR)
        resync = await without_tail(s, database_url, kept)
        real = s.store.jobs.read_packed
        lost = False

        async def lose(asked: Sequence[JobId]) -> Any:
            nonlocal lost
            if not lost:
                lost = True
                await s.redis.delete(*[key async for key in s.redis.scan_iter(s.keys.prefix + ":*")])
            return await real(asked)

        monkeypatch.setattr(s.store.jobs, "read_packed", lose)
        while not lost:
            assert await resync.step()
        for _ in range(3):
            assert await resync.step()
        await stale_generation(s)
        for _ in range(3):
            assert await resync.step()
        await s.redis.hset(s.keys.restore, "phase", "done")
        await written_again(s, resync)
        known = await s.ledger.recovery.compare.jobs(jobs)
        assert {k.state for k in known.values()} == {JobState.ACTIVE}
        assert set(await s.store.jobs.get_due_times(jobs)) == set(jobs)

    shard(body)
