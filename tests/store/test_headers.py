"""The scripts' headers say what the scripts do, and both sides of the store read the same."""

from __future__ import annotations

import re
from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rsched.core.ids import JobId, RunId, WorkerId, run_id_of
from rsched.core.jobs.packed import OPTIONAL_FIELDS, JobHead, RunRecord, pack_note, unpack_head, unpack_run
from rsched.core.schedule.misfire import MisfireOutcome
from rsched.core.states import MOVES, RUN_STATE_OF_CODE, JobState, RunState
from rsched.runtime.clock import SystemClock
from rsched.store.catchup import CatchupRange
from rsched.store.connection import Connection, connect
from rsched.store.jobs import PutItem
from rsched.store.keys import Keys
from rsched.store.restore import RestoreProgress
from rsched.store.run_repair import SeenRun
from rsched.store.run_values import FinishItem, MisfireItem, ReapItem
from rsched.store.scripts import SECTIONS, compose, load, lua_folder, verb_file, verbs
from rsched.store.store import Store
from tests.store.lua_part import run_part
from tests.support.release_window import release_at

LUA = lua_folder()
SOURCES = {v: verb_file(v).read_text() for v in verbs()}
LIB = {f.stem: f.read_text() for f in (LUA / "lib").glob("*.lua")}
TABLES = re.findall(r"^local (\w+) = \{", LIB["codes"], re.MULTILINE)
INCLUDE = re.compile(r"^--include (\w+)$", re.MULTILINE)
J, R, WK = JobId("j_0000000000000"), RunId("j_0000000000000:1"), WorkerId("w")


def code(text: str) -> str:
    return "\n".join(re.sub(r"--.*$", "", line) for line in text.split("\n"))


def calls(text: str) -> set[str]:
    stripped = re.sub(r"'[^'\n]*'", "''", code(text))
    names = {"codes"} if re.search(rf"(?<![\w.])({'|'.join(TABLES)})\.\w", stripped) else set()
    return names | {n for n in LIB if re.search(rf"(?<![\w.:]){n}\(", re.sub(rf"function {n}\(", "", stripped))}


@pytest.mark.parametrize("verb", verbs())
def test_a_header_names_all_sections_and_a_promise(verb: str) -> None:
    header = load(verb).header
    assert header.promise
    assert len(SECTIONS) == 5
    for section in SECTIONS:
        assert re.search(rf"^-- {section}\b", SOURCES[verb], re.MULTILINE), section
    assert header.keys[0] == "shard"


@pytest.mark.parametrize("verb", verbs())
def test_every_tag_that_a_script_returns_is_in_its_header(verb: str) -> None:
    source = load(verb).source
    returned = set(re.findall(r"return \{'(\w+)'", source))
    assert returned <= set(load(verb).header.tags)
    assert "ok" in returned
    if "guard" in INCLUDE.findall(SOURCES[verb]):
        assert {"closed", "stale_generation"} <= set(load(verb).header.tags)


@pytest.mark.parametrize("verb", verbs())
def test_every_tag_of_an_item_is_in_its_header(verb: str) -> None:
    reply = re.search(r"^-- REPLY(.*?)^-- COST", SOURCES[verb], re.MULTILINE | re.DOTALL)
    assert reply is not None
    for tag in re.findall(r"tags?(?:\[[^]]+\])? = (?:.* and )?'(\w+)'", code(SOURCES[verb])):
        assert re.search(rf"\b{tag}\b", reply[1]), tag


def test_the_moves_of_all_headers_are_the_table_of_moves() -> None:
    headers = {(v, s, t) for v in verbs() for s, t in load(v).header.moves}
    table = {(m.verb, "none" if m.source is None else m.source.value, m.target.value) for m in MOVES}
    assert headers == table


@pytest.mark.parametrize("verb", verbs())
def test_the_keys_of_a_header_are_those_its_source_builds(verb: str) -> None:
    source = load(verb).source
    built = set(re.findall(r"\bkey\('(\w+)'", source)) | set(re.findall(r"journal\('(\w+)'", source))
    built |= {"staged", "retries"} if "key(set)" in source else set()
    known = {k for k in built if k != "quarantine" or "quarantine" in source} - {"shard"}
    assert known - set(load(verb).header.keys) == set()


