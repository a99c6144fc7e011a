"""What a success stands for: Postgres by default, Redis where asked for, and a 503 that says so where it is unknown."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from rsched_api.app import ROUTES
from rsched_api.http.ack import HEADER, changes

from rsched.core.settings import ApiSettings
from rsched.embedded.process import free_port
from tests.api.changing_verbs import (
    CALENDAR,
    DATES,
    OF_NONE,
    PAST,
    SPAN,
    VERBS,
    Verb,
    core_of,
    each_verb,
    put_job_there,
)
from tests.api.served import Served
from tests.api.world import World, job

pytestmark = pytest.mark.usefixtures("anyio_backend")


@pytest.fixture
def served(redis_url: str, database_url: str, redis_prefix: str) -> Iterator[Served]:
    options = ApiSettings(
        redis_url=redis_url, database_url=database_url, prefix=redis_prefix, port=free_port(), ack_timeout_s=0.5
    )
    with Served(options) as it:
        yield it


def test_every_verb_that_changes_something_is_tested_here() -> None:
    changing = {r.endpoint.__name__ for r in ROUTES for m in r.methods or () if changes(m, r.path)}
    assert changing == {v.handler for v in VERBS}


@each_verb
def test_ack_redis_answers_while_nothing_is_recorded_and_says_so(served: Served, verb: Verb) -> None:
    job_id = put_job_there(served, verb)
    served.pause_recording()
    method, path, body = verb.request(served, job_id)
    answer = served(method, f"{path}?ack=redis", body)
    assert (answer.status_code // 100, answer.headers[HEADER]) == (2, "redis"), answer.text
    assert verb.seen(served, job_id, answer.json() if answer.content else None)


@each_verb
def test_what_is_not_recorded_in_time_is_unknown_and_a_repeat_settles_it(served: Served, verb: Verb) -> None:
    job_id = put_job_there(served, verb)
    served.pause_recording()
    method, path, body = verb.request(served, job_id)
    unknown = served(method, path, body, Idempotency_Key="k")
    problem = unknown.json()
    assert (unknown.status_code, problem["code"], problem["durability"]) == (503, "durability_unknown", "unknown")
    assert unknown.headers["retry-after"]
    assert HEADER not in unknown.headers
    if verb.handler not in OF_NONE:
        assert problem.get("job_id") or problem.get("run_id")
    served.go_on_recording()
    settled = served(method, path, body, Idempotency_Key="k")
    # A repeated DELETE finds nothing any more, which is what it asked for.
    assert settled.status_code // 100 == 2 or (method, settled.status_code) == ("DELETE", 404), settled.text
    if settled.status_code != 404:
        assert settled.headers[HEADER] == "postgres"


def test_the_durable_repeat_of_a_fast_answer_waits_for_the_record(served: Served) -> None:
    served.pause_recording()
    fast = served("POST", "/v1/jobs?ack=redis", job(name="n"), Idempotency_Key="k")
    assert served("POST", "/v1/jobs", job(name="n"), Idempotency_Key="k").status_code == 503
    served.go_on_recording()
    again = served("POST", "/v1/jobs", job(name="n"), Idempotency_Key="k")
    assert (again.status_code, again.json()) == (201, fast.json())


def test_the_repeat_of_a_batch_waits_for_the_very_jobs_it_answers_with(served: Served) -> None:
    """Not for an earlier one of the same name, which is recorded as deleted."""
    batch = {"jobs": [job(name="there")]}
    old = put_job_there(served)
    assert served("DELETE", f"/v1/jobs/{old}").status_code == 204
    served.pause_recording()
    for _ in range(2):
        unknown = served("POST", "/v1/jobs:batch", batch, Idempotency_Key="k")
        assert (unknown.status_code, unknown.json().get("durability")) == (503, "unknown"), unknown.text
    served.go_on_recording()
    settled = served("POST", "/v1/jobs:batch", batch, Idempotency_Key="k")
    assert (settled.status_code, settled.headers[HEADER]) == (201, "postgres")
    assert old not in {j["job_id"] for j in settled.json()["items"]}


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/v1/jobs:pause", {"filter": {"name": "there"}}),
        ("DELETE", "/v1/teams/default/calendars/days", None),
        ("POST", "/v1/jobs/past/backfill", SPAN),
    ],
)
def test_a_change_that_waits_for_earlier_ones_does_not_say_that_it_was_made(
    served: Served, method: str, path: str, body: Any
) -> None:
    put_job_there(served)
    assert served("POST", "/v1/jobs", PAST).status_code == 201
    assert served("PUT", CALENDAR, DATES).status_code == 201
    served.pause_recording()
    assert served("POST", "/v1/jobs?ack=redis", job()).status_code == 201
    refused = served(method, path, body)
    assert (refused.status_code, refused.json()["code"]) == (503, "unavailable"), refused.text
    assert "before this request" in refused.json()["detail"]
    assert "durability" not in refused.json()
    served.go_on_recording()
    assert served(method, path, body).status_code // 100 == 2


def test_a_name_that_was_deleted_and_made_again_unrecorded_is_found_as_it_is_now(served: Served) -> None:
    old = put_job_there(served)
    served.pause_recording()
    assert served("DELETE", f"/v1/jobs/{old}?ack=redis").status_code == 204
    new = served("POST", "/v1/jobs?ack=redis", job(name="there")).json()
    assert new["job_id"] != old
    assert core_of(served("GET", "/v1/jobs/there").json()) == core_of(new)
    assert served("POST", "/v1/jobs/there/pause?ack=redis").json()["job_id"] == new["job_id"]


def test_a_run_that_was_cancelled_unrecorded_is_shown_as_soon_as_it_is(served: Served) -> None:
    job_id = put_job_there(served)
    run = served("POST", f"/v1/jobs/{job_id}/trigger").json()["run_id"]
    cancelled = served("POST", f"/v1/runs/{run}/cancel?ack=redis")
    assert (cancelled.json()["status"], cancelled.headers[HEADER]) == ("CANCELLED", "redis")
    assert served("GET", f"/v1/runs/{run}").json()["status"] == "CANCELLED"


@pytest.mark.parametrize("value", ["", "disk", "REDIS", "redis&ack=redis", "redis%00"])
def test_an_unknown_ack_is_refused_and_nothing_is_done(world: World, value: str) -> None:
    answer = world.call("POST", f"/v1/jobs?ack={value}", job())
    assert (answer.status, answer.fields) == (422, ["ack"])
    assert not world.jobs()


def test_what_changes_nothing_takes_no_ack_and_says_nothing_of_durability(world: World) -> None:
    made = world.create(name="n")
    for method, path, body in (
        ("GET", f"/v1/jobs/{made['job_id']}", None),
        ("POST", "/v1/schedules:preview", {"schedule": {"every": "1h"}}),
    ):
        assert world.call(method, f"{path}?ack=redis", body).fields == ["ack"]
        assert HEADER.lower() not in world.call(method, path, body).headers


def test_the_rest_of_the_query_stays_as_it_was(world: World) -> None:
    world.create(name="a b", team="t")
    assert world.call("POST", "/v1/jobs/a%20b/pause?team=t&ack=redis").status == 200
    assert world.call("POST", "/v1/jobs/a%20b/pause?ack=redis&colour=%C3%A9").fields == ["colour"]
    # That of the create alone.
    assert len(world.waiter.waited) == 1
