"""One request for every way of the API to change something, and how a reader sees that it was done."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
from rsched_api.http.ack import HEADER

from tests.api.served import Served
from tests.api.world import job


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
def core_of(job: Any) -> Any:
    return {k: job[k] for k in ("job_id", "name", "version", "state", "timeout_s", "created_at", "next_run_at")}


def _same(path: str) -> Callable[[Served, str, Any], bool]:
    return lambda served, _, body: bool(core_of(served("GET", path).json()) == core_of(body))


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
        lambda s, _, body: bool(core_of(s("GET", "/v1/jobs/new").json()) == core_of(body["items"][0])),
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


def put_job_there(served: Served, verb: Verb | None = None) -> str:
    """A recorded job, and what the verb needs beside it."""
    made = served("POST", "/v1/jobs", job(name="there", schedule={"every": "1h"}))
    assert (made.status_code, made.headers[HEADER]) == (201, "postgres")
    if verb is not None and verb.before is not None:
        method, path, body = verb.before
        assert served(method, path, body).headers[HEADER] == "postgres"
    return str(made.json()["job_id"])
