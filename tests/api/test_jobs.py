from __future__ import annotations

from typing import Any
from urllib.parse import quote

import pytest

from rsched.core.ids import JobId
from rsched.core.instants import parse_instant
from tests.api.world import NOW, World, job

AT = "2026-10-26T12:00:00Z"


def test_a_created_job_is_shown_with_its_next_run_in_its_own_zone(world: World) -> None:
    answer = world.call("POST", "/v1/jobs", job(name="nightly"))
    assert answer.status == 201
    assert answer.json["next_run_at"].endswith("T02:00:00+05:30")
    assert answer.headers["etag"] == '"1"'
    assert answer.headers["location"] == f"/v1/jobs/{answer.json['job_id']}"
    assert world.call("GET", answer.headers["location"]).json == answer.json
    assert world.waiter.waited == [f"s0 definitions {world.run(world.store.journal.get_last_id('definitions'))}"]


def test_a_repeat_with_the_same_key_and_body_gives_the_same_answer(world: World) -> None:
    body = job(schedule={"delay": "1h"})
    first = world.call("POST", "/v1/jobs", body, idempotency_key="k")
    world.clock.ms += 1000
    again = world.call("POST", "/v1/jobs", body | {"team": "default"}, idempotency_key="k")
    assert (again.status, again.json) == (201, first.json)
    assert len(world.jobs()) == 1


def test_a_key_used_for_another_body_is_refused(world: World) -> None:
    world.call("POST", "/v1/jobs", job(), idempotency_key="k")
    answer = world.call("POST", "/v1/jobs", job(timeout_s=5), idempotency_key="k")
    assert (answer.status, answer.fields) == (422, ["Idempotency-Key"])


def test_a_key_and_a_name_of_one_spelling_are_two_jobs(world: World) -> None:
    world.create(name="k")
    assert world.call("POST", "/v1/jobs", job(), idempotency_key="k").status == 201
    assert len(world.jobs()) == 2


def test_a_taken_name_is_a_conflict(world: World) -> None:
    world.create(name="nightly")
    answer = world.call("POST", "/v1/jobs", job(name="nightly"))
    assert (answer.status, answer.json["code"], answer.fields) == (409, "conflict", ["name"])


def test_a_deleted_name_that_is_created_again_has_a_new_id(world: World) -> None:
    first = world.create(name="nightly")
    assert world.call("DELETE", f"/v1/jobs/{first['job_id']}").status == 204
    assert world.call("GET", f"/v1/jobs/{first['job_id']}").status == 404
    assert world.create(name="nightly")["job_id"] != first["job_id"]


def test_a_deletion_that_the_ledger_has_not_seen_still_makes_a_new_incarnation(world: World) -> None:
    first = world.create(name="nightly")
    world.waiter.answers = False
    assert world.call("DELETE", f"/v1/jobs/{first['job_id']}").json["durability"] == "unknown"
    seen = world.run(world.ledger.jobs.get(first["job_id"]))
    assert seen is not None
    assert not seen.deleted
    world.waiter.answers = True
    assert world.create(name="nightly")["job_id"] != first["job_id"]


def test_an_unseen_record_is_answered_with_unknown_durability(world: World) -> None:
    world.waiter.answers = False
    answer = world.call("POST", "/v1/jobs", job(name="n"), idempotency_key="k")
    assert (answer.status, answer.headers["retry-after"], answer.json["durability"]) == (503, "1", "unknown")
    world.waiter.answers = True
    world.record()
    again = world.call("POST", "/v1/jobs", job(name="n"), idempotency_key="k")
    assert (again.status, again.json["job_id"]) == (201, answer.json["job_id"])


def test_an_instant_up_to_a_minute_ago_is_due_at_that_instant(world: World) -> None:
    made = world.create(schedule={"at": "2026-10-26T07:33:00Z"})
    assert world.due_of(made["job_id"]) == NOW - 20_000
    assert made["next_run_at"] is None


