from __future__ import annotations

import json
from typing import Any

import pytest

from rsched.core.errors import Invalid
from rsched.core.jobs.validate import parse_job
from tests.api.world import job


def fields(body: Any) -> list[str]:
    with pytest.raises(Invalid) as caught:
        parse_job(body if isinstance(body, bytes) else json.dumps(body).encode())
    assert all(e.message for e in caught.value.errors)
    return [e.field for e in caught.value.errors]


def cron(**changes: Any) -> dict[str, Any]:
    return job(schedule={"cron": "0 2 * * *", "timezone": "Asia/Kolkata"} | changes)


def http(**changes: Any) -> dict[str, Any]:
    return job(target={"type": "http", "url": "https://host/path"} | changes)


def test_a_minimal_job_has_the_defaults() -> None:
    spec = parse_job(json.dumps(job()).encode())
    assert (spec.team, spec.priority, spec.timeout_s, spec.retry.max_attempts) == ("default", "normal", 60, 3)


@pytest.mark.parametrize("name", ["a/b", "a:b", 'it\'s "quoted"', "🙂 emoji", "x" * 200, " ", "日本"])
def test_a_name_is_free_text(name: str) -> None:
    assert parse_job(json.dumps(job(name=name)).encode()).name == name


@pytest.mark.parametrize(
    ("body", "field"),
    [
        (job(surprise=1), "surprise"),
        (job(schedule={"cron": "* * * * *", "zone": "UTC"}), "schedule.zone"),
        ({"schedule": {"delay": 1}}, "target"),
        (job(target={"type": "http"}), "target.url"),
        (job(target={"type": "carrier-pigeon"}), "target.type"),
        (job(target={"url": "https://host"}), "target.type"),
        (job(timeout_s="60"), "timeout_s"),
        (job(timeout_s=0), "timeout_s"),
        (job(timeout_s=86_401), "timeout_s"),
        (job(name=""), "name"),
        (job(name="x" * 10_240), "name"),
        (job(name="a\nb"), "name"),
        (job(name="a\0b"), "name"),
        (job(name="j_0123456789abc"), "name"),
        (job(team="Ünïcode"), "team"),
        (job(team="a:b"), "team"),
        (job(tags=["fine", "not fine"]), "tags[1]"),
        (job(tags=["a", "a"]), "tags[1]"),
        (job(tags=["a", 1]), "tags[1]"),
        (job(tags=[f"t{i}" for i in range(33)]), "tags"),
        (job(priority="urgent"), "priority"),
        (job(retry={"max_attempts": 0}), "retry.max_attempts"),
        (job(retry={"max_attempts": 10**30}), "retry.max_attempts"),
        (job(retry={"factor": 0.5}), "retry.factor"),
        (job(retry={"base": "soon"}), "retry.base"),
        (job(retry={"cap": "8d"}), "retry.cap"),
        (job(misfire={"grace": -1}), "misfire.grace"),
        (job(misfire={"catchup_window": "soon"}), "misfire.catchup_window"),
        (job(misfire={"catchup_window": "59s"}), "misfire.catchup_window"),
        (job(misfire={"grace": "2h", "catchup_window": "1h"}), "misfire.catchup_window"),
        (job(overlap="sometimes"), "overlap"),
        (cron(cron="61 * * * *"), "schedule.cron"),
        (cron(cron="0 2 * * *\0"), "schedule.cron"),
        (cron(timezone="Mars/Base"), "schedule.timezone"),
        (cron(second=60), "schedule.second"),
        (cron(second=1.5), "schedule.second"),
        (cron(year=1), "schedule.year"),
        (cron(year=True), "schedule.year"),
        (cron(dst={"gap": "jump"}), "schedule.dst.gap"),
        (cron(dst={"gaps": "skip"}), "schedule.dst.gaps"),
        (cron(exclude=["2026-12-25", "2027-02-29"]), "schedule.exclude[1]"),
        (cron(exclude="2026-12-25/2026-12-24"), "schedule.exclude"),
        (cron(exclude=["a\0"]), "schedule.exclude[0]"),
        (cron(exclude=[20261225]), "schedule.exclude[0]"),
        (cron(start="2026-12-25"), "schedule.start"),
        (cron(start="2026-12-25T00:00:00Z", end="2026-12-25T01:00:00+01:00"), "schedule.end"),
        (cron(max_runs=0), "schedule.max_runs"),
        (cron(max_runs="3"), "schedule.max_runs"),
        (cron(window="2d"), "schedule.window"),
        (cron(window=0), "schedule.window"),
        (cron(anchor="2026-12-25T00:00:00Z"), "schedule.anchor"),
        (job(schedule={"delay": 1, "exclude": "2026-12-25"}), "schedule.exclude"),
        (job(schedule=None), "schedule"),
        (job(schedule=None, schedules=[]), "schedule"),
        (job(schedules=[{"delay": 1}]), "schedules"),
        (job(schedule=None, schedules=[{"delay": 1}] * 33), "schedules"),
        (job(schedule=None, schedules=[{"delay": 1}, {}]), "schedules[1]"),
        (job(schedule=None, schedules=[{"delay": 1}, {"every": "x"}]), "schedules[1].every"),
        (job(schedule=None, schedules=[{"delay": 1}, {"zone": "UTC"}]), "schedules[1].zone"),
        (job(schedule=None, schedules=[{"delay": 1, "window": 5}, {"delay": 2, "window": 6}]), "schedules[1].window"),
        (job(schedule={"delay": "a century and more"}), "schedule.delay"),
        (job(schedule={"delay": "40000d"}), "schedule.delay"),
        (job(payload={"deep": {"n": 2**70}}), "payload.deep.n"),
        (job(payload=["a", "b\0"]), "payload[1]"),
        (http(url="ftp://host/"), "target.url"),
        (http(url="/relative"), "target.url"),
        (http(url="https://"), "target.url"),
        (http(url="https://host:99999/"), "target.url"),
        (http(url="https://[::1/"), "target.url"),
        (http(url="https://host/a b"), "target.url"),
        (http(url="https://host/\r\nX: y"), "target.url"),
        (http(headers={"X": "a\r\nEvil: 1"}), "target.headers.X"),
        (http(headers={"a b": "c"}), "target.headers.a b"),
        (http(headers={"Idempotency-Key": "mine"}), "target.headers.Idempotency-Key"),
        (http(headers={"x-rsched-fence": "1"}), "target.headers.x-rsched-fence"),
        (http(headers={"X": "1", "x": "2"}), "target.headers.x"),
        (http(headers={"X": 1}), "target.headers.*"),
        (job(target={"type": "function", "function": "f", "queue": "http"}), "target.queue"),
        (job(target={"type": "function", "function": ""}), "target.function"),
        (b"", ""),
        (b"not json", ""),
        (b"[]", ""),
        (b"\xff\xfe", ""),
        (b'{"payload": NaN}', ""),
        (b'{"payload": ' + b"[" * 100_000, ""),
        (b'{"payload": "\\ud800"}', ""),
        (b'{"payload": 1e999}', "payload"),
    ],
)
def test_what_cannot_stand_is_refused_under_its_field(body: Any, field: str) -> None:
    assert fields(body) == [field]


