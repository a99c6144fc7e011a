"""PATCH /v1/jobs/{id or name}: a JSON merge patch, with the checks and the durability of a PUT."""

from __future__ import annotations

from typing import Any

import pytest
from rsched_api.routes.patch import merge

from tests.api.world import World, job

# The examples of RFC 7396, appendix A.
EXAMPLES: list[tuple[Any, Any, Any]] = [
    ({"a": "b"}, {"a": "c"}, {"a": "c"}),
    ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
    ({"a": "b"}, {"a": None}, {}),
    ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
    ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
    ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
    ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
    ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
    (["a", "b"], ["c", "d"], ["c", "d"]),
    ({"a": "b"}, ["c"], ["c"]),
    ({"a": "foo"}, None, None),
    ({"a": "foo"}, "bar", "bar"),
    ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
    ([1, 2], {"a": "b", "c": None}, {"a": "b"}),
    ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
]


@pytest.mark.parametrize(("target", "patch", "expected"), EXAMPLES)
def test_a_patch_is_merged_as_the_standard_says(target: Any, patch: Any, expected: Any) -> None:
    assert merge(target, patch) == expected


def test_what_is_given_changes_and_all_else_stays(world: World) -> None:
    made = world.create(name="n", team="ops", tags=["a"], timeout_s=5, payload={"x": 1, "y": 2})
    answer = world.call("PATCH", "/v1/jobs/n?team=ops", {"tags": ["b"], "payload": {"x": None, "z": 3}})
    assert (answer.status, answer.headers["etag"]) == (200, '"2"')
    changed = {"tags": ["b"], "payload": {"y": 2, "z": 3}, "version": 2, "updated_at": answer.json["updated_at"]}
    assert answer.json == made | changed
    assert world.call("GET", f"/v1/jobs/{made['job_id']}").json == answer.json
    assert len(world.waiter.waited) == 2


def test_null_takes_an_optional_field_away_or_sets_its_default(world: World) -> None:
    made = world.create(timeout_s=5, priority="high", overlap="skip", retry={"max_attempts": 9}, payload=1)
    fields = ("timeout_s", "priority", "overlap", "retry", "payload")
    answer = world.call("PATCH", f"/v1/jobs/{made['job_id']}", dict.fromkeys(fields))
    plain = world.create()
    assert {k: answer.json[k] for k in fields} == {k: plain[k] for k in fields}


def test_a_schedule_is_merged_member_by_member(world: World) -> None:
    made = world.create(schedule={"cron": "0 2 * * *", "timezone": "Asia/Kolkata", "window": "5m"})
    path = f"/v1/jobs/{made['job_id']}"
    answer = world.call("PATCH", path, {"schedule": {"cron": "0 3 * * *", "window": None}})
    assert answer.json["schedule"] == {"cron": "0 3 * * *", "timezone": "Asia/Kolkata"}
    assert answer.json["next_run_at"].endswith("T03:00:00+05:30")


def test_a_schedule_of_another_kind_names_what_goes(world: World) -> None:
    made = world.create()
    path = f"/v1/jobs/{made['job_id']}"
    both = world.call("PATCH", path, {"schedule": {"every": "5m"}})
    assert (both.status, both.fields) == (422, ["schedule"])
    answer = world.call("PATCH", path, {"schedule": {"cron": None, "timezone": None, "every": "5m"}})
    assert (answer.status, answer.json["schedule"]["every"]) == (200, "5m")
    several = world.call("PATCH", path, {"schedule": None, "schedules": [{"every": "1h"}, {"cron": "@daily"}]})
    assert (several.status, len(several.json["schedules"])) == (200, 2)


def test_a_target_of_another_kind_names_what_goes(world: World) -> None:
    made = world.create()
    path = f"/v1/jobs/{made['job_id']}"
    assert world.call("PATCH", path, {"target": {"type": "function", "function": "f"}}).status == 422
    answer = world.call("PATCH", path, {"target": {"type": "function", "function": "f", "url": None}})
    assert answer.json["target"] == {"type": "function", "function": "f"}


