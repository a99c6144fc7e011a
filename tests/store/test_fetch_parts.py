"""The parts of fetch, each called alone: who is given how many runs, and what becomes of those that were picked."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import redis
from hypothesis import given
from hypothesis import strategies as st

from rsched.core.jobs.packed import JobHead, RunRecord, unpack_event, unpack_run
from rsched.core.states import JobState, RunState
from rsched.store.keys import Keys
from tests.store.lua_part import run_part, run_part_json

JOB = "j_0000000000000"
RUN = f"{JOB}:1700000000000"
HEAD = JobHead(JobState.ACTIVE, 3, 2, 1_600_000_000_000, "o", "1700000000000", "o", 0, "q:t:1")
RECORD = RunRecord(RunState.QUEUED, 2**21, "q:t:1", 2, 0, 0, "", 5, 6, 0, "L")


@pytest.fixture(scope="module")
def client(redis_url: str) -> Iterator[Any]:
    with redis.Redis.from_url(redis_url) as c:
        yield c


@pytest.fixture
def keys(redis_prefix: str) -> Keys:
    return Keys(redis_prefix, "s0")


def _shares(client: Any, sizes: list[int], take: int, time: int) -> tuple[int, list[int]]:
    driver = """
    local sizes, taken = {[0] = args[1][1], args[1][2], args[1][3]}, {[0] = 0, 0, 0}
    local given = priority_shares(sizes, taken, args[2], args[3])
    return cjson.encode({given, taken[0], taken[1], taken[2]})
    """
    given_, *taken = run_part_json(client, "priority_shares", driver, sizes, take, time)
    return given_, taken


@pytest.mark.parametrize(
    ("sizes", "take", "time", "taken"),
    [
        ([100, 100, 100], 64, 0, [56, 4, 4]),
        ([100, 100, 0], 64, 0, [56, 8, 0]),
        ([100, 0, 100], 64, 0, [56, 0, 8]),
        ([100, 100, 100], 8, 0, [7, 0, 1]),
        ([0, 100, 100], 16, 0, [0, 15, 1]),
        ([3, 2, 100], 64, 0, [3, 2, 59]),
        # A single slot is the lower priority's once in eight, by the team's virtual time.
        *(([9, 9, 9], 1, time, [1, 0, 0]) for time in range(7)),
        ([9, 9, 9], 1, 7, [0, 0, 1]),
        ([9, 9, 0], 1, 15, [0, 1, 0]),
        ([1, 0, 0], 5, 0, [1, 0, 0]),
        ([0, 0, 0], 5, 0, [0, 0, 0]),
    ],
)
def test_a_team_s_runs_are_divided_by_priority_with_a_floor_for_the_lower_ones(
    client: Any, sizes: list[int], take: int, time: int, taken: list[int]
) -> None:
    assert _shares(client, sizes, take, time) == (sum(taken), taken)


@given(st.lists(st.integers(0, 50), min_size=3, max_size=3), st.integers(1, 120), st.integers(0, 20))
def test_no_slot_is_left_while_a_priority_has_runs(client: Any, sizes: list[int], take: int, time: int) -> None:
    number, taken = _shares(client, sizes, take, time)
    assert number == sum(taken) == min(take, sum(sizes))
    assert all(0 <= t <= s for t, s in zip(taken, sizes, strict=True))


def _fair(client: Any, teams: dict[str, tuple[int, int]], slots: int, visits: int) -> tuple[dict[str, int], list[int]]:
    """Teams by name: (virtual time, runs of the highest priority)."""
    driver = """
    local teams = {}
    for name, team in pairs(args[1]) do
      teams[#teams + 1] = {team = name, time = team[1], sizes = {[0] = team[2], 0, 0}, total = team[2],
        taken = {[0] = 0, 0, 0}, given = 0}
    end
    local slots, visits, clock = fair_shares(teams, args[2], args[3])
    local given = {}
    for _, team in ipairs(teams) do
      given[team.team] = team.given
      assert(team.taken[0] == team.given and team.time == args[1][team.team][1] + team.given)
    end
    return cjson.encode({given, {slots, visits, clock}})
    """
    given_, rest = run_part_json(client, "fair_shares", driver, teams, slots, visits)
    return given_, rest


def test_slots_go_round_among_teams_and_what_one_cannot_use_the_others_get(client: Any) -> None:
    given_, (slots, _, _) = _fair(client, {"a": (0, 100), "b": (0, 100), "c": (0, 1)}, 21, 200)
    assert (given_, slots) == ({"a": 10, "b": 10, "c": 1}, 0)


def test_the_team_that_had_the_least_comes_first_and_the_clock_is_the_latest_that_was_given_something(
    client: Any,
) -> None:
    assert _fair(client, {"a": (5, 9), "b": (0, 9)}, 3, 200) == ({"a": 1, "b": 2}, [0, 198, 5])
    assert _fair(client, {"a": (5, 9), "b": (0, 9)}, 1, 200) == ({"a": 0, "b": 1}, [0, 198, 0])


def test_no_more_teams_are_visited_than_may_be(client: Any) -> None:
    given_, (slots, visits, _) = _fair(client, {"a": (0, 9), "b": (0, 9), "c": (0, 9)}, 9, 2)
    assert (given_, slots) == ({"a": 3, "b": 3, "c": 0}, 3)
    assert visits <= 0


@given(
    st.dictionaries(st.sampled_from("abcdefgh"), st.tuples(st.integers(0, 30), st.integers(0, 40)), max_size=8),
    st.integers(0, 100),
)
def test_all_slots_are_used_as_long_as_there_is_work(
    client: Any, teams: dict[str, tuple[int, int]], slots: int
) -> None:
    given_, (left, _, _) = _fair(client, teams, slots, 10_000) if teams else ({}, (slots, 0, 0))
    work = sum(size for _, size in teams.values())
    assert sum(given_.values()) == min(slots, work) == slots - left


def test_a_queue_is_read_by_virtual_time_up_to_as_many_teams_as_are_wanted(client: Any, keys: Keys) -> None:
    client.zadd(keys.ready("q"), {"b": 1, "a": 7, "c": 9})
    for queue_key, count in (("q:a:0", 1), ("q:a:2", 2), ("q:b:1", 3)):
        for _ in range(count):
            client.xadd(keys.queue(queue_key), {"r": RUN})
    driver = """
    local teams = fetch_read('q', 2)
    local out = {}
    for _, t in ipairs(teams) do out[#out + 1] = {t.team, t.time, t.sizes[0], t.sizes[1], t.sizes[2], t.total, t.given} end
    return cjson.encode(out)
    """
    assert run_part_json(client, "fetch_read", driver, keys=keys) == [["b", 1, 0, 3, 0, 3, 0], ["a", 7, 1, 0, 2, 3, 0]]
    assert run_part(client, "fetch_read", "return #fetch_read('q', false)", keys=keys) == 0
    client.set(keys.virtual("q"), "a text")
    with pytest.raises(redis.ResponseError, match="WRONGTYPE"):
        run_part(client, "fetch_read", "return #fetch_read('q', false)", keys=keys)


def test_entries_are_taken_from_the_front_of_each_stream_and_a_team_without_more_work_leaves(
    client: Any, keys: Keys
) -> None:
    client.zadd(keys.ready("q"), {"a": 4, "b": 6})
    ids = [client.xadd(keys.queue("q:a:0"), {"r": f"a{i}"}) for i in range(3)]
    client.xadd(keys.queue("q:b:1"), {"r": "b0"})
    driver = """
    local plan = {picks = {}, drains = {}, charged = {}, done = {}, clocks = {}, swept = false}
    local a = {team = 'a', time = 6, sizes = {[0] = 3, 0, 0}, total = 3, taken = {[0] = 2, 0, 0}, given = 2}
    local b = {team = 'b', time = 7, sizes = {[0] = 0, 1, 0}, total = 1, taken = {[0] = 0, 1, 0}, given = 1}
    fetch_take(plan, 'q', {a, b}, 6)
    return cjson.encode(plan)
    """
    plan = run_part_json(client, "fetch_take", driver, keys=keys)
    assert plan["picks"] == ["a0", "a1", "b0"]
    assert plan["drains"] == [
        {"stream": keys.queue("q:a:0"), "last": ids[1].decode(), "whole": False, "count": 2},
        {"stream": keys.queue("q:b:1"), "last": plan["drains"][1]["last"], "whole": True, "count": 1},
    ]
    assert (plan["charged"], plan["done"], plan["clocks"]) == ([["q", "a", "6"]], [["q", "b", "7"]], [["q", "6"]])
    assert not plan["swept"]


def _verdict(client: Any, run: str, record: RunRecord, head: JobHead | None) -> tuple[str, str]:
    driver = "local head = ARGV[3] ~= '' and head_parse(ARGV[3]) or nil "
    driver += "local state, why = fetch_verdict(ARGV[1], run_parse(ARGV[2]), head) return {state, why}"
    value = head.pack() + "\n" if head else ""
    state, why = run_part(client, "fetch_verdict run_parse head_parse", driver, run, record.pack(), value)
    return state.decode(), why.decode()


def test_a_run_starts_unless_its_job_or_its_own_cancel_says_otherwise(client: Any) -> None:
    newer = HEAD._replace(schedule_version=3)
    assert _verdict(client, RUN, RECORD, HEAD) == ("R", "")
    assert _verdict(client, RUN, RECORD, None) == ("C", "the job has no definition")
    assert _verdict(client, RUN, RECORD, HEAD._replace(state=JobState.DELETED)) == ("C", "the job was deleted")
    assert _verdict(client, RUN, RECORD._replace(flags="X"), HEAD) == ("C", "cancelled before it started")
    assert _verdict(client, RUN, RECORD, newer) == ("K", "withdrawn by an edit")
    assert _verdict(client, RUN, RECORD, newer._replace(state=JobState.PAUSED)) == ("K", "paused")
    # What was due before the change stands, and so does what was asked for by hand.
    assert _verdict(client, RUN, RECORD, newer._replace(schedule_changed_at=1_700_000_000_000)) == ("R", "")
    assert _verdict(client, RUN, RECORD._replace(flags="M"), newer) == ("R", "")


_PLAN = """
local plan = {at = '1000', again = '2000', lease_end = '9000', worker = 'w', fence = 76, picks = args[1],
  events = {}, records = {}, leases = {}, given = {}, gone = {}, last = {}, unreadable = {}, staged = {}, retries = {},
  starts = {}, replies = {}, freed = {}, payloads = {}}
fetch_plan(plan)
return cjson.encode(plan)
"""


def test_what_was_picked_is_planned_by_its_record_and_nothing_is_written(client: Any, keys: Keys) -> None:
    ended, unreadable = f"{JOB}:1", f"{JOB}:2"
    client.hset(keys.jobs(0), JOB, HEAD.pack() + "\nbody")
    client.hset(keys.runs, mapping={RUN: RECORD.pack(), unreadable: "what?"})
    before = _snapshot(client, keys)
    plan = run_part_json(client, "fetch_plan", _PLAN, [RUN, ended, RUN, unreadable], keys=keys)
    assert _snapshot(client, keys) == before
    assert (plan["given"], plan["leases"], plan["starts"], plan["fence"]) == ([RUN], ["9000", RUN], {"q": 1}, 77)
    record = unpack_run(plan["records"][1])
    assert record == RECORD._replace(
        state=RunState.RUNNING, revision=RECORD.revision + 1, attempt=1, fence=77, worker="w", started_at=1000
    )
    assert plan["replies"] == [RUN, "1", "77", "6", "L", HEAD.pack() + "\nbody", ""]
    assert (plan["gone"], plan["unreadable"]) == ([unreadable], [unreadable, "what?"])
    # Those that wait for the one that cannot be read go on, whatever its policy was.
    assert plan["freed"] == {JOB: [unreadable]}
    events = plan["events"]
    pairs = [unpack_event(events[i].encode(), events[i + 1].encode()) for i in range(0, len(events), 2)]
    assert [type(e).__name__ for e in pairs] == ["RunEvent", "QuarantineEvent"]


@pytest.mark.parametrize("state", [RunState.QUEUED, RunState.RETRYING])
def test_a_run_whose_definition_is_still_being_restored_comes_again_as_it_is(
    client: Any, keys: Keys, state: RunState
) -> None:
    client.hset(keys.runs, RUN, RECORD._replace(state=state, flags="Ls").pack())
    client.hset(keys.restore, "phase", "jobs")
    plan = run_part_json(client, "fetch_plan", _PLAN, [RUN], keys=keys)
    staged = ["2000", f"{RUN}|q:t:1|s"] if state == RunState.QUEUED else {}
    retries = ["2000", f"{RUN}|q:t:1"] if state == RunState.RETRYING else {}
    assert (plan["staged"], plan["retries"], plan["events"], plan["gone"]) == (staged, retries, {}, {})
    client.hset(keys.restore, "phase", "done")
    plan = run_part_json(client, "fetch_plan", _PLAN, [RUN], keys=keys)
    assert (plan["staged"], plan["retries"], plan["gone"]) == ({}, {}, [RUN])


def test_a_repeated_request_gives_what_still_runs_with_a_fresh_lease(client: Any, keys: Keys) -> None:
    running = RECORD._replace(state=RunState.RUNNING, worker="w", attempt=1, fence=77)
    other = f"{JOB}:2"
    client.hset(keys.jobs(0), JOB, HEAD.pack() + "\nbody")
    client.hset(keys.runs, mapping={RUN: running.pack(), other: running._replace(worker="another").pack()})
    client.hset(keys.requests, "w", f"5 {RUN} {other}")
    driver = "return fetch_repeat('w', ARGV[1], '9000') or 'no'"
    assert run_part(client, "fetch_repeat", driver, "4", keys=keys) == b"no"
    given_ = run_part(client, "fetch_repeat", driver, "5", keys=keys)
    assert given_[:3] == [RUN.encode(), b"1", b"77"]
    assert len(given_) == 7
    assert client.zrange(keys.leases, 0, -1, withscores=True) == [(RUN.encode(), 9000.0)]


def test_a_stream_is_cut_behind_what_was_taken_and_virtual_times_move(client: Any, keys: Keys) -> None:
    stream, whole = keys.queue("q:a:0"), keys.queue("q:b:0")
    client.xgroup_create(stream, "workers", "0", mkstream=True)
    ids = [client.xadd(stream, {"r": f"a{i}"}).decode() for i in range(3)]
    client.xadd(whole, {"r": "b0"})
    client.zadd(keys.ready("q"), {"a": 4, "b": 6})
    client.zadd(keys.virtual("q"), {"": 3, "c": 5, "d": 90})
    plan = {
        "worker": "w",
        "drains": [
            {"stream": stream, "last": ids[1], "whole": False, "count": 2},
            {"stream": whole, "last": "1-1", "whole": True, "count": 1},
        ],
        "charged": [["q", "a", "6"]],
        "done": [["q", "b", "7"]],
        "clocks": [["q", "6"]],
    }
    run_part_json(client, "fetch_write_queues", "fetch_write_queues(args[1]) return '0'", plan, keys=keys)
    assert [entry[0].decode() for entry in client.xrange(stream)] == ids[2:]
    assert client.xinfo_groups(stream)[0]["last-delivered-id"].decode() == ids[1]
    assert not client.exists(whole)
    assert client.zrange(keys.ready("q"), 0, -1, withscores=True) == [(b"a", 6.0)]
    # c is not ahead of the queue's time, where it starts anyway.
    assert dict(client.zrange(keys.virtual("q"), 0, -1, withscores=True)) == {b"": 6.0, b"b": 7.0, b"d": 90.0}


def _snapshot(client: Any, keys: Keys) -> dict[bytes, bytes]:
    return {key: client.dump(key) for key in client.scan_iter(match=f"{keys.prefix}:*")}