def test_a_payload_nested_deeper_than_the_limit_is_refused() -> None:
    deep: Any = 1
    for _ in range(80):
        deep = [deep]
    (field,) = fields(job(payload=deep))
    assert field.startswith("payload[0]")


def test_every_overlap_policy_and_a_full_schedule_are_taken() -> None:
    full = {
        "start": "2026-12-01T00:00:00Z",
        "end": "2027-12-01T00:00:00Z",
        "max_runs": 9,
        "exclude": ["holidays", "2026-12-25"],
    }
    body = cron(second="*/10", year="2026-2030", dst={"gap": "skip", "overlap": "both"}, window="5m", **full)
    for overlap in ("allow", "skip", "queue_one", "queue_all", "cancel_running"):
        spec = parse_job(json.dumps(body | {"overlap": overlap, "misfire": {"catchup_window": "7d"}}).encode())
        assert spec.overlap == overlap
        assert spec.schedule is not None
        assert spec.schedule.max_runs == 9


def test_an_unknown_field_of_an_entry_is_answered_with_the_known_ones() -> None:
    for body, known in ((cron(dst={"gaps": 1}), "gap, overlap"), (job(schedules=[{"zone": 1}]), "timezone")):
        with pytest.raises(Invalid, match=known):
            parse_job(json.dumps(body).encode())


def test_all_wrong_fields_of_a_schedule_are_named_at_once() -> None:
    body = cron(cron="61 * * * *", timezone="Mars/Base", window=0, max_runs=0, exclude=["x y"], end="soon") | {
        "team": "X"
    }
    assert fields(body) == [
        "team", "schedule.cron", "schedule.timezone", "schedule.window", "schedule.end", "schedule.max_runs",
        "schedule.exclude[0]",
    ]  # fmt: skip


def test_all_wrong_fields_are_named_at_once() -> None:
    assert fields(job(name="", team="X", timeout_s=-1)) == ["name", "team", "timeout_s"]


def test_a_key_that_is_there_twice_counts_as_its_last() -> None:
    body = json.dumps(job())[:-1] + ', "timeout_s": 1, "timeout_s": 2}'
    assert parse_job(body.encode()).timeout_s == 2


def test_a_text_that_breaks_off_is_no_json_whatever_its_first_field_is() -> None:
    with pytest.raises(Invalid, match="not valid JSON"):
        parse_job(b'{"a":')


@pytest.mark.parametrize(
    ("body", "field", "fix"),
    [
        ({"misfire_policy": "skp"}, "misfire_policy", "write run_all, run_once, skip"),
        ({"schedule": {"cron": "@daily", "dst": {"gap": "skp"}}}, "schedule.dst.gap", "write shift, skip"),
        ({"overlap": "x"}, "overlap", "queue_all, queue_one"),
        ({"schedules": [{"cron": "@daily", "dst": {"overlap": 1}}]}, "schedules.*.dst.overlap", "wrong type"),
        ({"misfire": {"grcae": "5s"}}, "misfire.grcae", "known here: grace, catchup_window"),
    ],
)
def test_choices_and_known_fields_are_named(body: dict[str, Any], field: str, fix: str) -> None:
    whole = {"schedule": {"cron": "@daily"}, "target": {"type": "http", "url": "http://x/"}, **body}
    if "schedules" in body:
        del whole["schedule"]
    with pytest.raises(Invalid) as caught:
        parse_job(json.dumps(whole).encode())
    (error,) = caught.value.errors
    assert error.field.replace("[0]", ".*") == field
    assert fix in error.message
