"""What a success stands for: Postgres by default, Redis where asked for, and a 503 that says so where it is unknown."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest
from rsched_api.app import ROUTES
from rsched_api.http.ack import HEADER, changes

from rsched.core.settings import ApiSettings
from tests.api.conftest import World, job
from tests.api.test_real_servers import Served, free_port

pytestmark = pytest.mark.usefixtures("anyio_backend")


@pytest.fixture
def served(redis_url: str, database_url: str, redis_prefix: str) -> Iterator[Served]:
    options = ApiSettings(
        redis_url=redis_url, database_url=database_url, prefix=redis_prefix, port=free_port(), ack_timeout_s=0.5
    )
    with Served(options) as it:
        yield it


class Verb(NamedTuple):
    """request: from the id of the job `there` to what is sent. seen: whether a reader sees that it was done. before: a request
    that is made, and recorded, first.
    """

    handler: str
    request: Callable[[Served, str], tuple[str, str, Any]]
    seen: Callable[[Served, str, Any], bool]
    before: tuple[str, str, Any] | None = None


def _state(state: str) -> Callable[[Served, str, Any], bool]:
    return lambda served, job_id, _: served("GET", f"/v1/jobs/{job_id}").json()["state"] == state


def _resume(served: Served, job_id: str) -> tuple[str, str, Any]:
    assert served("POST", f"/v1/jobs/{job_id}/pause?ack=redis").status_code == 200
    return "POST", f"/v1/jobs/{job_id}/resume", None


def _cancel(served: Served, job_id: str) -> tuple[str, str, Any]:
    run = served("POST", f"/v1/jobs/{job_id}/trigger?ack=redis").json()["run_id"]
    return "POST", f"/v1/runs/{run}/cancel", None


def _run_there(served: Served, job_id: str, body: Any) -> bool:
    return bool(served("GET", f"/v1/runs/{body['run_id']}").json()["status"] == "QUEUED")


# What one reader may be shown more of than another is left out.
def _core(job: Any) -> Any:
    return {k: job[k] for k in ("job_id", "name", "version", "state", "timeout_s", "created_at", "next_run_at")}


def _same(path: str) -> Callable[[Served, str, Any], bool]:
    return lambda served, _, body: bool(_core(served("GET", path).json()) == _core(body))


ALL = {"filter": {"name": "there"}}
CALENDAR = "/v1/teams/default/calendars/days"
DATES = {"dates": ["2026-12-25"]}
SPAN = {"from": "2026-10-20T00:00:00Z", "to": "2026-10-20T06:00:00Z"}
PAST = job(name="past", schedule={"every": "1h", "anchor": "2026-01-01T00:00:00Z"})


def _gone(*refs: str) -> Callable[[Served, str, Any], bool]:
    return lambda served, _, body: {served("GET", ref).status_code for ref in refs} == {404}


VERBS = [
    Verb("post_job", lambda s, j: ("POST", "/v1/jobs", job(name="new")), _same("/v1/jobs/new")),
    Verb(
        "post_jobs",
        lambda s, j: ("POST", "/v1/jobs:batch", {"jobs": [job(name="new")]}),
        lambda s, _, body: bool(_core(s("GET", "/v1/jobs/new").json()) == _core(body["items"][0])),
    ),
    Verb("put_job", lambda s, j: ("PUT", "/v1/jobs/new", job()), _same("/v1/jobs/new")),
    Verb("put_job", lambda s, j: ("PUT", "/v1/jobs/there", job(timeout_s=7)), _same("/v1/jobs/there")),
    Verb("patch_job", lambda s, j: ("PATCH", "/v1/jobs/there", {"timeout_s": 7}), _same("/v1/jobs/there")),
    Verb(
        "delete_job",
        lambda s, j: ("DELETE", f"/v1/jobs/{j}", None),
        lambda s, j, _: {s("GET", f"/v1/jobs/{ref}").status_code for ref in (j, "there")} == {404},
    ),
    Verb("pause_job", lambda s, j: ("POST", f"/v1/jobs/{j}/pause", None), _state("paused")),
    Verb("resume_job", _resume, _state("active")),
    Verb("trigger_job", lambda s, j: ("POST", f"/v1/jobs/{j}/trigger", None), _run_there),
    Verb(
        "cancel_run",
        _cancel,
        # Nothing but the journal knows of it, so a reader is told to wait rather than that there is no such run.
        lambda s, _, body: bool(s("GET", f"/v1/runs/{body['run_id']}").status_code == 503),
    ),
    Verb(
        "backfill_job",
        lambda s, j: ("POST", "/v1/jobs/past/backfill", SPAN),
        lambda s, _, body: bool(body["occurrences"] == 6),
        before=("POST", "/v1/jobs", PAST),
    ),
    Verb("pause_jobs", lambda s, j: ("POST", "/v1/jobs:pause", ALL), _state("paused")),
    Verb(
        "resume_jobs",
        lambda s, j: ("POST", "/v1/jobs:resume", ALL),
        _state("active"),
        before=("POST", "/v1/jobs/there/pause", None),
    ),
    Verb("delete_jobs", lambda s, j: ("POST", "/v1/jobs:delete", ALL), _gone("/v1/jobs/there")),
    Verb(
        "put_calendar",
        lambda s, j: ("PUT", CALENDAR, DATES),
        lambda s, _, body: bool(s("GET", CALENDAR).json()["dates"] == body["dates"]),
    ),
    Verb(
        "delete_calendar",
        lambda s, j: ("DELETE", CALENDAR, None),
        _gone(CALENDAR),
        before=("PUT", CALENDAR, DATES),
    ),
]
# What is unknown there is no one job or run.
OF_NONE = {"post_jobs", "pause_jobs", "resume_jobs", "delete_jobs", "put_calendar", "delete_calendar"}
each_verb = pytest.mark.parametrize("verb", VERBS, ids=[f"{i}-{v.handler}" for i, v in enumerate(VERBS)])


def _there(served: Served, verb: Verb | None = None) -> str:
    """A recorded job, and what the verb needs beside it."""
    made = served("POST", "/v1/jobs", job(name="there", schedule={"every": "1h"}))
    assert (made.status_code, made.headers[HEADER]) == (201, "postgres")
    if verb is not None and verb.before is not None:
        method, path, body = verb.before
        assert served(method, path, body).headers[HEADER] == "postgres"
    return str(made.json()["job_id"])


def test_every_verb_that_changes_something_is_tested_here() -> None:
    changing = {r.endpoint.__name__ for r in ROUTES for m in r.methods or () if changes(m, r.path)}
    assert changing == {v.handler for v in VERBS}


@each_verb
def test_ack_redis_answers_while_nothing_is_recorded_and_says_so(served: Served, verb: Verb) -> None:
    job_id = _there(served, verb)
    served.pause_recording()
    method, path, body = verb.request(served, job_id)
    answer = served(method, f"{path}?ack=redis", body)
    assert (answer.status_code // 100, answer.headers[HEADER]) == (2, "redis"), answer.text
    assert verb.seen(served, job_id, answer.json() if answer.content else None)


@each_verb
def test_what_is_not_recorded_in_time_is_unknown_and_a_repeat_settles_it(served: Served, verb: Verb) -> None:
    job_id = _there(served, verb)
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
    old = _there(served)
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
    _there(served)
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
    old = _there(served)
    served.pause_recording()
    assert served("DELETE", f"/v1/jobs/{old}?ack=redis").status_code == 204
    new = served("POST", "/v1/jobs?ack=redis", job(name="there")).json()
    assert new["job_id"] != old
    assert _core(served("GET", "/v1/jobs/there").json()) == _core(new)
    assert served("POST", "/v1/jobs/there/pause?ack=redis").json()["job_id"] == new["job_id"]


def test_a_run_that_was_cancelled_unrecorded_is_shown_as_soon_as_it_is(served: Served) -> None:
    job_id = _there(served)
    run = served("POST", f"/v1/jobs/{job_id}/trigger").json()["run_id"]
    cancelled = served("POST", f"/v1/runs/{run}/cancel?ack=redis")
    assert (cancelled.json()["status"], cancelled.headers[HEADER]) == ("CANCELLED", "redis")
    assert served("GET", f"/v1/runs/{run}").json()["status"] == "CANCELLED"


@pytest.mark.parametrize("value", ["", "disk", "REDIS", "redis&ack=redis", "redis%00"])
def test_an_unknown_ack_is_refused_and_nothing_is_done(world: World, value: str) -> None:
    answer = world.call("POST", f"/v1/jobs?ack={value}", job())
    assert (answer.status, answer.fields) == (422, ["ack"])
    assert not world.store.jobs


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
    assert world.waiter.waited == ["s0 definitions 1-0"]
