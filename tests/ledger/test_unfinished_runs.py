"""A run is unfinished or finished, whatever happens to it in whatever order: as a look at every row finds it."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from rsched.core.jobs.packed import Event, RunEvent
from rsched.core.states import JobState, RunState
from rsched.ledger import Ledger
from rsched.ledger.recovery.unfinished_runs import FIRST
from tests.ledger.events import T0, WallClock, job, job_id, run
from tests.ledger.support import DAY, HOUR, SECOND, asked, ledger_test, naive, record, unfinished_ids

Q, R, T, S, D = RunState.QUEUED, RunState.RUNNING, RunState.RETRYING, RunState.SUCCEEDED, RunState.DEAD
BOTH = "SELECT count(*) FROM unfinished_runs u JOIN finished_runs f USING (job_id, scheduled_at, manual, claimed_on)"


def rows(url: str) -> list[tuple[object, ...]]:
    return asked(url, "SELECT status::text, revision FROM all_runs ORDER BY 1")


def test_a_run_that_ended_is_in_history_alone(database_url: str) -> None:
    async def body(ledger: Ledger) -> None:
        await record(ledger, [run(T0), run(T0 + 1)])
        await record(ledger, [run(T0, state=S, revision=2, fence=1)], n=1)
        assert await unfinished_ids(ledger) == [f"{job_id()}:{T0 + 1}"]
        assert asked(database_url, "SELECT count(*) FROM unfinished_runs") == [(1,)]
        assert asked(database_url, "SELECT count(*) FROM finished_runs_20261026") == [(1,)]

    ledger_test(database_url, body)


def test_an_earlier_record_that_comes_after_the_end_changes_nothing(database_url: str) -> None:
    async def body(ledger: Ledger) -> None:
        await record(ledger, [run(T0, state=S, revision=3, fence=1)])
        await record(ledger, [run(T0, state=R, revision=2, fence=1), run(T0 + 1)], n=1)
        assert rows(database_url) == [("QUEUED", 1), ("SUCCEEDED", 3)]
        await ledger.write.resync("s0", [run(T0, state=Q)])
        assert rows(database_url) == [("QUEUED", 1), ("SUCCEEDED", 3)]

    ledger_test(database_url, body)


def test_a_dead_letter_that_is_replayed_leaves_history_and_its_list(database_url: str) -> None:
    async def body(ledger: Ledger) -> None:
        await record(ledger, [run(T0, state=D, revision=3, fence=1, attempt=1, detail="x")])
        assert len((await ledger.runs.dead_letters())[0]) == 1
        await record(ledger, [run(T0, state=Q, revision=4, fence=1, attempt=1)], n=1)
        assert rows(database_url) == [("QUEUED", 4)]
        assert asked(database_url, "SELECT count(*) FROM dead_letters") == [(0,)]
        # An end from before, which comes again, is not the last word.
        await record(ledger, [run(T0, state=D, revision=3, fence=1, attempt=1, detail="x")], n=2)
        assert rows(database_url) == [("QUEUED", 4)]
        await record(ledger, [run(T0, state=S, revision=6, fence=2, attempt=2)], n=3)
        assert rows(database_url) == [("SUCCEEDED", 6)]

    ledger_test(database_url, body)


def test_a_run_that_ended_when_claimed_again_by_a_clock_set_back_a_day_is_over(database_url: str) -> None:
    async def body(ledger: Ledger) -> None:
        await record(ledger, [run(T0 + DAY)])
        await record(ledger, [run(T0 + DAY, claimed_at=T0, state=S, revision=2, fence=1)], n=1)
        assert rows(database_url) == [("SUCCEEDED", 2)]
        assert await unfinished_ids(ledger) == []

    ledger_test(database_url, body, now=T0 + 2 * DAY)


def test_a_job_is_kept_while_a_run_of_it_is_unfinished(database_url: str) -> None:
    async def body(ledger: Ledger) -> None:
        names = ("old", "none", "over")
        events: list[Event] = [job(name, state=JobState.COMPLETED, version=2) for name in names]
        events += [run(T0, name="old"), run(T0, name="over"), run(T0, name="none", state=S)]
        await record(ledger, events)
        await record(ledger, [run(T0, name="over", state=S, revision=2, fence=1)], n=1)
        found = await ledger.recovery.unfinished.forgettable("s0", before_ms=T0 + 9 * DAY, limit=9)
        assert {j for j, _ in found} == {job_id("none"), job_id("over")}

    ledger_test(database_url, body)


def test_manual_runs_keep_their_ids(database_url: str) -> None:
    ids = [f"{job_id()}:m-{T0}-{suffix}" for suffix in ("0000", "zzzz", "a1b2", "0001")]

    async def body(ledger: Ledger) -> None:
        await record(ledger, [run(T0)._replace(run=i) for i in ids] + [run(T0)])
        for run_id in ids:
            found = await ledger.runs.get(run_id)
            assert found is not None
            assert found.run_id == run_id
        listed = [r.run_id for r in (await ledger.runs.list(job_id()))[0]]
        assert listed == [*sorted(ids, reverse=True), f"{job_id()}:{T0}"]
        assert await unfinished_ids(ledger, limit=2) == sorted([*ids, f"{job_id()}:{T0}"])
        assert await ledger.runs.occurrences(job_id(), since=T0, until=T0 + 1, schedule_version=1) == {T0}

    ledger_test(database_url, body)


class History:
    """What happens to a ledger, at random."""

    def __init__(self, ledger: Ledger, clock: WallClock, folder: Path, *, seed: int) -> None:
        self.ledger, self.clock, self.folder = ledger, clock, folder
        self.rng = random.Random(seed)
        self.known: dict[str, RunEvent] = {}
        self.n, self.made = 0, 0
        self.ops: list[Callable[[], Awaitable[None]]] = [
            self.claim, self.claim, self.claim, self.move, self.move, self.move, self.end, self.end, self.late, self.repeat,
            self.again, self.claim_again, self.drop, self.leave, self.later, self.set_clock_back,
        ]  # fmt: skip

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

    async def drop(self) -> None:
        after = FIRST
        while True:
            page = await self.ledger.recovery.unfinished.drop_superseded(
                "s0", after=after, limit=self.rng.randrange(1, 20)
            )
            after = page.after
            if after == FIRST:
                return

    async def leave(self) -> None:
        await self.ledger.retention.retain(self.folder, days=2)

    async def later(self) -> None:
        self.clock.now += self.rng.choice([60 * SECOND, HOUR, 9 * HOUR, DAY])

    async def set_clock_back(self) -> None:
        self.clock.now -= self.rng.choice([SECOND, 60 * SECOND, HOUR])


@pytest.mark.parametrize("seed", range(6))
def test_unfinished_runs_are_those_that_a_look_at_every_row_finds(database_url: str, tmp_path: Path, seed: int) -> None:
    clock = WallClock()

    async def main() -> None:
        async with Ledger(database_url, pool_max=3, clock=clock) as ledger:
            history = History(ledger, clock, tmp_path, seed=seed)
            happened = []
            for _ in range(100):
                happened.append(await history.happen())
                assert await unfinished_ids(ledger, limit=history.rng.randrange(1, 60)) == naive(database_url), happened
                assert asked(database_url, BOTH) == [(0,)], happened
            expected = {e.run for e in history.known.values() if not e.record.state.final}
            assert set(naive(database_url)) == expected

    asyncio.run(main())


def test_none_is_missed_or_doubled_while_two_streams_and_a_resync_go_on_at_once(database_url: str) -> None:
    batches, size = 60, 6

    async def body(ledger: Ledger) -> None:
        rng = random.Random(1)

        async def recorder(stream: str, name: str) -> None:
            known: list[RunEvent] = []
            for n in range(batches):
                fresh = [run(T0 + (n * size + i) * 50, name=name, fence=1) for i in range(size)]
                moves = [
                    e._replace(
                        record=e.record._replace(state=rng.choice([R, T, S, S, S]), revision=e.record.revision + 1)
                    )
                    for e in rng.sample(known, min(len(known), 20))
                ]
                before = "0-0" if n == 0 else f"1-{n - 1}"
                assert await ledger.write.record(
                    "s0", stream=stream, expected=before, new=f"1-{n}", events=[*fresh, *moves]
                )
                known = [e for e in known if e.run not in {m.run for m in moves}] + fresh + moves
                # What Redis had a moment ago.
                await ledger.write.resync("s0", rng.sample(known, 3))

        async with asyncio.TaskGroup() as recorders:
            recorders.create_task(recorder("journal", "a"))
            recorders.create_task(recorder("definitions", "b"))
        found = await unfinished_ids(ledger)
        assert len(found) > 2 * size
        assert found == naive(database_url)
        assert asked(database_url, BOTH) == [(0,)]

    ledger_test(database_url, body, now=T0 + HOUR)
