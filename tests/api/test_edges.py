from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from rsched_api import openapi
from rsched_api.app import ROUTES
from rsched_api.http.deadline import Deadline
from rsched_api.main import check_bind
from rsched_api.routes import health

from rsched.core.errors import Misconfigured
from rsched.core.ids import PARTITIONS
from rsched.core.settings import ApiSettings
from tests.api.world import WORKER, World, job


def test_errors_are_problem_documents(world: World) -> None:
    missing = world.call("GET", "/nowhere")
    assert missing.headers["content-type"] == "application/problem+json"
    assert set(missing.json) >= {"type", "title", "status", "code", "detail", "errors"}
    wrong = world.call("PATCH", "/v1/jobs")
    assert (wrong.status, wrong.json["code"], set(wrong.headers["allow"].split(", "))) == (
        405,
        "method_not_allowed",
        {"POST", "GET", "HEAD"},
    )


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("limit=0", "limit"),
        ("limit=1001", "limit"),
        ("limit=x", "limit"),
        ("limit=%D9%A3", "limit"),
        ("state=asleep", "state"),
        ("state=deleted", "state"),
        ("team=A", "team"),
        ("q=%00", "q"),
        ("colour=red", "colour"),
        ("q=a&q=b", "q"),
    ],
)
def test_bad_parameters_are_named(world: World, query: str, field: str) -> None:
    answer = world.call("GET", f"/v1/jobs?{query}")
    assert (answer.status, answer.fields) == (422, [field])


def test_lists_show_what_is_there(world: World) -> None:
    made = world.create(name="n")
    assert world.call("GET", "/v1/jobs?team=default&state=active&limit=1").json == {
        "items": [made],
        "next_cursor": None,
    }
    assert world.call("GET", "/v1/jobs?team=other").json["items"] == []


def test_a_body_over_the_limit_is_refused_and_nothing_is_created(world: World) -> None:
    big = world.call("POST", "/v1/jobs", job(payload="x" * 1_000_000))
    just_over = world.call("POST", "/v1/jobs", job(payload="x" * 66_000))
    declared = world.call("POST", "/v1/jobs", raw=b"{", content_length="99999999")
    assert [big.status, just_over.status, declared.status] == [413, 413, 413]
    assert world.call("POST", "/v1/jobs", job(payload="x" * 60_000)).status == 201
    assert len(world.jobs()) == 1


def test_readiness_says_what_is_missing(world: World) -> None:
    assert world.call("GET", "/healthz").json == {"status": "ok"}
    world.run(world.store.partitions.acquire("s", lease_ms=60_000, take=range(PARTITIONS)))
    world.start()
    with world.recorder():
        assert world.call("GET", "/readyz").json == {"ready": True, "reasons": []}
    world.run(world.store.partitions.acquire("s", lease_ms=60_000, give=range(24)))
    world.run(world.store.processes.forget_worker(WORKER))
    world.run(world.store.recovery.close())
    answer = world.call("GET", "/readyz")
    assert answer.status == 503
    assert [r.split(";")[0] for r in answer.json["reasons"]] == [
        "no recorder is alive",
        "shard s0 is not open",
        "24 of 1024 partitions have no owner yet",
        "no worker is alive",
    ]


def test_metrics_count_by_endpoint_and_not_by_path(world: World) -> None:
    world.call("GET", "/v1/jobs/one")
    world.call("GET", "/v1/jobs/two")
    text = world.call("GET", "/metrics").body.decode()
    assert 'rsched_api_requests_total{endpoint="get_job",method="GET",status="404"} 2.0' in text


def test_the_checked_in_document_is_the_served_one(world: World) -> None:
    checked_in = Path(openapi.__file__).parents[1] / "openapi.json"
    assert checked_in.read_bytes() == world.call("GET", "/openapi.json").body


def test_the_document_has_every_route_and_no_other() -> None:
    served = {(r.path, m.lower()) for r in ROUTES for m in (r.methods or ()) if m != "HEAD"}
    described = {(path, method) for path, methods in openapi.document()["paths"].items() for method in methods}
    assert served == described


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.1", "example.org", ""])
def test_other_addresses_than_loopback_need_an_explicit_setting(host: str) -> None:
    with pytest.raises(Misconfigured, match="RSCHED_API_ALLOW_INSECURE_BIND"):
        check_bind(ApiSettings(host=host))
    check_bind(ApiSettings(host=host, allow_insecure_bind=True))


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "localhost"])
def test_loopback_addresses_are_fine(host: str) -> None:
    check_bind(ApiSettings(host=host))


def test_a_server_that_hangs_is_answered_for_within_the_deadline(world: World) -> None:
    async def hangs(scope: Any, receive: Any, send: Any) -> None:
        await asyncio.Event().wait()

    world.call.app = Deadline(hangs, seconds=0.01, margin_s=0, slack_s=0)  # type: ignore[assignment]
    read, write = world.call("GET", "/v1/jobs"), world.call("POST", "/v1/jobs")
    assert (read.status, read.json["code"]) == (503, "unavailable")
    assert (write.status, write.json["durability"], write.headers["retry-after"]) == (503, "unknown", "1")


def test_readiness_names_a_server_that_hangs(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "CHECK_S", 0.5)

    async def hangs() -> bool:
        await asyncio.Event().wait()
        return True

    world.store.recovery.is_open = hangs  # type: ignore[method-assign]
    assert "Redis did not answer within 0.5 s" in world.call("GET", "/readyz").json["reasons"]


def test_requests_are_counted_by_what_they_asked_for(world: World) -> None:
    world.create(name="n")
    world.call("POST", "/v1/jobs/n/pause?ack=redis")
    counted = world.call("GET", "/metrics").body.decode()
    for endpoint, status in (("post_job", 201), ("pause_job", 200)):
        line = f'rsched_api_requests_total{{endpoint="{endpoint}",method="POST",status="{status}"}} 1.0'
        assert line in counted, [x for x in counted.splitlines() if "requests_total" in x]
