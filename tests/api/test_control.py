"""Pauses, bulk verbs, triggers with their own payload, backfills, calendars: what the handlers promise."""

from __future__ import annotations

from typing import Any

import pytest

from rsched.core.ids import JobId
from rsched.core.jobs.packed import RunEvent
from tests.api.world import NOW, World, job

SECOND = 1000


def path(made: Any, verb: str = "") -> str:
    return f"/v1/jobs/{made['job_id']}{verb}"


def test_a_pause_is_shown_as_it_was_asked_for_and_can_be_changed(world: World) -> None:
    made = world.create()
    paused = world.call("POST", path(made, "/pause"), {"note": "a|b\n", "until": "2h", "missed": "run_all"}).json
    assert paused["pause"] == {"note": "a|b\n", "until": "2026-10-26T09:33:20.000Z", "missed": "run_all"}
    assert world.call("POST", path(made, "/pause")).json == paused
    longer = world.call("POST", path(made, "/pause"), {"until": "2026-10-27T00:00:00+01:00"}).json
    assert longer["pause"] == {"note": None, "until": "2026-10-26T23:00:00.000Z", "missed": "skip"}
    assert longer["version"] == paused["version"] + 1


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"until": "2020-01-01T00:00:00Z"}, "until"),
        ({"until": "2030-01-01T00:00:00"}, "until"),
        ({"until": "soon"}, "until"),
        ({"until": 0}, "until"),
        ({"note": "x" * 501}, "note"),
        ({"note": "\0"}, "note"),
        ({"missed": "all"}, "missed"),
        ({"reason": "x"}, "reason"),
    ],
)
def test_a_pause_that_cannot_be_is_refused_by_field(world: World, body: Any, field: str) -> None:
    made = world.create()
    answer = world.call("POST", path(made, "/pause"), body)
    assert (answer.status, answer.fields) == (422, [field])


def test_a_replaced_job_keeps_its_pause_as_it_was(world: World) -> None:
    made = world.create(schedule={"every": "10s"})
    before = world.call("POST", path(made, "/pause"), {"note": "n", "until": "1h", "missed": "run_once"}).json["pause"]
    assert world.call("PUT", path(made), job(schedule={"every": "10s"}, timeout_s=5)).json["pause"] == before
    assert world.call("PUT", path(made), job(schedule={"every": "20s"})).json["pause"] == before


@pytest.mark.parametrize(
    ("said", "asked", "skipped", "caught_up", "run_at"),
    [
        (None, None, [(NOW + 10 * SECOND, NOW + 30 * SECOND, 3)], [], []),
        ("run_all", None, [], [(NOW + 10 * SECOND, NOW + 30 * SECOND)], []),
        ("run_all", "run_once", [(NOW + 10 * SECOND, NOW + 20 * SECOND, 2)], [], [NOW + 30 * SECOND]),
    ],
)
def test_resume_does_with_what_was_missed_as_asked_or_as_the_pause_said(
    world: World, said: Any, asked: Any, skipped: Any, caught_up: Any, run_at: Any
) -> None:
    made = world.create(schedule={"every": "10s"})
    job_id = JobId(made["job_id"])
    world.call("POST", path(made, "/pause"), {"missed": said} if said else {})
    world.clock.ms += 35 * SECOND
    answer = world.call("POST", path(made, "/resume"), {"missed": asked} if asked else None)
    assert answer.status == 200
    assert "pause" not in answer.json
    world.record()
    assert (
        world.run(world.ledger.jobs.pending_catch_ups(job_id, schedule_version=world.head_of(job_id).schedule_version))
        == caught_up
    )
    assert world.runs() == [f"{job_id}:{at}" for at in run_at]
    skips, _ = world.run(world.ledger.skips.list(job_id, cursor=None, limit=10))
    assert [(skip.first_at, skip.last_at, skip.total) for skip in skips] == skipped