def test_includes_have_no_duplicates_and_no_cycles_and_none_is_missing_or_unused() -> None:
    for name, text in {**SOURCES, **LIB}.items():
        included = INCLUDE.findall(text)
        assert len(included) == len(set(included)), name
        assert set(included) <= LIB.keys(), name
    for verb in verbs():
        compose(LUA, verb)  # raises on a cycle
    reached = {n for t in SOURCES.values() for n in INCLUDE.findall(t)} | {
        n for t in LIB.values() for n in INCLUDE.findall(t)
    }
    assert reached == LIB.keys()


@pytest.mark.parametrize("name", [*SOURCES, *(f"lib/{n}" for n in LIB)])
def test_what_a_file_calls_it_includes(name: str) -> None:
    text = LIB[name[4:]] if name.startswith("lib/") else SOURCES[name]

    def closure(included: set[str]) -> set[str]:
        more = {n for i in included for n in INCLUDE.findall(LIB[i])} - included
        return closure(included | more) if more else included

    direct = set(INCLUDE.findall(text))
    used = calls(text)
    assert used - {name.removeprefix("lib/")} <= closure(direct)
    needless = {i for i in direct if i not in used}
    assert not needless


def test_keys_have_the_same_shape_in_python_and_lua() -> None:
    prelude = LIB["key"]
    kinds = {k for v in verbs() for k in load(v).header.keys}
    python = {"q": "queue", "shard": "marker"}
    assert all(hasattr(Keys, python.get(k, k)) for k in kinds)
    assert "string.sub(KEYS[1], 1, -6)" in prelude


class _Captured(Exception):
    pass


async def _capture(store: Any, call: Any) -> tuple[str, list[Any]]:
    seen: list[Any] = []

    async def run(verb: str, argv: list[Any]) -> Any:
        seen[:] = [verb, argv]
        raise _Captured

    store.connection.run, store.connection.generation = run, "7"
    with pytest.raises(_Captured):
        await call
    return seen[0], seen[1]


@pytest.mark.anyio
async def test_every_script_has_a_method_that_calls_it_with_its_own_arguments(redis_url: str) -> None:
    s = Store(Connection(connect(redis_url), Keys("x", "s0"), SystemClock()))
    paid = CatchupRange(J, 1, 2, 1, "", 3, 5)
    all_calls = [
        s.jobs.put([PutItem(J, 0, 1, b"v")], atomic=True),
        s.jobs.pause(J),
        s.jobs.resume(J, expect=1, due=2, missed=MisfireOutcome(ahead=(3,))),
        s.jobs.remove(J),
        s.jobs.invalidate(J, schedule_version=1),
        s.jobs.trigger(J, suffix="aaaa", repeat_key=""),
        s.runs.cancel(R),
        s.partitions.acquire("s", lease_ms=1, take=[1], give=[2]),
        s.runs.claim("s", horizon_ms=1, limit=1, partitions=[(0, 0)]),
        s.partitions.cache_occurrences("S", after=1, occurrences=[2], ended=True),
        s.runs.resolve_misfires([MisfireItem(J, 1, 1, None, 1, 0, 0, 0, None)]),
        s.catchup.enqueue(paid, occurrences=[1], rest=None, pace_ms=1, most=9),
        s.runs.release(limit=1),
        s.runs.expired_leases(after_ms=0, limit=1),
        s.runs.reap([ReapItem(R, 1, "D", 0)], after_ms=0),
        s.runs.fetch(WK, request=1, slots=1, lease_ms=1, queues=["q"]),
        s.runs.finish(WK, request=1, items=[FinishItem(R, 1, RunState.DEAD, 0, 0, "e")]), s.runs.requeue(WK, [(R, 1)]),
        s.runs.renew(WK, lease_ms=1, items=[(R, 1)]), s.runs.adopt(WK, lease_ms=1, queues=["q"], items=[(R, 1, 1)]),
        s.recovery.begin(1, fence=1),
        s.recovery.close(),
        s.recovery.restage(0, lease_ms=1),
        s.recovery.finish(recovery_grace_ms=1),
        s.restore.put_jobs([(J, 1, b"v")]),
        s.restore.put_runs([(R, "r")], lease_ms=1),
        s.jobs.forget([(J, 1)]),
        s.jobs.backfill(J, schedule_version=1, ranges=[(1, 2)]),
        s.calendars.put("t", "n", expect=0, entries=["2026-12-25"]), s.restore.put_catchup_ranges([paid]),
        s.restore.put_triggers([(J, "k", 1)], generation=7),
        s.run_repair.check_records(0, count=1, lease_ms=1, write=True),
        s.run_repair.check_queued([(SeenRun(R, b"r", "queue", ""), False)], write=True),
        s.run_repair.put_back([(R, b"", "r", b"")], lease_ms=1), s.run_repair.drop([(R, b"r")]),
        s.run_repair.check_entries("staged", 0, count=1, write=True),
        s.run_repair.check_leftovers("payloads", 0, count=1, silent_ms=1, write=True),
        s.job_repair.check_due_times(0, 0, count=1, write=True),
        s.job_repair.check_pauses(0, count=1, write=True),
        s.job_repair.set_missing_due_times([(J, b"h", 1)]),
        s.job_repair.quarantine([(0, b"j", b"v")]),
        s.job_repair.journal_again([(J, 1)]),
        s.run_repair.check_queue("q:t:1", "-", count=1, write=True),
        s.run_repair.check_ready_teams("q", 0, count=1, write=True),
        s.run_repair.check_active_runs(J, 0, count=1, write=True),
        s.reconciliation.inspect_occurrences("S"),
        s.restore.move_due_times([(J, 1, 1, None)]), s.restore.set_progress(RestoreProgress("jobs", 1, 0, 1, 0, 1)),
        s.recovery.set_load_level(1),
        s.job_repair.drop_occurrences("S", digest="d"),
        s.partitions.read_due_groups(0, skip=0, until_ms=1, limit=1),
    ]  # fmt: skip
    called = set()
    for call in all_calls:
        verb, argv = await _capture(s, call)
        header = load(verb).header
        called.add(verb)
        assert (len(argv) - len(header.scalars)) in (len(header.group), 2 * len(header.group))
        for (name, kind), value in zip(header.scalars, argv, strict=False):
            assert kind != "int" or isinstance(value, int), (verb, name)
    assert called == set(verbs())
    await s.connection.client.aclose()


