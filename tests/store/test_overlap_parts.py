"""The parts that judge runs which must not overlap, each called alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import redis

from rsched.core.jobs.packed import RunRecord, unpack_event
from rsched.core.states import RunState
from rsched.store.keys import Keys
from tests.store.lua_part import run_part_json

JOB = "j_0000000000000"
R1, R2, R3, R4 = (f"{JOB}:{n}" for n in (1, 2, 3, 4))
RECORD = RunRecord(RunState.QUEUED, 5, "q:t:1", 1, 0, 0, "", 1, 7, 0, "")
JUDGE = "local judge = {jobs = {}, skipped = {}, cancelled = {}}\n"


@pytest.fixture(scope="module")
def client(redis_url: str) -> Iterator[Any]:
    with redis.Redis.from_url(redis_url) as c:
        yield c


@pytest.fixture
def keys(redis_prefix: str) -> Keys:
    return Keys(redis_prefix, "s0")


def _given(client: Any, keys: Keys, going: dict[str, RunState], waiting: list[str]) -> None:
    states = going | dict.fromkeys(waiting, RunState.QUEUED)
    for score, (run, state) in enumerate(states.items(), 1):
        client.hset(keys.runs, run, RECORD._replace(state=state).pack())
        client.zadd(keys.active(JOB), {run: 0 if run in going else score})


def _decide(client: Any, keys: Keys, letter: str, *runs: str) -> tuple[list[str], dict[str, Any]]:
    driver = JUDGE + (
        "local verdicts = {} for _, run in ipairs(args[1]) do "
        f"verdicts[#verdicts + 1] = overlap_decide(judge, run, run_parse('{RECORD.pack()}'), args[2]) end "
        "return cjson.encode({verdicts, judge})"
    )
    verdicts, judge = run_part_json(client, "overlap_decide run_parse", driver, list(runs), letter, keys=keys)
    return verdicts, judge


@pytest.mark.parametrize(
    ("letter", "going", "waiting", "verdicts"),
    [
        ("s", {}, [], ["go", "skip"]),
        ("q", {}, [], ["go", "wait"]),
        ("w", {}, [], ["go", "wait"]),
        ("k", {}, [], ["go", "wait"]),
        ("a", {R1: RunState.RUNNING}, [], ["go", "go"]),
        ("s", {R1: RunState.RUNNING}, [], ["skip", "skip"]),
        ("q", {R1: RunState.RUNNING}, [], ["wait", "skip"]),
        ("w", {R1: RunState.RUNNING}, [], ["wait", "wait"]),
        ("q", {R1: RunState.RUNNING}, [R2], ["skip", "skip"]),
        # The first of those that wait is next, and a later one is not before it.
        ("w", {}, [R3], ["go", "wait"]),
        ("w", {}, [R2, R3], ["wait", "wait"]),
        # A run that waits for its retry makes room at once; one that is at work is waited for.
        ("k", {R1: RunState.RETRYING}, [], ["go", "wait"]),
        ("k", {R1: RunState.RUNNING}, [R2], ["wait", "wait"]),
    ],
)
def test_a_policy_decides_by_the_runs_that_go_and_wait(
    client: Any, keys: Keys, letter: str, going: dict[str, RunState], waiting: list[str], verdicts: list[str]
) -> None:
    _given(client, keys, going, waiting)
    assert _decide(client, keys, letter, R3, R4)[0] == verdicts


def test_a_run_that_takes_the_turn_of_all_others_ends_or_stops_them(client: Any, keys: Keys) -> None:
    _given(client, keys, {R1: RunState.RUNNING}, [R2])
    verdicts, judge = _decide(client, keys, "k", R3, R2)
    assert verdicts == ["wait", "skip"]
    assert [run for run, _ in judge["skipped"]] == [R2]
    assert [run for run, _ in judge["cancelled"]] == [R1]
    assert judge["jobs"][JOB]["removed"] == [R2]


def test_an_entry_whose_run_is_gone_counts_for_nothing(client: Any, keys: Keys) -> None:
    _given(client, keys, {R1: RunState.RUNNING}, [])
    client.hdel(keys.runs, R1)
    verdicts, judge = _decide(client, keys, "s", R3)
    assert (verdicts, judge["jobs"][JOB]["removed"]) == (["go"], [R1])


def test_what_was_decided_is_collected_and_written_only_at_the_end(client: Any, keys: Keys) -> None:
    _given(client, keys, {R1: RunState.RUNNING, R4: RunState.RETRYING}, [R2])
    driver = JUDGE + (
        f"overlap_decide(judge, '{R3}', run_parse('{RECORD.pack()}'), 'k') local events = {{}} "
        "local write = overlap_write(judge, events, 100) "
        f"local before = redis.call('HLEN', '{keys.runs}') write() return cjson.encode({{events, before}})"
    )
    events, before = run_part_json(client, "overlap_decide overlap_write run_parse", driver, keys=keys)
    assert before == 3
    moved = [unpack_event(b"r", payload.encode()) for payload in events[1::2]]
    told = {e.run: (e.record.state, e.record.flags, e.detail) for e in moved}
    assert told == {
        R2: (RunState.SKIPPED, "", "overlap"),
        R4: (RunState.CANCELLED, "", "cancelled for the next run"),
        R1: (RunState.RUNNING, "X", ""),
    }
    assert set(client.hkeys(keys.runs)) == {R1.encode()}
    assert dict(client.zrange(keys.active(JOB), 0, -1, withscores=True)) == {R1.encode(): 0.0, R3.encode(): 7.0}