@pytest.mark.parametrize("change", [{"overlap": "skip"}, {"schedule": {"every": "10s", "window": "5s"}}])
def test_a_change_of_overlap_or_window_claims_what_is_staged_anew(world: World, change: Any) -> None:
    made = world.create(schedule={"every": "10s"})
    assert world.call("PUT", path(made), job(schedule={"every": "10s"}) | change).status == 200
    assert (world.head_of(made["job_id"]).schedule_version, world.due_of(made["job_id"])) == (2, NOW + 10 * SECOND)


def test_what_is_caught_up_goes_on_through_every_edit_that_leaves_the_schedule(world: World) -> None:
    made = world.create(schedule={"every": "10s"})
    for change, keeps in (({"overlap": "skip"}, 1), ({"timeout_s": 5}, 1), ({"overlap": "queue_all"}, 1)):
        assert world.call("PUT", path(made), job(schedule={"every": "10s"}) | change).status == 200
        assert world.head_of(made["job_id"]).keeps == keeps
    assert world.call("PUT", path(made), job(schedule={"every": "20s"})).status == 200
    assert world.head_of(made["job_id"]).keeps == 0


@pytest.mark.parametrize("change", [{"misfire": {"grace": "5m"}}, {"misfire_policy": "skip"}, {"payload": 1}])
def test_a_change_of_anything_else_leaves_what_is_staged(world: World, change: Any) -> None:
    made = world.create(schedule={"every": "10s"})
    world.set_due(made["job_id"], NOW - 7)
    assert world.call("PUT", path(made), job(schedule={"every": "10s"}) | change).status == 200
    assert (world.head_of(made["job_id"]).schedule_version, world.due_of(made["job_id"])) == (1, NOW - 7)


def test_a_one_off_that_has_begun_does_not_begin_again_when_its_overlap_changes(world: World) -> None:
    made = world.create(schedule={"delay": "10s"})
    world.clock.ms += 11 * SECOND
    world.claim(made["job_id"])
    put = world.call("PUT", path(made), job(schedule=made["schedule"], overlap="skip"))
    assert (put.status, world.head_of(made["job_id"]).schedule_version, world.due_of(made["job_id"])) == (200, 1, None)


def test_max_runs_of_the_same_rule_goes_on_counting(world: World) -> None:
    made = world.create(schedule={"every": "10s", "max_runs": 5})
    world.clock.ms += 25 * SECOND
    put = world.call("PUT", path(made), job(schedule={"every": "10s", "max_runs": 5}, timeout_s=5)).json
    assert (put["schedule"], world.head_of(made["job_id"]).schedule_version) == (made["schedule"], 1)


def test_a_trigger_has_a_payload_of_its_own_and_its_key_is_for_that_payload(world: World) -> None:
    made = world.create(payload={"all": True})
    first = world.call("POST", path(made, "/trigger"), {"payload": [1, None]}, idempotency_key="k")
    assert (first.status, "payload" in first.json) == (202, False)
    assert world.call("GET", f"/v1/runs/{first.json['run_id']}").json["payload"] == [1, None]
    again = world.call("POST", path(made, "/trigger"), {"payload": [1, None]}, idempotency_key="k")
    assert (again.status, again.json["run_id"]) == (202, first.json["run_id"])
    for other in ({"payload": [2]}, {}, None):
        answer = world.call("POST", path(made, "/trigger"), other, idempotency_key="k")
        assert (answer.status, answer.fields) == (422, ["Idempotency-Key"])


def test_a_trigger_may_be_judged_by_another_overlap_policy_only_where_runs_are_tracked(world: World) -> None:
    free, tracked = world.create(), world.create(overlap="skip")
    refused = world.call("POST", path(free, "/trigger"), {"overlap": "skip"})
    assert (refused.status, refused.fields) == (409, ["overlap"])
    assert world.call("POST", path(free, "/trigger"), {"overlap": "allow"}).status == 202
    run = world.call("POST", path(tracked, "/trigger"), {"overlap": "allow"}).json["run_id"]
    assert world.run_record(run).flags == "Ma"


