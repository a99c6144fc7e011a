"""Ledgers to which everything happens at random: unfinished_runs finds what a look at every row does."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

import pytest

from rsched.core.errors import Unavailable
from rsched.core.jobs.packed import RunEvent
from rsched.core.states import RunState
from rsched.ledger import Ledger
from rsched.ledger.recovery.unfinished_runs import FIRST, Key
from rsched.runtime import faults
from tests.ledger.events import T0, WallClock, run
from tests.ledger.test_open_runs import (
    DAY,
    HOUR,
    SECOND,
    Crash,
    asked,
    drop_all,
    ledger_test,
    list_all,
    naive,
    open_ids,
    record,
)

Q, R, T, S, D = RunState.QUEUED, RunState.RUNNING, RunState.RETRYING, RunState.SUCCEEDED, RunState.DEAD


class History:
    """What happens to a ledger, at random."""

    def __init__(self, ledger: Ledger, clock: WallClock, folder: Path, *, seed: int) -> None:
        self.ledger, self.clock, self.folder = ledger, clock, folder
        self.rng = random.Random(seed)
        self.known: dict[str, RunEvent] = {}
        self.n, self.made, self.crash = 0, 0, False
        self.key: Key = FIRST
        self.ops: list[Callable[[], Awaitable[None]]] = [
            self.claim, self.claim, self.claim, self.move, self.move, self.move, self.end, self.end, self.late, self.repeat,
            self.again, self.claim_again, self.list, self.list, self.list, self.drop, self.drop, self.leave, self.later,
            self.set_clock_back,
        ]  # fmt: skip

    def point(self, name: str) -> None:
        if self.crash and name == "housekeeping.before_listing":
            raise Crash

    async def happen(self) -> str:
        op = self.rng.choice(self.ops)
        await op()
        return op.__name__

    async def record(self, events: list[RunEvent]) -> None:
        if not events:
            return
        await record(self.ledger, list(events), n=self.n)
        self.n += 1
        for e in events:
            before = self.known.get(e.run)
            if before is None or (before.record.fence, before.record.revision) < (e.record.fence, e.record.revision):
                self.known[e.run] = e

    def new(self, claimed_at: int) -> RunEvent:
        self.made += 1
        state = self.rng.choice([Q, Q, R, S])
        return run(
            claimed_at + self.made, state=state, claimed_at=claimed_at, revision=2, attempt=1, fence=1, at=claimed_at
        )

    def moved(self, e: RunEvent, state: RunState, **changes: int) -> RunEvent:
        r = e.record._replace(state=state, revision=e.record.revision + 1, fence=e.record.fence + 1, **changes)
        return e._replace(record=r, at=self.clock.now)

    def some(self, most: int) -> list[RunEvent]:
        return self.rng.sample(sorted(self.known.values()), min(len(self.known), self.rng.randrange(1, most)))

    async def claim(self) -> None:
        self.clock.now += self.rng.randrange(40 * SECOND)
        at = self.clock.now
        await self.record([self.new(at - self.rng.randrange(3 * SECOND)) for _ in range(self.rng.randrange(1, 9))])

    async def move(self) -> None:
        await self.record([self.moved(e, self.rng.choice([R, T, Q])) for e in self.some(5)])

    async def end(self) -> None:
        await self.record([self.moved(e, self.rng.choice([S, S, D])) for e in self.some(9)])

    async def late(self) -> None:
        await self.record([self.new(self.clock.now - self.rng.randrange(3 * DAY))])

    async def repeat(self) -> None:
        await self.record(
            [e._replace(record=e.record._replace(state=R, revision=e.record.revision - 1)) for e in self.some(5)]
        )

    async def again(self) -> None:
        newer = [self.moved(e, self.rng.choice([R, S])) for e in self.some(4)]
        await self.ledger.write.resync("s0", list(newer))
        self.known.update((e.run, e) for e in newer)

    async def claim_again(self) -> None:
        await self.record([self.moved(e, Q, claimed_at=self.clock.now) for e in self.some(3)])

    async def list(self) -> None:
        self.crash = self.rng.random() < 0.3
        up_to = self.clock.now - self.rng.choice([-SECOND, 0, SECOND, 60 * SECOND, HOUR])
        with suppress(Crash):
            for _ in range(self.rng.choice([1, 3, 40])):
                width = self.rng.choice([SECOND, 60 * SECOND, HOUR, 12 * HOUR])
                if not await self.ledger.index_unfinished_runs("s0", up_to=up_to, width_ms=width):
                    break
        self.crash = False

    async def drop(self) -> None:
        self.key = (await self.ledger.drop_ended("s0", after=self.key, limit=self.rng.randrange(1, 20))).after

    async def leave(self) -> None:
        await self.ledger.retention.retain(self.folder, days=2)

    async def later(self) -> None:
        self.clock.now += self.rng.choice([60 * SECOND, HOUR, 9 * HOUR, DAY])

    async def set_clock_back(self) -> None:
        self.clock.now -= self.rng.choice([SECOND, 60 * SECOND, HOUR])


@pytest.mark.parametrize("seed", range(6))
def test_open_runs_are_those_that_a_look_at_every_row_finds(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    clock = WallClock()

    async def main() -> None:
        async with Ledger(database_url, pool_max=3, clock=clock) as ledger:
            history = History(ledger, clock, tmp_path, seed=seed)
            monkeypatch.setattr(faults, "point", history.point)
            happened = []
            for _ in range(100):
                happened.append(await history.happen())
                assert await open_ids(ledger, limit=history.rng.randrange(1, 60)) == naive(database_url), happened
            await list_all(ledger, up_to=clock.now + 4 * DAY, width_ms=DAY)
            await drop_all(ledger)
            assert await open_ids(ledger) == naive(database_url)

    asyncio.run(main())
    # Of what remains each row is one that is open.
    states = {
        s for (s,) in asked(database_url, "SELECT state FROM unfinished_runs JOIN runs USING (claimed_on, run_id)")
    }
    assert states <= {"QUEUED", "RUNNING", "RETRYING"}
    count = asked(database_url, "SELECT count(*) FROM unfinished_runs")
    assert count == asked(database_url, "SELECT count(*) FROM unfinished_runs JOIN runs USING (claimed_on, run_id)")


def test_none_is_missed_while_recording_listing_and_dropping_go_on_at_once(database_url: str) -> None:
    batches, size = 80, 6

    async def body(ledger: Ledger) -> None:
        done = False
        rng = random.Random(1)
        await ledger.write.resync("s0", [run(T0)])
        await list_all(ledger, up_to=T0)

        async def recorder(stream: str, name: str) -> None:
            known: list[RunEvent] = []
            for n in range(batches):
                # As many come from before the mark as after it.
                fresh = [run(T0 + (n * size + i) * 50, name=name, fence=1) for i in range(size)]
                moves = [
                    e._replace(
                        record=e.record._replace(state=rng.choice([R, T, S, S, S]), revision=e.record.revision + 1)
                    )
                    for e in rng.sample(known, min(len(known), 20))
                ]
                before = "0-0" if n == 0 else f"1-{n - 1}"
                assert await ledger.write.record("s0", stream=stream, expected=before, new=f"1-{n}", events=[*fresh, *moves])
                known = [e for e in known if e.run not in {m.run for m in moves}] + fresh + moves
                with suppress(Unavailable):
                    await ledger.write.resync("s0", fresh[:1])

        async def housekeeping() -> None:
            while not done:
                await ledger.index_unfinished_runs(
                    "s0", up_to=ledger.claimed_to("s0") - rng.choice([0, 500]), width_ms=700
                )
                await drop_all(ledger)

        async with asyncio.TaskGroup() as group:
            house = group.create_task(housekeeping())
            async with asyncio.TaskGroup() as recorders:
                recorders.create_task(recorder("journal", "a"))
                recorders.create_task(recorder("definitions", "b"))
            done = True
            await house
        found = await open_ids(ledger)
        assert len(found) > 2 * size
        assert found == naive(database_url)
        ((mark,),) = asked(database_url, "SELECT indexed_until FROM unfinished_high_water")
        assert mark > T0  # type: ignore[operator]

    ledger_test(database_url, body, now=T0 + HOUR)
