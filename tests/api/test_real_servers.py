"""The API on a real Redis and a real Postgres, over HTTP."""

from __future__ import annotations

import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from rsched_api.openapi import OPERATIONS
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from tests.api.served import Served
from tests.api.world import job

# The servers' fixtures are asynchronous, these tests are not.
pytestmark = pytest.mark.usefixtures("anyio_backend")

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]


def test_a_job_lives_from_create_to_delete(served: Served) -> None:
    made = served("POST", "/v1/jobs", job(name="n/1", schedule={"every": "1h"}), Idempotency_Key="k")
    assert made.status_code == 201, made.text
    again = served("POST", "/v1/jobs", job(name="n/1", schedule={"every": "1h"}), Idempotency_Key="k")
    assert again.json() == made.json()
    path = f"/v1/jobs/{made.json()['job_id']}"
    assert served("GET", path).json() == made.json()
    assert served("GET", "/v1/jobs/n%2F1").json() == made.json()
    assert served("GET", "/v1/jobs?q=N/&limit=1").json()["items"] == [made.json()]
    assert served("PUT", path, job(schedule={"every": 3600}, timeout_s=5)).json()["version"] == 2
    assert served("POST", f"{path}/pause").json()["state"] == "paused"
    assert served("POST", f"{path}/pause").json()["version"] == 3
    assert served("POST", f"{path}/resume").json()["state"] == "active"
    run = served("POST", f"{path}/trigger", Idempotency_Key="t")
    assert (run.status_code, served("POST", f"{path}/trigger", Idempotency_Key="t").json()) == (202, run.json())
    assert served("GET", f"{path}/runs").json()["items"] == [run.json()]
    cancelled = served("POST", f"/v1/runs/{run.json()['run_id']}/cancel")
    assert (cancelled.status_code, cancelled.json()["status"]) == (200, "CANCELLED")
    assert served("POST", f"/v1/runs/{run.json()['run_id']}/cancel").json() == cancelled.json()
    assert served("DELETE", path).status_code == 204
    assert served("DELETE", path).status_code == 404
    new = served("POST", "/v1/jobs", job(name="n/1"))
    assert (new.status_code, new.json()["job_id"] != made.json()["job_id"]) == (201, True)


def test_readiness_names_what_is_missing(served: Served) -> None:
    answer = served("GET", "/readyz")
    assert answer.status_code == 503
    assert [r.split(" is alive")[0] for r in answer.json()["reasons"]] == ["no recorder", "no scheduler", "no worker"]


