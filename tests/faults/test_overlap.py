"""Jobs whose runs take a good part of the time to the next one, or longer than that, under each overlap policy, on real servers.

RSCHED_LONG=1: every 5 s with 3 s of work, every 2 s with 3 s of work; else both by a shorter measure.
"""

from __future__ import annotations

import os
from collections import defaultdict
from itertools import pairwise
from typing import Any, NamedTuple

import psycopg
import pytest

from rsched.core.ids import JobId
from tests.faults.api_run import text_of, until_time, with_api
from tests.faults.fault_run import Run, drive
from tests.support.checker import Seen, check, read_seen
from tests.support.ledger_rows import read_skips

pytestmark = pytest.mark.faults

LONG = os.environ.get("RSCHED_LONG") == "1"
# (every, work), seconds.
ROOMY, TIGHT = ((5.0, 3.0), (2.0, 3.0)) if LONG else ((1.0, 0.6), (1.0, 1.3))
SCENE_S = 25 if LONG else 6
# For a start or a cancel to get through on a machine that does other things, too.
SLOW_MS = 350


class Story(NamedTuple):
    """One job. states: (scheduled_at, state, error) in order of time; seen: what the target wrote, in the order it did."""

    states: list[tuple[int, str, str]]
    seen: list[Seen]

    def of(self, kind: str) -> list[int]:
        """The occurrences whose runs wrote such a line, as written."""
        return [int(s.run_id.rpartition(":")[2]) for s in self.seen if s.kind == kind]

    def attempts(self) -> list[tuple[Seen, Seen]]:
        """Begin and end of each attempt; they come one after another, or this raises."""
        assert [s.kind == "start" for s in self.seen] == [True, False] * (len(self.seen) // 2), "two at once"
        pairs = list(zip(self.seen[::2], self.seen[1::2], strict=True))
        assert all(a.run_id == b.run_id for a, b in pairs), "two at once"
        return pairs


async def act(policies: list[tuple[str, tuple[float, float]]]) -> dict[str, Story]:
    """Lets a job of each policy and measure run for the scene; what became of it by "policy-roomy" or "policy-tight"."""
    async with with_api({"RSCHED_WORKER_APP": "tests.faults.busy_app:app"}) as (run, api):
        store = run.w.store
        begin = await store.clock.read() + 1500
        bodies = [_body(policy, measure, begin) for policy, measure in policies]
        made = await api.put(bodies)
        await until_time(run, begin + SCENE_S * 1000)
        over = await store.clock.read()
        for job, _ in made:
            await store.jobs.pause(JobId(job))

        async def ended() -> bool:
            return await store.connection.client.hlen(store.keys.runs) == 0

        await run.fleet.until(ended, what="the end of all runs", within_s=60)
        await run.until_recorded()
        verdict = check(
            read_seen(run.seen), await run.recorded(), expected={}, skips=await read_skips(run.w.database_url)
        )
        assert not verdict.breaches, str(verdict)
        stories = await _stories(run, over)
        for body, (job, created) in zip(bodies, made, strict=True):
            every = round(body["schedule"]["every"] * 1000)
            due = [t for t, _, _ in stories[job].states]
            # The anchor sets the phase, it begins nothing.
            expected = range(begin - (begin - created - 1) // every * every, over + 1, every)
            assert due == list(expected), f"{body['name']}: not each occurrence has one run"
        return {body["name"]: stories[job] for body, (job, _) in zip(bodies, made, strict=True)}


def _body(policy: str, measure: tuple[float, float], begin: int) -> dict[str, Any]:
    every, work = measure
    return {
        "name": f"{policy}-{'roomy' if measure == ROOMY else 'tight'}",
        "schedule": {"every": every, "anchor": text_of(begin)},
        "target": {"type": "function", "function": "busy", "kwargs": {"seconds": work}},
        "overlap": policy,
    }


async def _stories(run: Run, over: int) -> dict[str, Story]:
    async with await psycopg.AsyncConnection.connect(run.w.database_url) as connection:
        rows = await (await connection.execute("SELECT run_id, status::text, coalesce(error, '') FROM runs")).fetchall()
    stories: dict[str, Story] = defaultdict(lambda: Story([], []))
    for run_id, state, error in rows:
        job, _, at = run_id.partition(":")
        if int(at) <= over:
            stories[job].states.append((int(at), state, error))
    for line in read_seen(run.seen):
        job, _, at = line.run_id.partition(":")
        if int(at) <= over:
            stories[job].seen.append(line)
    for story in stories.values():
        story.states.sort()
    return stories


def test_overlap_policies_skip_wait_and_cancel_as_they_say_and_only_when_a_run_is_really_at_work() -> None:
    async def scenario() -> None:
        stories = await act(
            [("skip", ROOMY), ("queue_one", ROOMY), ("skip", TIGHT), ("queue_all", TIGHT), ("cancel_running", TIGHT)]
        )
        for name in ("skip-roomy", "queue_one-roomy"):
            nothing_skipped_on_time(stories[name])
        skipped_while_at_work(stories["skip-tight"])
        one_after_another(stories["queue_all-tight"])
        each_cancels_the_one_before(stories["cancel_running-tight"])

    drive(scenario)


def nothing_skipped_on_time(story: Story) -> None:
    assert {state for _, state, _ in story.states} == {"SUCCEEDED"}
    for begin, _ in story.attempts():
        assert begin.at - _at(begin) < SLOW_MS


def skipped_while_at_work(story: Story) -> None:
    """About half: those, and only those, that came due while the one before was at work."""
    attempts = [(begin.at, end.at) for begin, end in story.attempts()]
    skipped = [t for t, state, _ in story.states if state == "SKIPPED"]
    assert {error for _, state, error in story.states if state == "SKIPPED"} == {"overlap"}
    assert {state for _, state, _ in story.states} == {"SKIPPED", "SUCCEEDED"}
    for t in skipped:
        assert any(begin <= t + SLOW_MS and t <= end + SLOW_MS for begin, end in attempts), f"{t} was free to go"
    assert 0.4 * (len(story.states) - 1) <= len(skipped) <= 0.6 * len(story.states) + 1


def one_after_another(story: Story) -> None:
    assert {state for _, state, _ in story.states} == {"SUCCEEDED"}
    assert story.of("start") == [t for t, _, _ in story.states]
    for (_, end), (begin, _) in pairwise(story.attempts()):
        assert begin.at - end.at < SLOW_MS, "what waits goes as soon as the one before has ended"


def each_cancels_the_one_before(story: Story) -> None:
    """The function of each but the last sees the cancellation, soon after the next came due."""
    *cancelled, last = story.attempts()
    assert [state for _, state, _ in story.states] == ["CANCELLED"] * len(cancelled) + ["SUCCEEDED"]
    assert story.of("cancelled") == [t for t, state, _ in story.states if state == "CANCELLED"]
    assert last[1].kind == "end"
    for (_, end), (begin, _) in pairwise(story.attempts()):
        assert end.at - _at(begin) < SLOW_MS, "the one before is stopped when the next comes due"
        assert begin.at - end.at < SLOW_MS


def _at(line: Seen) -> int:
    return int(line.run_id.rpartition(":")[2])