@pytest.mark.parametrize("name", ["a/b", "a:b c", "quote'\"", "🙂", "50%", "a?b#c", ".."])
def test_a_job_is_found_by_its_encoded_name(world: World, name: str) -> None:
    made = world.create(name=name, team="ops")
    answer = world.call("GET", f"/v1/jobs/{quote(name, safe='')}?team=ops")
    assert answer.json["job_id"] == made["job_id"]
    assert world.call("GET", f"/v1/jobs/{quote(name, safe='')}").status == 404


def test_put_by_name_creates_then_replaces(world: World) -> None:
    path = "/v1/jobs/nightly?team=ops"
    made = world.call("PUT", path, job())
    assert (made.status, made.json["name"], made.json["team"]) == (201, "nightly", "ops")
    put = world.call("PUT", path, job(timeout_s=5))
    assert (put.status, put.json["version"], put.json["timeout_s"]) == (200, 2, 5)
    assert put.json["job_id"] == made.json["job_id"]


def test_an_identical_put_changes_nothing(world: World) -> None:
    made = world.create(name="n")
    first = world.call("PUT", f"/v1/jobs/{made['job_id']}", job(schedule={"delay": "1h"}))
    world.clock.ms += 5000
    again = world.call("PUT", f"/v1/jobs/{made['job_id']}", job(schedule={"delay": "1h"}))
    assert again.json == first.json


def test_a_put_leaves_the_creating_request_repeatable(world: World) -> None:
    made = world.call("POST", "/v1/jobs", job(name="n"), idempotency_key="k").json
    world.call("PUT", f"/v1/jobs/{made['job_id']}", job(timeout_s=5))
    assert world.call("POST", "/v1/jobs", job(name="n"), idempotency_key="k").status == 201


def test_a_put_that_leaves_the_schedule_keeps_due_and_schedule_version(world: World) -> None:
    made = world.create(schedule={"every": "10s"})
    world.set_due(made["job_id"], NOW - 7)
    put = world.call("PUT", f"/v1/jobs/{made['job_id']}", job(schedule={"every": 10}, timeout_s=5))
    head = world.head_of(made["job_id"])
    assert (head.schedule_version, head.version, world.due_of(made["job_id"])) == (1, 2, NOW - 7)
    assert put.json["schedule"]["anchor"] == made["schedule"]["anchor"]


def test_a_put_of_another_schedule_bumps_the_schedule_version(world: World) -> None:
    made = world.create()
    world.call("PUT", f"/v1/jobs/{made['job_id']}", job(schedule={"delay": "1m"}))
    head = world.head_of(made["job_id"])
    assert (head.schedule_version, head.kind, world.due_of(made["job_id"])) == (2, "o", NOW + 60_000)


def test_a_paused_job_stays_paused_when_it_is_replaced(world: World) -> None:
    made = world.create()
    world.call("POST", f"/v1/jobs/{made['job_id']}/pause")
    put = world.call("PUT", f"/v1/jobs/{made['job_id']}", job(schedule={"every": "1m"}))
    assert (put.json["state"], put.json["next_run_at"], world.due_of(made["job_id"])) == ("paused", None, None)


def test_a_completed_job_that_redis_forgot_can_be_replaced_and_deleted(world: World) -> None:
    made = world.create(schedule={"at": AT}, name="once")
    world.clock.ms = parse_instant(AT)
    world.complete(made["job_id"])
    assert world.call("POST", "/v1/jobs", job(name="once")).status == 409
    assert world.call("POST", f"/v1/jobs/{made['job_id']}/pause").status == 409
    completed = world.call("GET", "/v1/jobs/once").json
    put = world.call("PUT", "/v1/jobs/once", job(schedule={"delay": "10s"}))
    assert (put.status, completed["state"], put.json["state"]) == (200, "completed", "active")
    assert put.json["version"] == completed["version"] + 1
    world.clock.ms += 10_000
    world.complete(made["job_id"])
    assert world.call("DELETE", "/v1/jobs/once").status == 204
    assert world.call("GET", "/v1/jobs/once").status == 404