def test_a_backfill_owes_what_has_no_run_and_a_repeat_owes_nothing(world: World) -> None:
    made = world.create(schedule={"every": "10s", "anchor": "2026-10-26T00:00:00Z"})
    wanted = {"from": "2026-10-26T01:00:00Z", "to": "2026-10-26T01:01:00Z"}
    start = NOW - NOW % 86_400_000 + 3_600_000
    trigger = world.call("POST", path(made, "/trigger")).json["run_id"]
    ran = RunEvent(f"{made['job_id']}:{start + 20_000}", world.run_record(trigger), NOW, "")
    assert world.run(world.ledger.write.record("s1", stream="journal", expected="0-0", new="1-0", events=[ran]))
    dry = world.call("POST", path(made, "/backfill"), wanted | {"dry_run": True})
    assert (dry.status, dry.json["occurrences"], _catch_ups(world, made)) == (202, 5, [])
    answer = world.call("POST", path(made, "/backfill"), wanted).json
    assert (answer["occurrences"], answer["already"], answer["ranges"]) == (5, 1, 2)
    assert (answer["first"], answer["last"]) == ("2026-10-26T01:00:00.000Z", "2026-10-26T01:00:50.000Z")
    # At most ten a second: the second range waits for the two occurrences of the first.
    assert _catch_ups(world, made) == [(start, start + 10_000, NOW), (start + 30_000, start + 50_000, NOW + 200)]
    again = world.call("POST", path(made, "/backfill"), wanted).json
    assert (again["occurrences"], again["already"], len(_catch_ups(world, made))) == (0, 6, 2)


def _catch_ups(world: World, made: Any) -> list[tuple[int, int, int]]:
    """The job's catch-up ranges: first and last occurrence, and when each comes up next, ms."""
    job_id = JobId(made["job_id"])
    world.record()
    ranges = sorted(
        world.run(world.ledger.jobs.pending_catch_ups(job_id, schedule_version=world.head_of(job_id).schedule_version))
    )
    due = [
        int(at)
        for _, at in world.run(world.store.connection.client.zrange(world.store.keys.catchup, 0, -1, withscores=True))
    ]
    return [(first, last, at) for (first, last), at in zip(ranges, due, strict=True)]


@pytest.mark.parametrize(
    ("span", "field"),
    [
        ({"from": "2026-10-26T01:00:00Z", "to": "2030-01-01T00:00:00Z"}, "to"),
        ({"from": "2026-10-26T01:00:00Z", "to": "2026-10-26T01:00:00Z"}, "from"),
        ({"from": "2026-10-26"}, "from"),
        ({"from": "2020-01-01T00:00:00Z"}, "from"),
        ({}, "from"),
    ],
)
def test_a_backfill_that_cannot_be_is_refused_by_field(world: World, span: Any, field: str) -> None:
    made = world.create(schedule={"every": "10s"})
    answer = world.call("POST", path(made, "/backfill"), span)
    assert (answer.status, answer.fields) == (422, [field])


def test_a_paused_job_is_not_backfilled(world: World) -> None:
    made = world.create()
    world.call("POST", path(made, "/pause"))
    answer = world.call("POST", path(made, "/backfill"), {"from": "2026-10-01T00:00:00Z"})
    assert answer.status == 409
    assert "resume it first" in answer.json["detail"]


def test_bulk_verbs_change_what_matches_once_and_wait_once_for_all_of_it(world: World) -> None:
    one, two, other = world.create(team="a"), world.create(team="a"), world.create(team="b")
    dry = world.call("POST", "/v1/jobs:pause", {"filter": {"team": "a"}, "dry_run": True}).json
    assert (dry["matched"], dry["changed"], {i["job_id"] for i in dry["items"]}) == (
        2,
        0,
        {one["job_id"], two["job_id"]},
    )
    world.waiter.waited.clear()
    paused = world.call("POST", "/v1/jobs:pause", {"filter": {"team": "a"}, "note": "n"})
    # One for what was changed before, which might match, and one for all of its own changes.
    assert (paused.status, paused.json["changed"], len(world.waiter.waited)) == (200, 2, 2)
    assert [world.head_of(j["job_id"]).state.value for j in (one, two, other)] == ["paused", "paused", "active"]
    again = world.call("POST", "/v1/jobs:pause", {"filter": {"team": "a"}, "note": "n"}).json
    assert (again["changed"], again["unchanged"], again["failed"]) == (0, 2, [])
    assert world.call("POST", "/v1/jobs:resume", {"filter": {"team": "a"}}).json["changed"] == 2
    assert world.call("POST", "/v1/jobs:delete", {"filter": {"team": "a"}}).json["changed"] == 2
    assert world.call("POST", "/v1/jobs:delete", {"filter": {"team": "a"}}).json["matched"] == 0