def test_one_name_created_by_many_at_once_is_one_job(served: Served) -> None:
    statuses: list[int] = []
    threads = [
        threading.Thread(target=lambda: statuses.append(served("POST", "/v1/jobs", job(name="n")).status_code))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(statuses) == [201] + [409] * 7


@pytest.mark.slow
def test_no_generated_request_leaves_the_described_answers(served: Served) -> None:
    schema = schemathesis.openapi.from_url(f"{served.url}/openapi.json")
    known = served("POST", "/v1/jobs", job(name="known")).json()["job_id"]
    for operation in OPERATIONS:
        if operation.name in ("readyz", "healthz"):
            continue
        strategy = schema[operation.path][operation.method.upper()].as_strategy()

        @settings(
            max_examples=25,
            deadline=None,
            database=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(case=strategy)
        def check(case: schemathesis.Case) -> None:
            if "ref" in case.path_parameters and len(case.path_parameters["ref"]) % 2:
                case.path_parameters["ref"] = known
            case.call_and_validate(checks=CHECKS)

        check()


@pytest.mark.parametrize("same", [True, False])
def test_puts_of_one_new_name_at_once_make_one_job_and_replace_it(served: Served, same: bool) -> None:
    def put(number: int) -> int:
        return requests.put(
            f"{served.url}/v1/jobs/at-once", json=job(payload=0 if same else number), timeout=20
        ).status_code

    with ThreadPoolExecutor(20) as pool:
        codes = Counter(pool.map(put, range(20)))
    assert codes == {201: 1, 200: 19}


def test_puts_that_race_deletes_of_the_name_create_or_replace(served: Served) -> None:
    def call(number: int) -> tuple[str, int]:
        url = f"{served.url}/v1/jobs/contended"
        if number % 4 == 0:
            return "delete", requests.delete(url, timeout=20).status_code
        return "put", requests.put(url, json=job(payload=number), timeout=20).status_code

    with ThreadPoolExecutor(10) as pool:
        codes = Counter(pool.map(call, range(40)))
    assert set(codes) <= {("put", 200), ("put", 201), ("delete", 204), ("delete", 404)}


def test_control_over_a_job_on_real_servers(served: Served) -> None:
    """Pauses, triggers with a payload, backfills, skips, bulk verbs and calendars, as Redis and Postgres keep them."""
    anchored = {"every": "10s", "anchor": "2026-01-01T00:00:00Z"}
    made = served("POST", "/v1/jobs", job(name="c", schedule=anchored, overlap="skip", tags=["t"])).json()
    path = f"/v1/jobs/{made['job_id']}"
    paused = served("POST", f"{path}/pause", {"note": "n|\n", "until": "1h", "missed": "run_once"}).json()
    assert (paused["pause"]["note"], paused["pause"]["missed"]) == ("n|\n", "run_once")
    kept = served("PUT", path, job(schedule=anchored, overlap="queue_all", tags=["t"])).json()
    assert (kept["state"], kept["pause"]) == ("paused", paused["pause"])
    assert served("POST", f"{path}/resume", {"missed": "skip"}).json()["state"] == "active"
    run = served("POST", f"{path}/trigger", {"payload": {"a": 1}, "overlap": "allow"}, Idempotency_Key="k").json()
    assert served("GET", f"/v1/runs/{run['run_id']}").json()["payload"] == {"a": 1}
    assert served("POST", f"{path}/trigger", {"payload": 2}, Idempotency_Key="k").status_code == 422
    again = served("POST", f"{path}/trigger", {"payload": {"a": 1}, "overlap": "allow"}, Idempotency_Key="k")
    assert again.json()["run_id"] == run["run_id"]
    span = {"from": "2026-01-01T00:00:00Z", "to": "2026-01-01T00:01:00Z"}
    first = served("POST", f"{path}/backfill", span)
    assert (first.status_code, first.json()["occurrences"], first.json()["already"]) == (202, 6, 0), first.text
    repeat = served("POST", f"{path}/backfill", span).json()
    assert (repeat["occurrences"], repeat["already"]) == (0, 6)
    assert served("GET", f"{path}/skips?limit=1").status_code == 200
    for verb, changed in (("pause", 1), ("pause", 0), ("resume", 1)):
        answer = served("POST", f"/v1/jobs:{verb}", {"filter": {"tag": "t", "name": "c*"}})
        assert (answer.status_code, answer.json()["changed"]) == (200, changed), answer.text
    calendar = "/v1/teams/default/calendars/days"
    assert served("PUT", calendar, {"dates": ["2026-12-25"]}).status_code == 201
    assert served("GET", "/v1/teams/default/calendars").json()["items"][0]["total"] == 1
    excluding = {"cron": "0 2 * * *", "exclude": ["days"]}
    assert served("POST", "/v1/jobs", job(name="d", schedule=excluding)).json()["next_run_at"]
    assert all(j["next_run_at"] for j in served("GET", "/v1/jobs?name=d").json()["items"])
    assert served("DELETE", calendar).status_code == 409
    assert served("POST", "/v1/jobs:delete", {"filter": {"team": "default"}}).json()["changed"] == 2
    assert served("DELETE", calendar).status_code == 204
    fresh = served("POST", "/v1/jobs", job(name="c", schedule=anchored)).json()
    assert (fresh["state"], fresh["overlap"], "pause" in fresh, "skipped" in fresh) == ("active", "allow", False, False)