def test_wrong_arguments_are_refused_before_redis_is_asked() -> None:
    with pytest.raises(TypeError):
        load("pause").argv({"generation": "1", "job": "j"})
    with pytest.raises(TypeError):
        load("forget").argv({"generation": "1"}, [("j",)])


big = st.integers(0, 2**53 - 1)
slug = st.from_regex(r"[a-z0-9][a-z0-9_-]{0,9}", fullmatch=True)
queue_keys = st.builds("{}:{}:{}".format, slug, slug, st.integers(0, 2))
heads = st.builds(
    JobHead, st.sampled_from(JobState), big, big, big, st.sampled_from("oec"), st.from_regex(r"[a-z0-9,-]{0,20}", fullmatch=True),
    st.sampled_from("oasOAS"), big, queue_keys, big, st.sampled_from([0, 300_000]), big, st.sampled_from(["", "s", "k"]), big,
    st.sampled_from(["", "o", "a"]), st.text(max_size=20),
).map(lambda h: h if h.window_ms else h._replace(end_ms=0))  # fmt: skip
small = st.integers(0, 10**9)
runs = st.builds(
    RunRecord, st.sampled_from(RunState), big, queue_keys, small, small, big, slug, big, big, big,
    st.from_regex(r"[LMX]{0,3}", fullmatch=True),
)  # fmt: skip


@pytest.fixture(scope="module")
def client(redis_url: str) -> Any:
    import redis

    with redis.Redis.from_url(redis_url) as c:
        yield c


@given(heads)
def test_a_job_head_goes_through_lua_unchanged(client: Any, head: JobHead) -> None:
    value = head.pack().encode() + b"\nbody"
    back = run_part(client, "head_parse head_pack", "return head_pack(head_parse(ARGV[1]))", value)
    assert back == value
    assert unpack_head(back) == head
    driver = "local head = head_parse(ARGV[1]) optional_write(head, optional_parse(head)) return head_pack(head)"
    assert run_part(client, "head_parse head_pack optional_parse optional_write", driver, value) == value


