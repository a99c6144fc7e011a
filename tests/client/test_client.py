from __future__ import annotations

import socket
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from rsched.client.bodies import job_body
from rsched.core import errors
from rsched.core.jobs.model import FunctionTarget, JobSpec, ScheduleSpec
from tests.client.fake_api import JOB, RUN, Reply, SteppedClock, problem, serving

Connect = Callable[..., Any]
OK = Reply(201, JOB)


def test_a_created_job_comes_back_typed_and_the_body_holds_only_what_was_said(connect: Connect) -> None:
    with serving(OK) as api, connect(api.url) as client:
        job = client.create_job("nightly", cron="0 2 * * *", url="http://x/run", tags=["a"], max_attempts=5)
    assert job.job_id == JOB["job_id"]
    assert job.schedule == ScheduleSpec(cron="0 2 * * *", timezone="UTC")
    assert api.seen[0].method == "POST"
    assert api.seen[0].path == "/v1/jobs"
    assert api.seen[0].body == {
        "name": "nightly",
        "schedule": {"cron": "0 2 * * *"},
        "target": {"type": "http", "url": "http://x/run"},
        "tags": ["a"],
        "retry": {"max_attempts": 5},
    }


def test_every_post_carries_a_key_of_its_own_or_the_one_that_was_given(connect: Connect) -> None:
    with serving(OK) as api, connect(api.url) as client:
        client.create_job(delay="2s", url="http://x/")
        client.create_job(delay="2s", url="http://x/")
        client.create_job(delay="2s", url="http://x/", idempotency_key="mine")
    keys = [s.headers["idempotency-key"] for s in api.seen]
    assert len(set(keys)) == 3
    assert keys[2] == "mine"


@pytest.mark.parametrize("code", ["unavailable", "shard_closed", "durability_unknown"])
def test_what_may_pass_is_tried_again_with_the_same_key_and_growing_pauses(connect: Connect, code: str) -> None:
    clock = SteppedClock()
    with serving(problem(503, code), problem(503, code), OK) as api, connect(api.url, clock=clock) as client:
        client.create_job(delay="2s", url="http://x/")
    assert len({s.headers["idempotency-key"] for s in api.seen}) == 1
    assert len(api.seen) == 3
    assert 50 <= clock.slept[0] <= 100
    assert 100 <= clock.slept[1] <= 200


def test_trying_again_ends_at_the_deadline_with_the_last_error(connect: Connect) -> None:
    clock = SteppedClock()
    with (
        serving(problem(503, "durability_unknown", job_id="j_0123456789abc", durability="unknown")) as api,
        connect(api.url, clock=clock, retry_for_s=2) as client,
        pytest.raises(errors.DurabilityUnknown) as caught,
    ):
        client.create_job(delay="2s", url="http://x/")
    assert caught.value.job_id == "j_0123456789abc"
    assert clock.now <= 2000
    assert len(api.seen) > 2


def test_a_refused_connection_is_unavailable_and_says_what_to_start(connect: Connect) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    clock = SteppedClock()
    with (
        connect(f"http://127.0.0.1:{port}", clock=clock, retry_for_s=1) as client,
        pytest.raises(errors.Unavailable, match="is `rsched api` or `rsched up` running"),
    ):
        client.get_job("nightly")
    assert clock.slept


@pytest.mark.parametrize(
    ("status", "code", "kind"),
    [
        (422, "invalid", errors.Invalid),
        (404, "not_found", errors.NotFound),
        (409, "conflict", errors.Conflict),
        (412, "version_conflict", errors.VersionConflict),
        (413, "too_large", errors.TooLarge),
        (418, "teapot", errors.Rejected),
    ],
)
def test_refusals_come_as_the_class_of_their_code_and_are_not_tried_again(
    connect: Connect, status: int, code: str, kind: type[errors.RschedError]
) -> None:
    fields = [{"field": "schedule.cron", "message": "no"}]
    with (
        serving(problem(status, code, errors=fields)) as api,
        connect(api.url) as client,
        pytest.raises(kind) as caught,
    ):
        client.create_job(cron="x", url="http://x/")
    assert type(caught.value) is kind
    assert caught.value.code == code
    assert caught.value.errors == (errors.FieldError("schedule.cron", "no"),)
    assert len(api.seen) == 1


def test_an_answer_of_a_proxy_that_is_no_problem_document_is_told_by_its_status(connect: Connect) -> None:
    with (
        serving(Reply(404, "<html>")) as api,
        connect(api.url) as client,
        pytest.raises(errors.Rejected, match="HTTP 404"),
    ):
        client.get_job("x")
    with serving(Reply(502, "bad gateway"), Reply(200, JOB)) as api, connect(api.url, clock=SteppedClock()) as client:
        assert client.get_job("x").name == "nightly"


