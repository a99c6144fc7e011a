"""POST /v1/jobs:batch on a real Redis and a real Postgres: all or none, in order, and a repeat changes nothing."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from typing import Any

import pytest
import requests
from rsched_api.http.batch_body import MAX_BATCH_BYTES, MAX_ERRORS, MAX_JOBS
from rsched_api.http.deadline import left_s
from rsched_api.routes import batch

from rsched.core.settings import ApiSettings
from rsched.embedded.process import free_port
from rsched.store.jobs import PutReply
from tests.api.served import Served
from tests.api.world import World, job

pytestmark = pytest.mark.usefixtures("anyio_backend")

ACK_S = ApiSettings().ack_timeout_s


@pytest.fixture
def served(redis_url: str, database_url: str, redis_prefix: str) -> Iterator[Served]:
    options = ApiSettings(redis_url=redis_url, database_url=database_url, prefix=redis_prefix, port=free_port())
    with Served(options) as it:
        yield it


def named(*names: str | None) -> dict[str, Any]:
    return {"jobs": [job(name=n) if n is not None else job() for n in names]}


def all_names(served: Served) -> set[str]:
    return {j["name"] for j in served("GET", "/v1/jobs?limit=1000").json()["items"]}


# What a body alone is refused for needs no servers.


def test_every_wrong_field_of_every_job_is_named_at_once(world: World) -> None:
    jobs = [job(name=f"n{i}") for i in range(20)]
    jobs[3]["tags"] = ["ok", "Not Ok"]
    jobs[7]["colour"] = 1
    jobs[17]["schedule"] = {"cron": "61 * * * *"}
    jobs[18]["schedule"] = {"at": "2001-01-01T00:00:00Z"}
    jobs[19]["name"] = "n1"
    answer = world.call("POST", "/v1/jobs:batch", {"jobs": jobs})
    assert answer.status == 422
    assert answer.fields == [
        "jobs[3].tags[1]",
        "jobs[7].colour",
        "jobs[17].schedule.cron",
        "jobs[18].schedule.at",
        "jobs[19].name",
    ]
    assert "jobs[1]" in answer.json["errors"][-1]["message"]
    assert not world.jobs()


def test_what_calendars_exclude_is_left_out_of_a_batchs_answer(world: World) -> None:
    soon = world.create(schedule={"cron": "0 2 * * *", "timezone": "Asia/Kolkata"})["next_run_at"][:10]
    assert world.call("PUT", "/v1/teams/default/calendars/days", {"dates": [soon]}).status == 201
    excluding = job(schedule={"cron": "0 2 * * *", "timezone": "Asia/Kolkata", "exclude": ["days"]})
    (made,) = world.call("POST", "/v1/jobs:batch", {"jobs": [excluding]}).json["items"]
    assert made["next_run_at"] > soon + "T24"
    assert made["next_run_at"] == world.call("GET", f"/v1/jobs/{made['job_id']}").json["next_run_at"]


def test_the_waits_of_a_batch_have_by_its_size_more_time(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    left: list[float] = []
    put_one = world.store.jobs.put

    async def put(items: Any, *, atomic: bool) -> PutReply:
        left.append(left_s(60))
        replies = [await put_one([item], atomic=atomic) for item in items]
        return replies[-1]._replace(tags=["ok"] * len(items))

    monkeypatch.setattr(batch, "_WORK_S", 1)
    monkeypatch.setattr(world.store.jobs, "put", put)
    assert world.call("POST", "/v1/jobs:batch", {"jobs": [job(), job()]}).status == 201
    assert ACK_S + 1 < left[0] <= ACK_S + 2


def test_the_list_of_what_is_wrong_has_an_end(world: World) -> None:
    answer = world.call("POST", "/v1/jobs:batch", {"jobs": [job(timeout_s=0)] * (MAX_ERRORS + 50)})
    assert (answer.status, len(answer.fields)) == (422, MAX_ERRORS)


@pytest.mark.parametrize(
    ("raw", "field"),
    [
        (b"", ""),
        (b"[]", ""),
        (b"{}", "jobs"),
        (b'{"jobs": {}}', "jobs"),
        (b'{"jobs": null}', "jobs"),
        (b'{"jobs": []}', "jobs"),
        (b'{"jobs": [], "team": "a"}', "team"),
        (b'{"jobs": [1]}', "jobs[0]"),
        (b'{"jobs": [2, {"a": "]}"}]}', "jobs[0]"),
        (b'{"jobs": ["}", {}]}', "jobs[0]"),
        (b'{"jobs": [[{}]]}', "jobs[0]"),
        (b'{"jobs": [{}', ""),
    ],
)
def test_a_body_that_is_no_batch_is_refused_with_its_place(world: World, raw: bytes, field: str) -> None:
    answer = world.call("POST", "/v1/jobs:batch", raw=raw)
    assert (answer.status, answer.fields[0]) == (422, field)


def test_brackets_and_quotes_inside_of_texts_do_not_cut_a_job_up(world: World) -> None:
    tricky = '}],[{"\\" \\\\" \u00e9'
    bad = {"jobs": [job(payload={"a": [tricky, {"b": tricky}]}), job(timeout_s=0, payload=tricky)]}
    assert world.call("POST", "/v1/jobs:batch", bad).fields == ["jobs[1].timeout_s"]


def test_too_many_jobs_and_too_many_bytes_are_refused(world: World) -> None:
    many = world.call(
        "POST", "/v1/jobs:batch", raw=b'{"jobs": [' + b",".join([json.dumps(job()).encode()] * (MAX_JOBS + 1)) + b"]}"
    )
    assert (many.status, many.fields) == (422, ["jobs"])
    declared = world.call("POST", "/v1/jobs:batch", raw=b"{", content_length=str(MAX_BATCH_BYTES + 1))
    assert declared.status == 413
    one = world.call("POST", "/v1/jobs:batch", {"jobs": [job(), job(payload="x" * 300_000)]})
    assert (one.status, one.fields) == (413, ["jobs[1]"])


# Creation.


def test_jobs_come_back_in_order_as_each_can_be_read(served: Served) -> None:
    answer = served("POST", "/v1/jobs:batch", named("a", None, "b", None, "a/1"))
    assert answer.status_code == 201, answer.text
    items = answer.json()["items"]
    assert [i["name"] for i in items] == ["a", None, "b", None, "a/1"]
    assert len({i["job_id"] for i in items}) == 5
    for item in items:
        read = served("GET", f"/v1/jobs/{item['job_id']}").json()
        assert [read[k] for k in ("name", "version", "next_run_at")] == [
            item[k] for k in ("name", "version", "next_run_at")
        ]


def test_more_jobs_than_one_put_takes_are_one_batch(served: Served) -> None:
    count = 2 * batch.PUT_JOBS + 3
    names = [f"n{i}" for i in range(count)]
    answer = served("POST", "/v1/jobs:batch", named(*names), Idempotency_Key="k")
    assert [i["name"] for i in answer.json()["items"]] == names
    again = served("POST", "/v1/jobs:batch", named(*names), Idempotency_Key="k")
    assert (again.status_code, again.json()) == (201, answer.json())


@pytest.mark.parametrize("names", [("a", "b"), (None, None), ("a", None)])
def test_a_repeat_with_the_same_key_gives_the_same_answer(served: Served, names: tuple[str | None, ...]) -> None:
    first = served("POST", "/v1/jobs:batch", named(*names), Idempotency_Key="k")
    assert first.status_code == 201
    assert served("POST", "/v1/jobs:batch", named(*names), Idempotency_Key="k").json() == first.json()
    assert len(served("GET", "/v1/jobs").json()["items"]) == 2
    other = served("POST", "/v1/jobs:batch", named(*names, "c"), Idempotency_Key="k")
    assert other.status_code == 422
    assert {e["field"] for e in other.json()["errors"]} == {"jobs[0].Idempotency-Key", "jobs[1].Idempotency-Key"}
    assert len(served("GET", "/v1/jobs").json()["items"]) == 2


def test_each_taken_name_is_told_and_nothing_is_made(served: Served) -> None:
    for name in ("b", "d"):
        assert served("POST", "/v1/jobs", job(name=name)).status_code == 201
    answer = served("POST", "/v1/jobs:batch", named("a", "b", "c", "d"))
    assert answer.status_code == 409
    assert [e["field"] for e in answer.json()["errors"]] == ["jobs[1].name", "jobs[3].name"]
    assert all_names(served) == {"b", "d"}


def test_a_deleted_name_is_made_anew(served: Served) -> None:
    old = served("POST", "/v1/jobs", job(name="a")).json()["job_id"]
    assert served("DELETE", f"/v1/jobs/{old}").status_code == 204
    items = served("POST", "/v1/jobs:batch", named("a", "b")).json()["items"]
    assert items[0]["job_id"] != old
    assert all_names(served) == {"a", "b"}


def test_a_name_that_only_redis_knows_undoes_the_slices_before_it(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch, "PUT_JOBS", 2)
    served.pause_recording()
    assert served("POST", "/v1/jobs?ack=redis", job(name="e")).status_code == 201
    refused = served("POST", "/v1/jobs:batch?ack=redis", named("a", "b", "c", "d", "e", "f"), Idempotency_Key="k")
    assert refused.status_code == 409
    assert [e["field"] for e in refused.json()["errors"]] == ["jobs[4].name"]
    for name in "abcdf":
        assert served("GET", f"/v1/jobs/{name}").status_code == 404
    served.go_on_recording()
    assert served("DELETE", "/v1/jobs/e").status_code == 204
    made = served("POST", "/v1/jobs:batch", named("a", "b", "c", "d", "e", "f"), Idempotency_Key="k")
    assert made.status_code == 201
    assert all_names(served) == set("abcdef")


def test_a_repeat_finishes_what_a_lost_try_began(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch, "PUT_JOBS", 2)
    created = batch._Creation._put_slice
    calls = 0

    async def dies_at_the_second(self: Any, plans: Any) -> None:
        nonlocal calls
        calls += 1
        if calls == 2:
            raise batch.DurabilityUnknown("the link broke")
        await created(self, plans)

    monkeypatch.setattr(batch._Creation, "_put_slice", dies_at_the_second)
    lost = served("POST", "/v1/jobs:batch", named("a", "b", "c", None), Idempotency_Key="k")
    assert (lost.status_code, lost.json()["durability"]) == (503, "unknown")
    settled = served("POST", "/v1/jobs:batch", named("a", "b", "c", None), Idempotency_Key="k")
    assert settled.status_code == 201
    assert served("POST", "/v1/jobs:batch", named("a", "b", "c", None), Idempotency_Key="k").json() == settled.json()
    assert len(served("GET", "/v1/jobs").json()["items"]) == 4


def test_two_batches_that_share_a_name_at_once_never_make_half_of_one(served: Served) -> None:
    codes: dict[str, int] = {}

    def send(letter: str) -> None:
        names = [f"{letter}{i}" for i in range(5)] + ["shared"]
        codes[letter] = served("POST", "/v1/jobs:batch", named(*names)).status_code

    threads = [threading.Thread(target=send, args=(letter,)) for letter in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(codes.values()) == [201, 409, 409, 409]
    (winner,) = [letter for letter, code in codes.items() if code == 201]
    assert all_names(served) == {f"{winner}{i}" for i in range(5)} | {"shared"}


def test_a_large_batch_does_not_hold_up_the_requests_of_others(served: Served) -> None:
    body = json.dumps({"jobs": [job(name=f"n{i}", payload={"k": list(range(50))}) for i in range(MAX_JOBS)]})
    status: list[int] = []

    def send() -> None:
        status.append(requests.post(f"{served.url}/v1/jobs:batch?ack=redis", data=body, timeout=60).status_code)

    thread = threading.Thread(target=send)
    thread.start()
    took = []
    with requests.Session() as session:
        while thread.is_alive():
            took.append(session.get(f"{served.url}/healthz", timeout=20).elapsed.total_seconds())
    assert status == [201]
    # The recorder of these tests shares the process, so this is far from tight.
    assert max(took) < 0.5
    assert sorted(took)[len(took) // 2] < 0.1