@pytest.mark.parametrize(
    ("patch", "field"),
    [
        ({"timeout_s": -1}, "timeout_s"),
        ({"schedule": {"cron": "61 * * * *"}}, "schedule.cron"),
        ({"schedule": {"timezone": "Europe/Berln"}}, "schedule.timezone"),
        ({"target": None}, "target"),
        ({"target": {"url": "ftp://x"}}, "target.url"),
        ({"tgas": None}, "tgas"),
        ({"schedule": {"tz": None}}, "schedule.tz"),
        ({"target": {"uri": None}}, "target.uri"),
        ({"name": "other"}, "name"),
        ({"name": None}, "name"),
        ({"team": "other"}, "team"),
        ({"tags": "x"}, "tags"),
        ({"payload": "\0"}, "payload"),
    ],
)
def test_what_cannot_stand_is_named_and_nothing_changes(world: World, patch: dict[str, Any], field: str) -> None:
    made = world.create(name="n")
    answer = world.call("PATCH", f"/v1/jobs/{made['job_id']}", patch)
    assert (answer.status, answer.fields) == (422, [field])
    assert world.call("GET", f"/v1/jobs/{made['job_id']}").json == made


def test_the_name_and_team_that_a_job_has_may_be_said(world: World) -> None:
    world.create(name="n")
    answer = world.call("PATCH", "/v1/jobs/n", {"name": "n", "team": "default", "timeout_s": 5})
    assert (answer.status, answer.json["timeout_s"]) == (200, 5)


def test_a_patch_is_an_object_of_one_of_two_media_types(world: World) -> None:
    path = f"/v1/jobs/{world.create()['job_id']}"
    merge_patch = "application/merge-patch+json; charset=utf-8"
    assert world.call("PATCH", path, {"timeout_s": 5}, content_type=merge_patch).status == 200
    assert world.call("PATCH", path, {"timeout_s": 6}, content_type="application/json").status == 200
    other = world.call("PATCH", path, [], content_type="application/json-patch+json")
    assert (other.status, other.fields) == (422, ["Content-Type"])
    assert world.call("PATCH", path, []).status == 422
    assert world.call("PATCH", path, raw=b"{").status == 422


def test_if_match_guards_a_patch(world: World) -> None:
    path = f"/v1/jobs/{world.create()['job_id']}"
    assert world.call("PATCH", path, {"timeout_s": 5}, if_match='"7"').status == 412
    assert world.call("PATCH", path, {"timeout_s": 5}, if_match='"1"').json["version"] == 2
    assert world.call("PATCH", path, {"timeout_s": 6}, if_match='"1"').status == 412


def test_a_repeat_is_known_under_the_version_before_and_a_delay_begins_once(world: World) -> None:
    path = f"/v1/jobs/{world.create()['job_id']}"
    patch = {"schedule": {"cron": None, "timezone": None, "delay": "1h"}}
    first = world.call("PATCH", path, patch, if_match='"1"')
    assert first.status == 200, first.body
    world.clock.ms += 5000
    again = world.call("PATCH", path, patch, if_match='"1"')
    assert (again.status, again.json) == (200, first.json)


def test_a_patch_that_changes_nothing_keeps_the_version(world: World) -> None:
    made = world.create(tags=["a"])
    path = f"/v1/jobs/{made['job_id']}"
    assert world.call("PATCH", path, {}).json == made
    assert world.call("PATCH", path, {"tags": ["a"], "overlap": None}).json == made


def test_a_patch_is_merged_anew_into_what_another_change_left(world: World) -> None:
    made = world.create(tags=["a"])
    path = f"/v1/jobs/{made['job_id']}"

    async def race() -> None:
        await world.store.jobs.pause(made["job_id"])

    world.store.orders.before["put"] = race
    answer = world.call("PATCH", path, {"timeout_s": 5})
    assert (answer.status, answer.json["version"], answer.json["state"]) == (200, 3, "paused")


def test_a_put_that_came_after_a_patch_is_not_taken_for_it(world: World) -> None:
    path = f"/v1/jobs/{world.create()['job_id']}"
    world.call("PATCH", path, {"timeout_s": 5})
    world.call("PUT", path, job(timeout_s=60))
    assert world.call("PATCH", path, {"timeout_s": 5}).json["timeout_s"] == 5


def test_there_is_nothing_to_patch_where_there_is_no_job(world: World) -> None:
    assert world.call("PATCH", "/v1/jobs/none", {"timeout_s": 5}).status == 404