def test_a_completed_one_off_put_back_unchanged_does_not_run_again(world: World) -> None:
    made = world.create(schedule={"at": "2026-10-26T07:34:00Z"})
    world.clock.ms += 40_000
    world.run_once(made["job_id"])
    world.clock.ms += 3_600_000
    put = world.call("PUT", f"/v1/jobs/{made['job_id']}", job(schedule=made["schedule"], timeout_s=5))
    assert (put.status, put.json["state"], world.due_of(made["job_id"])) == (200, "completed", None)


def test_if_match_guards_every_change(world: World) -> None:
    made = world.create()
    path = f"/v1/jobs/{made['job_id']}"
    assert world.call("PUT", path, job(timeout_s=5), if_match='"7"').status == 412
    assert world.call("POST", f"{path}/pause", if_match='"7"').status == 412
    assert world.call("DELETE", path, if_match='"7"').status == 412
    assert world.call("POST", f"{path}/pause", if_match="seven").fields == ["If-Match"]
    assert world.call("POST", f"{path}/pause", if_match='"1"').json["version"] == 2
    assert world.call("POST", f"{path}/resume", if_match='"1"').status == 412
    assert world.call("DELETE", path, if_match="*").status == 204


def test_a_put_that_lost_a_race_is_tried_again(world: World) -> None:
    made = world.create()

    async def race() -> None:
        assert (await world.store.jobs.pause(JobId(made["job_id"]))).tag == "ok"

    world.store.orders.before["put"] = race
    put = world.call("PUT", f"/v1/jobs/{made['job_id']}", job(timeout_s=5))
    assert (put.status, put.json["version"], put.json["state"]) == (200, 3, "paused")


def test_name_and_team_cannot_change(world: World) -> None:
    made = world.create(name="n")
    path = f"/v1/jobs/{made['job_id']}"
    assert world.call("PUT", path, job(name="m")).fields == ["name"]
    assert world.call("PUT", path, job(team="other")).fields == ["team"]
    assert world.call("PUT", path, job(name="n", team="default")).status == 200
    assert world.call("PUT", "/v1/jobs/n?team=a", job(team="b")).fields == ["team"]


def test_pause_and_resume_put_what_was_missed_on_record(world: World) -> None:
    made = world.create(schedule={"every": "10s"})
    path = f"/v1/jobs/{made['job_id']}"
    assert world.call("POST", f"{path}/pause").json["state"] == "paused"
    assert world.call("POST", f"{path}/pause").json["version"] == 2
    world.clock.ms += 35_000
    resumed = world.call("POST", f"{path}/resume").json
    assert (resumed["state"], world.due_of(made["job_id"])) == ("active", NOW + 40_000)
    world.record()
    (skip,) = world.call("GET", f"{path}/skips").json["items"]
    assert (skip["total"], skip["first_at"], skip["last_at"]) == (
        3,
        "2026-10-26T07:33:30.000Z",
        "2026-10-26T07:33:50.000Z",
    )


def test_a_one_off_whose_instant_passed_while_paused_is_due_at_it(world: World) -> None:
    made = world.create(schedule={"delay": "10s"})
    path = f"/v1/jobs/{made['job_id']}"
    world.call("POST", f"{path}/pause")
    world.clock.ms += 3_600_000
    assert world.call("POST", f"{path}/resume").json["state"] == "active"
    assert world.due_of(made["job_id"]) == NOW + 10_000


def test_a_repeated_delete_is_not_found_only_once_the_first_is_recorded(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = f"/v1/jobs/{world.create()['job_id']}"
    world.waiter.answers = False
    assert world.call("DELETE", path).json["durability"] == "unknown"
    look, looks = world.ledger.jobs.get, []

    async def recorded_at_the_third_look(job_id: JobId) -> Any:
        looks.append(job_id)
        if len(looks) == 3:
            await world.waiter.record()
        return await look(job_id)

    monkeypatch.setattr(world.ledger.jobs, "get", recorded_at_the_third_look)
    assert world.call("DELETE", path).status == 404
    assert len(looks) >= 3
