"""The parts of claim, each called alone: what is read, what becomes of a due job, and that a plan writes nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import redis

from rsched.core.jobs.packed import JobHead, RunRecord, WatermarkEvent, unpack_event, unpack_run
from rsched.core.states import JobState, RunState
from rsched.store.keys import Keys
from tests.store.lua_part import run_part, run_part_json

NOW = 1_700_000_000_000
HOUR = 3_600_000
A, B, C, D = (f"j_0000000000{n}" for n in ("00a", "00b", "00c", "00d"))
EVERY_HOUR = JobHead(JobState.ACTIVE, 3, 2, 0, "e", f"{NOW},{HOUR}", "s", 60_000, "q:t:1")
PLAN = f"""
local plan = {{now = {NOW}, at = '{NOW}', horizon = {NOW + 5000}, marks = args[1], events = {{}}, records = {{}}, staged = {{}},
  unstaged = {{}}, unreadable = {{}}, partitions = {{}}, needs = {{}}, needed = {{}}, late = {{}}}}
"""


@pytest.fixture(scope="module")
def client(redis_url: str) -> Iterator[Any]:
    with redis.Redis.from_url(redis_url) as c:
        yield c


@pytest.fixture
def keys(redis_prefix: str) -> Keys:
    return Keys(redis_prefix, "s0")


def test_a_page_ends_at_the_horizon_or_the_limit_and_tells_what_comes_next(client: Any, keys: Keys) -> None:
    client.zadd(keys.due(0), {A: NOW, B: NOW + 1, C: NOW + 9000})
    client.hset(keys.jobs(0), A, "a")
    client.hset(keys.runs, f"{B}:{NOW + 1}", "b")
    driver = f"return cjson.encode(claim_read('0', args[1], {NOW + 5000}))"
    whole = run_part_json(client, "claim_read", driver, 10, keys=keys)
    assert (whole["jobs"], whole["dues"], whole["runs"]) == ([A, B], [NOW, NOW + 1], [f"{A}:{NOW}", f"{B}:{NOW + 1}"])
    assert (whole["values"], whole["records"]) == (["a", False], [False, "b"])
    assert (whole["lowest"], whole["more"]) == (NOW + 9000, False)
    part = run_part_json(client, "claim_read", driver, 1, keys=keys)
    assert (part["jobs"], part["lowest"], part["more"]) == ([A], NOW + 1, True)
    client.zrem(keys.due(0), A, B, C)
    empty = run_part_json(client, "claim_read", driver, 1, keys=keys)
    assert (empty["jobs"], empty.get("lowest"), empty["more"]) == ({}, None, False)


@pytest.mark.parametrize(
    ("kind", "arg", "misfire", "due", "window", "verdict"),
    [
        ("e", f"{NOW},{HOUR}", "s", NOW, "", ["run", NOW + HOUR]),
        ("e", f"{NOW - 1},{HOUR}", "s", NOW, "", ["run", NOW + HOUR - 1]),
        ("e", f"{NOW},{HOUR}", "s", NOW - 60_000, "", ["run", NOW]),
        ("e", f"{NOW},{HOUR}", "s", NOW - 60_001, "", ["late"]),
        ("e", f"{NOW},{HOUR}", "s", NOW - 60_001, "10", ["run", NOW]),
        ("e", f"{NOW},{HOUR}", "s", NOW - 60_011, "10,1800000000000", ["late"]),
        # A one-off runs however late, unless its policy says skip or has a catch-up window.
        ("o", "1", "o", NOW - HOUR, "", ["run"]),
        ("o", "1", "a", NOW - HOUR, "", ["run"]),
        ("o", "1", "s", NOW - HOUR, "", ["late"]),
        ("o", "1", "O", NOW - HOUR, "", ["late"]),
        ("c", "S", "o", NOW, "", ["run", NOW + 7]),
        ("c", "S", "o", NOW + 7, "", ["run"]),
        ("c", "S", "o", NOW - HOUR, "9000000", ["unknown"]),
        ("c", "never seen", "o", NOW, "", ["unknown"]),
    ],
)
def test_a_due_job_runs_is_late_or_has_to_be_computed(
    client: Any, keys: Keys, kind: str, arg: str, misfire: str, due: int, window: str, verdict: list[Any]
) -> None:
    client.zadd(keys.occurrences("S"), {"from": NOW - 1000, str(NOW + 7): NOW + 7, "end": 2**53 - 1})
    head = {"kind": kind, "arg": arg, "misfire": misfire, "grace_ms": 60_000}
    driver = f"return cjson.encode({{claim_verdict(args[1], args[2], {NOW}, args[3])}})"
    assert run_part_json(client, "claim_verdict", driver, head, due, window, keys=keys) == verdict


def test_a_schedule_is_named_once_from_the_earliest_instant_that_is_needed(client: Any) -> None:
    driver = "local plan = {needs = {}, needed = {}} "
    driver += "for _, n in ipairs(args[1]) do claim_needs(plan, n[1], n[2], n[3]) end return cjson.encode(plan.needs)"
    asked = [["S", 5, A], ["T", 9, B], ["S", 3, C], ["S", 4, D]]
    assert run_part_json(client, "claim_needs", driver, asked) == ["S", "3", A, "T", "9", B]


def _plan(client: Any, keys: Keys, dues: dict[str, int], *, marks: bool = True) -> dict[str, Any]:
    client.zadd(keys.due(0), dues)
    before = {k: client.dump(k) for k in client.scan_iter(match=f"{keys.prefix}:*")}
    driver = PLAN + "claim_plan(plan, claim_read('0', 10, plan.horizon)) return cjson.encode(plan)"
    plan = run_part_json(client, "claim_read claim_plan", driver, marks, keys=keys)
    assert {k: client.dump(k) for k in client.scan_iter(match=f"{keys.prefix}:*")} == before
    return plan


def _events(plan: dict[str, Any]) -> list[Any]:
    events = plan["events"] or []
    return [unpack_event(events[i].encode(), events[i + 1].encode()) for i in range(0, len(events), 2)]


def test_a_claim_makes_the_run_and_moves_the_job_to_what_follows(client: Any, keys: Keys) -> None:
    client.hset(keys.jobs(0), A, EVERY_HOUR.pack() + "\n")
    plan = _plan(client, keys, {A: NOW})
    assert plan["staged"] == [str(NOW), f"{A}:{NOW}|q:t:1"]
    assert plan["partitions"] == [
        {"partition": "0", "advanced": [str(NOW + HOUR), A], "removed": {}, "lowest": NOW + HOUR}
    ]
    run, mark = _events(plan)
    assert (run.record.state, run.record.flags, run.record.due_at) == (RunState.QUEUED, "", NOW)
    # What is due after the horizon was not looked at, so that the watermark is the horizon's.
    assert mark == WatermarkEvent(0, NOW + 5000)


def test_a_last_occurrence_is_marked_and_its_job_leaves_the_due_set(client: Any, keys: Keys) -> None:
    client.hset(keys.jobs(0), A, EVERY_HOUR._replace(kind="o", arg=str(NOW), overlap="s").pack() + "\n")
    plan = _plan(client, keys, {A: NOW}, marks=False)
    assert unpack_run(plan["records"][1]).flags == "Ls"
    assert plan["staged"] == [str(NOW), f"{A}:{NOW}|q:t:1|s"]
    assert plan["partitions"] == [{"partition": "0", "advanced": {}, "removed": [A]}]
    assert [type(e).__name__ for e in _events(plan)] == ["RunEvent"]


def test_what_cannot_be_claimed_stays_due_leaves_or_is_quarantined(client: Any, keys: Keys) -> None:
    client.hset(
        keys.jobs(0),
        mapping={
            A: EVERY_HOUR._replace(kind="c", arg="S").pack() + "\n",
            B: EVERY_HOUR._replace(state=JobState.PAUSED).pack() + "\n",
            C: EVERY_HOUR._replace(arg=f"{NOW},0").pack() + "\n",
        },
    )
    plan = _plan(client, keys, {A: NOW, B: NOW + 1, C: NOW + 2, D: NOW + 3})
    assert plan["needs"] == ["S", str(NOW), A]
    [partition] = plan["partitions"]
    assert (partition["removed"], partition["lowest"]) == ([B, C, D], NOW)
    assert plan["unreadable"][::2] == [C, D]
    assert plan["unreadable"][3] == "due entry without definition"
    *_, mark = _events(plan)
    assert mark == WatermarkEvent(0, NOW)


def test_a_run_of_an_earlier_schedule_version_is_staged_anew_unless_it_was_released(client: Any, keys: Keys) -> None:
    old = RunRecord(RunState.QUEUED, 2**20 + 1, "old:t:0", 1, 0, 0, "", NOW, NOW, 0, "Lq")
    run, before = f"{A}:{NOW}", f"{A}:{NOW}|old:t:0|q"
    client.hset(keys.jobs(0), A, EVERY_HOUR.pack() + "\n")
    client.hset(keys.runs, run, old.pack())
    client.zadd(keys.staged, {before: NOW})
    plan = _plan(client, keys, {A: NOW})
    assert (plan["unstaged"], plan["staged"]) == ([before], [str(NOW), f"{run}|old:t:0"])
    assert unpack_run(plan["records"][1]) == old._replace(revision=2**21 + 1, schedule_version=2, flags="")
    client.zrem(keys.staged, before)
    plan = _plan(client, keys, {A: NOW})
    assert (plan["unstaged"], plan["staged"]) == ({}, {})
    assert unpack_run(plan["records"][1]).flags == "q"


def test_a_plan_is_written_whole_and_the_heads_tell_the_truth(client: Any, keys: Keys) -> None:
    client.zadd(keys.due(0), {A: NOW, B: NOW})
    client.zadd(keys.due(1), {C: NOW})
    client.zadd(keys.heads, {"0": NOW, "1": NOW})
    client.zadd(keys.staged, {"before": 1})
    partitions = [
        {"partition": "0", "advanced": [str(NOW + HOUR), A], "removed": [B], "lowest": NOW + HOUR},
        {"partition": "1", "advanced": [], "removed": [C]},
    ]
    plan = {
        "events": ["w", "0\n5"],
        "unreadable": [],
        "records": ["r", "x"],
        "staged": ["7", "after"],
        "unstaged": ["before"],
    }
    driver = "claim_write(args[1], '7') return '0'"
    run_part_json(client, "claim_write", driver, {**plan, "partitions": partitions}, keys=keys)
    assert client.zrange(keys.due(0), 0, -1, withscores=True) == [(A.encode(), float(NOW + HOUR))]
    assert not client.exists(keys.due(1))
    assert client.zrange(keys.heads, 0, -1, withscores=True) == [(b"0", float(NOW + HOUR))]
    assert client.zrange(keys.staged, 0, -1, withscores=True) == [(b"after", 7.0)]
    assert client.hgetall(keys.runs) == {b"r": b"x"}
    [(entry, fields)] = client.xrange(keys.journal)
    assert entry.startswith(b"7-")
    assert fields == {b"w": b"0\n5"}


def test_a_schedule_s_next_occurrence_is_known_only_where_its_cache_reaches(client: Any, keys: Keys) -> None:
    client.zadd(keys.occurrences("S"), {"from": 10, "20": 20, "30": 30})
    driver = "return cjson.encode({next_occurrence('S', args[1]) or 'unknown'})"
    found = [run_part_json(client, "next_occurrence", driver, at, keys=keys)[0] for at in (5, 10, 19, 20, 30)]
    assert found == ["unknown", 20, 20, 30, "unknown"]
    client.zadd(keys.occurrences("S"), {"end": 2**53 - 1})
    assert run_part(client, "next_occurrence", "return next_occurrence('S', 30)", keys=keys) == b"end"