@pytest.mark.parametrize(
    ("body", "field"),
    [({}, "filter"), ({"filter": {}}, "filter"), ({"filter": {"team": "A"}}, "filter.team"),
     ({"filter": {"state": "asleep"}}, "filter.state"), ({"filter": {"name": ""}}, "filter.name")],
)  # fmt: skip
def test_bulk_verbs_refuse_a_filter_that_may_not_be_meant(world: World, body: Any, field: str) -> None:
    answer = world.call("POST", "/v1/jobs:delete", body)
    assert (answer.status, answer.fields) == (422, [field])


def test_a_calendar_is_made_changed_and_deleted_once_no_job_uses_it(world: World) -> None:
    url = "/v1/teams/default/calendars/holidays"
    body = {"dates": ["2026-12-25", "2026-12-24/2027-01-02"]}
    made = world.call("PUT", url, body)
    assert (made.status, made.json["version"], made.headers["etag"]) == (201, 1, '"1"')
    assert world.call("PUT", url, body).json == made.json == world.call("GET", url).json
    assert world.call("PUT", url, {"dates": []}, if_match='"7"').status == 412
    assert world.call("GET", "/v1/teams/default/calendars").json["items"] == [
        {"team": "default", "name": "holidays", "version": 1, "total": 2}
    ]
    uses = world.create(name="nightly", schedule={"cron": "0 2 * * *", "exclude": ["holidays"]})
    assert world.call("GET", path(uses)).json["next_run_at"] == uses["next_run_at"] is not None
    refused = world.call("DELETE", url)
    assert (refused.status, "nightly" in refused.json["detail"]) == (409, True)
    world.call("DELETE", path(uses))
    assert [world.call("DELETE", url).status for _ in range(2)] == [204, 404]
    assert world.call("PUT", url, body).status == 201


@pytest.mark.parametrize("dates", [["2026-02-30"], ["holidays"], "2026-12-25", ["2027-01-01/2026-01-01"]])
def test_a_calendar_holds_dates_alone(world: World, dates: Any) -> None:
    answer = world.call("PUT", "/v1/teams/default/calendars/holidays", {"dates": dates})
    assert (answer.status, answer.fields[0].partition("[")[0]) == (422, "dates")


def test_a_job_tells_what_it_skipped_and_why(world: World) -> None:
    made = world.create(schedule={"every": "10s"})
    world.call("POST", path(made, "/pause"))
    world.clock.ms += 35 * SECOND
    world.call("POST", path(made, "/resume"))
    assert world.call("GET", path(made)).json["skipped"] == {"paused": 3}
    (skip,) = world.call("GET", path(made, "/skips")).json["items"]
    assert (skip["first_at"], skip["total"], skip["reason"]) == ("2026-10-26T07:33:30.000Z", 3, "paused")


def test_a_redis_that_is_too_full_says_so_and_when_to_try_again(world: World) -> None:
    made = world.create(schedule={"delay": "10s"}, name="once")
    world.clock.ms += 10 * SECOND
    world.complete(made["job_id"])
    world.run(world.store.recovery.set_load_level(1))
    for answer in (
        world.call("POST", "/v1/jobs", job()),
        world.call("PUT", path(made), job()),
        world.call("DELETE", path(made)),
    ):
        assert (answer.status, answer.json["code"], answer.headers["retry-after"]) == (503, "unavailable", "1")