def test_one_connection_serves_requests_in_turn_and_a_dropped_one_is_replaced(connect: Connect) -> None:
    clock = SteppedClock()
    with serving(Reply(200, JOB), Reply(200, JOB), Reply(0, None, hang_up=True), Reply(200, JOB)) as api:
        with connect(api.url, clock=clock) as client:
            for _ in range(3):
                client.get_job("nightly")
        ports = [s.port for s in api.seen]
    assert ports[0] == ports[1] == ports[2] != ports[3]
    assert clock.slept == []


def test_names_and_runs_are_quoted_in_the_path_and_the_team_goes_along(connect: Connect) -> None:
    with serving(Reply(200, JOB)) as api, connect(api.url) as client:
        client.get_job("a/b: c?", team="ops")
    assert api.seen[0].path == "/v1/jobs/a%2Fb%3A%20c%3F?team=ops"
    with serving(Reply(200, RUN)) as api, connect(api.url) as client:
        assert client.get_run(RUN["run_id"]).lateness_ms == 4
    assert api.seen[0].path == "/v1/runs/j_0123456789abc:1793000000000"


def test_lists_go_on_over_pages(connect: Connect) -> None:
    first = Reply(200, {"items": [JOB, JOB], "next_cursor": "c1"})
    with serving(first, Reply(200, {"items": [JOB], "next_cursor": None})) as api, connect(api.url) as client:
        assert len(list(client.list_jobs(team="ops"))) == 3
    assert [s.path for s in api.seen] == ["/v1/jobs?team=ops&limit=100", "/v1/jobs?team=ops&cursor=c1&limit=100"]
    with serving(Reply(200, {"items": [RUN], "next_cursor": None})) as api, connect(api.url) as client:
        assert [r.status for r in client.list_runs("nightly", status="SUCCEEDED")] == ["SUCCEEDED"]


def test_verbs_reach_their_paths(connect: Connect) -> None:
    with serving(Reply(200, JOB)) as api, connect(api.url) as client:
        client.pause_job("n")
        client.resume_job("n")
        client.replace_job("n", cron="@daily", function="f", team="ops", if_match=3)
        client.replace_job("n", spec=JobSpec(schedule=ScheduleSpec(every="5m"), target=FunctionTarget(function="f")))
    assert [(s.method, s.path) for s in api.seen] == [
        ("POST", "/v1/jobs/n/pause"),
        ("POST", "/v1/jobs/n/resume"),
        ("PUT", "/v1/jobs/n?team=ops"),
        ("PUT", "/v1/jobs/n?team=default"),
    ]
    assert api.seen[2].headers["if-match"] == '"3"'
    assert "name" not in api.seen[2].body
    assert "name" not in api.seen[3].body
    with serving(Reply(202, RUN)) as api, connect(api.url) as client:
        client.trigger_job("n", idempotency_key="k")
        client.cancel_run(RUN["run_id"])
    assert [s.path for s in api.seen] == ["/v1/jobs/n/trigger", "/v1/runs/j_0123456789abc:1793000000000/cancel"]
    with serving(Reply(204, None)) as api, connect(api.url) as client:
        client.delete_job("n", if_match=2)
    assert (api.seen[0].method, api.seen[0].headers["if-match"]) == ("DELETE", '"2"')


def test_every_verb_that_changes_something_passes_on_what_to_wait_for(connect: Connect) -> None:
    spec = {"schedule": {"every": "5m"}, "target": {"type": "function", "function": "f"}}
    with serving(Reply(200, JOB)) as api, connect(api.url) as client:
        client.create_job(delay="2s", url="http://x/", ack="redis")
        client.create_job(spec=spec, ack="redis")
        client.replace_job("n", cron="@daily", function="f", team="ops", ack="redis")
        client.replace_job("n", spec=spec, ack="redis")
        client.pause_job("n", ack="redis")
        client.resume_job("n", ack="redis")
        client.delete_job("n", ack="redis")
    paths = [s.path for s in api.seen]
    with serving(Reply(202, RUN)) as api, connect(api.url) as client:
        client.trigger_job("n", ack="redis")
        client.cancel_run(RUN["run_id"], ack="redis")
    paths += [s.path for s in api.seen]
    with serving(Reply(201, {"items": []})) as api, connect(api.url) as client:
        client.create_jobs([spec], ack="redis")
    paths += [s.path for s in api.seen]
    assert len(paths) == 10
    assert [p for p in paths if not p.endswith("ack=redis")] == []