@given(heads)
def test_lua_and_python_read_the_same_optional_fields_of_a_head(client: Any, head: JobHead) -> None:
    returned = ", ".join(f"optional.{name}" for name in OPTIONAL_FIELDS)
    driver = f"local optional = optional_parse(head_parse(ARGV[1])) return {{{returned}}}"
    window = f"{head.window_ms},{head.end_ms}" if head.end_ms else str(head.window_ms or "")
    assert [v.decode() for v in run_part(client, "head_parse optional_parse", driver, head.pack() + "\nbody|x")] == [
        str(head.paused_from or ""), window, head.overlap, str(head.until or ""), head.missed, pack_note(head.note),
        str(head.keeps or ""),
    ]  # fmt: skip


def test_optional_fields_of_a_later_release_stay_when_an_earlier_one_writes_a_head(client: Any) -> None:
    head = JobHead(JobState.ACTIVE, 1, 1, 0, "o", "5", "o", 0, "q:t:1").pack() + "||||||||new|newer\nbody"
    driver = "local head = head_parse(ARGV[1]) local optional = optional_parse(head) optional.note = 'n' "
    driver += "optional_write(head, optional) return head_pack(head)"
    written = run_part(client, "head_parse head_pack optional_parse optional_write", driver, head)
    assert written.decode() == head.replace("||||||||new", "||||||n||new")


@given(st.integers(0, 2**41), st.integers(0, 86_400_000), st.integers(0, 86_400_000) | st.none())
def test_lua_and_python_release_a_run_at_the_same_point_of_its_window(
    client: Any, due: int, window: int, gap: int | None
) -> None:
    run = run_id_of(J, due)
    body = "return string.format('%.0f', release_at(ARGV[1], tonumber(ARGV[2]), ARGV[3], tonumber(ARGV[4])))"
    for end in (None, due + 1, due + window // 2 + 1):
        packed = str(window) if end is None else f"{window},{end}"
        argv = (run, due, packed if window else "", "" if gap is None else due + gap)
        following = None if gap is None else due + gap
        wanted = release_at(run, due, window_ms=window, following=following, end_ms=end if window else None)
        assert int(run_part(client, "release_at", body, *argv)) == wanted


@given(runs)
def test_a_run_record_goes_through_lua_unchanged(client: Any, run: RunRecord) -> None:
    back = run_part(client, "run_parse run_pack", "return run_pack(run_parse(ARGV[1]))", run.pack())
    assert back.decode() == run.pack()
    assert unpack_run(back.decode()) == run


def _taken_by_lua(client: Any, value: str) -> bool:
    return bool(run_part(client, "run_parse", "return run_parse(ARGV[1]) and 1 or 0", value))


def _taken_by_python(value: str) -> bool:
    try:
        unpack_run(value)
    except (ValueError, KeyError):
        return False
    return True


@given(runs, st.lists(st.text("abc|019", max_size=5), max_size=3))
def test_both_sides_take_a_run_record_with_fields_of_a_later_release(
    client: Any, run: RunRecord, more: list[str]
) -> None:
    value = "|".join([run.pack(), *more])
    assert _taken_by_lua(client, value)
    assert unpack_run(value) == run


JUNK = ("", "x", "-1", "1.5", " 7", "1e3", "0x1f", "٣", "é", "a|b", "\n")


@given(runs)
@settings(max_examples=10, deadline=None)
def test_what_lua_takes_for_a_run_record_python_does_too(client: Any, run: RunRecord) -> None:
    fields = run.pack().split("|")
    for place, junk in product(range(11), JUNK):
        # A state of a later release has the shape of one: scripts match it against those that they know.
        if (place, junk) == (1, "x"):
            continue
        value = "|".join([*fields[:place], junk, *fields[place + 1 :]])
        assert _taken_by_python(value) or not _taken_by_lua(client, value)


@given(runs, st.integers(0, 10))
def test_neither_side_takes_a_run_record_that_was_cut_short(client: Any, run: RunRecord, kept: int) -> None:
    value = "|".join(run.pack().split("|")[:kept])
    assert not _taken_by_lua(client, value)
    assert not _taken_by_python(value)


def _known_state(record: str) -> bool:
    return record.split("|")[1] in RUN_STATE_OF_CODE
