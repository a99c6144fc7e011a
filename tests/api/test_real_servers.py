"""The API on a real Redis and a real Postgres, over HTTP."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import anyio
import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from rsched_api.main import run_api
from rsched_api.openapi import OPERATIONS
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from rsched.core.settings import ApiSettings
from rsched.runtime.clock import SystemClock
from tests.api.conftest import job
from tests.api.pump import recording

# The servers' fixtures are asynchronous, these tests are not.
pytestmark = pytest.mark.usefixtures("anyio_backend")

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])


class Served:
    """run_api and a small recorder on a thread of their own."""

    def __init__(self, options: ApiSettings) -> None:
        self.url = f"http://127.0.0.1:{options.port}"
        self._options = options
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_until_complete, args=(self._serve(),))

    async def _serve(self) -> None:
        self._stop, self._going = anyio.Event(), asyncio.Event()
        self._going.set()
        o = self._options
        async with recording(o.redis_url, o.database_url, prefix=o.prefix, going=self._going):
            await run_api(self._options, self._stop, clock=SystemClock())

    def __enter__(self) -> Served:
        self._thread.start()
        deadline = time.monotonic() + 20  # noqa: TID251
        while True:
            try:
                if requests.get(f"{self.url}/healthz", timeout=5).status_code == 200:
                    return self
            except requests.ConnectionError:
                assert self._thread.is_alive()
                assert time.monotonic() < deadline  # noqa: TID251
                threading.Event().wait(0.02)

    def __exit__(self, *error: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(10)
        assert not self._thread.is_alive()
        self._loop.close()

    def pause_recording(self) -> None:
        self._loop.call_soon_threadsafe(self._going.clear)

    def go_on_recording(self) -> None:
        self._loop.call_soon_threadsafe(self._going.set)

    def __call__(self, method: str, path: str, body: Any = None, **headers: str) -> requests.Response:
        data = None if body is None else json.dumps(body)
        named = {k.replace("_", "-"): v for k, v in headers.items()}
        return requests.request(method, self.url + path, data=data, headers=named, timeout=20)


@pytest.fixture
def served(redis_url: str, database_url: str, redis_prefix: str) -> Iterator[Served]:
    options = ApiSettings(redis_url=redis_url, database_url=database_url, prefix=redis_prefix, port=free_port())
    with Served(options) as it:
        yield it


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