def test_jobs_are_created_in_one_request_that_is_repeated_under_its_key(connect: Connect) -> None:
    answer = Reply(201, {"items": [JOB, JOB]})
    specs = [
        JobSpec(schedule=ScheduleSpec(every="5m"), target=FunctionTarget(function="f")),
        {"schedule": {"every": "1h"}, "target": {"type": "http", "url": "http://x/"}},
    ]
    clock = SteppedClock()
    with serving(problem(503, "durability_unknown"), answer) as api, connect(api.url, clock=clock) as client:
        jobs = client.create_jobs(specs)
    assert [j.job_id for j in jobs] == [JOB["job_id"]] * 2
    assert [(s.method, s.path) for s in api.seen] == [("POST", "/v1/jobs:batch")] * 2
    assert len({s.headers["idempotency-key"] for s in api.seen}) == 1
    assert api.seen[0].body == api.seen[1].body
    assert [j["schedule"] for j in api.seen[0].body["jobs"]] == [{"every": "5m"}, {"every": "1h"}]


def test_a_delete_whose_answer_was_lost_is_done_when_nothing_is_there_any_more(connect: Connect) -> None:
    lost = problem(503, "durability_unknown")
    with serving(lost, problem(404, "not_found")) as api, connect(api.url, clock=SteppedClock()) as client:
        client.delete_job("n")
    with (
        serving(problem(404, "not_found")) as api,
        connect(api.url) as client,
        pytest.raises(errors.NotFound),
    ):
        client.delete_job("n")


def test_a_preview_names_its_start(connect: Connect) -> None:
    answer = {"occurrences": [{"utc": "u", "local": "l", "note": None}], "description": "d", "warnings": []}
    with serving(Reply(200, answer)) as api, connect(api.url) as client:
        found = client.preview_schedule({"cron": "@daily"}, start="2026-01-01T00:00:00Z", count=1)
    assert found.occurrences[0].utc == "u"
    assert api.seen[0].path == "/v1/schedules:preview"
    assert api.seen[0].body == {"schedule": {"cron": "@daily"}, "count": 1, "from": "2026-01-01T00:00:00Z"}


def test_what_python_has_better_types_for_is_written_as_the_api_reads_it() -> None:
    at = datetime(2026, 10, 25, 20, 30, tzinfo=UTC)
    body = job_body(None, None, {"at": at, "target": FunctionTarget(function="f", args=[1]), "payload": {"a": [1]}})
    assert body["schedule"] == {"at": "2026-10-25T20:30:00+00:00"}
    assert body["target"] == {"type": "function", "function": "f", "args": [1]}


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"at": datetime(2026, 1, 1), "url": "http://x/"}, "schedule.at"),
        ({"delay": 1}, "target"),
        ({"delay": 1, "url": "http://x/", "function": "f"}, "target"),
        ({"delay": 1, "schedule": {"delay": 1}, "url": "http://x/"}, "schedule"),
        ({"delay": 1, "url": "http://x/", "payload": object()}, "payload"),
    ],
)
def test_what_the_server_could_not_see_is_refused_here(options: dict[str, Any], field: str) -> None:
    with pytest.raises(errors.Invalid) as caught:
        job_body(None, None, options)
    assert caught.value.errors[0].field == field


def test_a_misspelt_option_is_refused_by_name() -> None:
    with pytest.raises(TypeError, match="unknown option 'crom'"):
        job_body(None, None, {"crom": "@daily"})


@pytest.mark.parametrize("url", ["127.0.0.1:8080", "ftp://x", "http://", "http://x:y"])
def test_an_address_that_is_none_is_refused_at_once(connect: Connect, url: str) -> None:
    with pytest.raises(errors.Misconfigured, match="http://127"):
        connect(url)


@pytest.mark.parametrize("field", ScheduleSpec.__struct_fields__)
def test_every_field_of_a_schedule_is_an_option_of_create(field: str) -> None:
    body = job_body("n", None, {field: {"gap": "skip"} if field == "dst" else "x", "url": "http://x/"})
    assert body["schedule"] == {field: {"gap": "skip"} if field == "dst" else "x"}


def test_several_schedules_go_alone() -> None:
    body = job_body("n", None, {"schedules": [ScheduleSpec(cron="@daily"), {"every": "1h"}], "url": "http://x/"})
    assert body["schedules"] == [{"cron": "@daily"}, {"every": "1h"}]
    with pytest.raises(errors.Invalid, match="one of the two ways"):
        job_body("n", None, {"schedules": [{"every": "1h"}], "cron": "@daily", "url": "http://x/"})
