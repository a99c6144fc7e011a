from __future__ import annotations

from rsched.core.states import RunState
from tests.api.world import NOW, World, job


def test_a_trigger_owes_one_run_and_a_repeat_gives_the_same(world: World) -> None:
    path = f"/v1/jobs/{world.create()['job_id']}/trigger"
    first = world.call("POST", path, idempotency_key="k")
    world.clock.ms += 1000
    again = world.call("POST", path, idempotency_key="k")
    other = world.call("POST", path)
    assert (first.status, first.json["status"], first.json["attempt"]) == (202, "QUEUED", 1)
    assert again.json["run_id"] == first.json["run_id"] != other.json["run_id"]


def test_runs_are_listed_and_read_with_their_attempts(world: World) -> None:
    made = world.create(name="n")
    run_id = world.call("POST", "/v1/jobs/n/trigger").json["run_id"]
    world.release()
    assert world.start() == [run_id]
    fence = world.run_record(run_id).fence
    world.clock.ms += 254
    world.end(run_id, started_at=NOW + 4)
    listed = world.call("GET", f"/v1/jobs/{made['job_id']}/runs?limit=5").json
    assert listed["next_cursor"] is None
    (run,) = listed["items"]
    assert (run["lateness_ms"], run["duration_s"], run["status"]) == (4, 0.25, "SUCCEEDED")
    assert "attempts" not in run
    one = world.call("GET", f"/v1/runs/{run_id.replace(':', '%3A')}").json
    assert [(a["attempt"], a["fence"], a["status"]) for a in one["attempts"]] == [(1, fence, "SUCCEEDED")]


def test_runs_of_a_deleted_job_are_listed_by_its_id_and_not_by_its_name(world: World) -> None:
    job_id = world.create(name="n")["job_id"]
    run_id = world.call("POST", "/v1/jobs/n/trigger").json["run_id"]
    assert world.call("DELETE", "/v1/jobs/n").status == 204
    listed = world.call("GET", f"/v1/jobs/{job_id}/runs")
    assert [r["run_id"] for r in listed.json["items"]] == [run_id]
    assert world.call("GET", f"/v1/runs/{run_id}").status == 200
    assert world.call("GET", "/v1/jobs/n/runs").status == 404
    assert world.call("GET", f"/v1/jobs/{job_id}").status == 404


def test_cancel_ends_what_waits_and_a_repeat_says_the_same(world: World) -> None:
    run_id = world.call("POST", f"/v1/jobs/{world.create()['job_id']}/trigger").json["run_id"]
    for _ in range(2):
        answer = world.call("POST", f"/v1/runs/{run_id}/cancel")
        assert (answer.status, answer.json["status"]) == (200, "CANCELLED")


def test_a_run_that_has_ended_cannot_be_cancelled(world: World) -> None:
    run_id = world.call("POST", f"/v1/jobs/{world.create()['job_id']}/trigger").json["run_id"]
    world.release()
    world.start()
    world.end(run_id, RunState.DEAD)
    assert world.call("POST", f"/v1/runs/{run_id}/cancel").status == 409
    assert [r["run_id"] for r in world.call("GET", "/v1/dead-letters").json["items"]] == [run_id]


def test_runs_that_are_not_there_are_not_found(world: World) -> None:
    assert world.call("GET", "/v1/runs/nonsense").status == 404
    assert world.call("GET", "/v1/runs/j_0123456789abc:5").status == 404
    assert world.call("POST", "/v1/runs/j_0123456789abc:5/cancel").status == 404
    assert world.call("POST", "/v1/jobs/j_0123456789abc/trigger").status == 404


def test_a_preview_shows_the_occurrences_in_both_clocks(world: World) -> None:
    body = {"schedule": job()["schedule"], "from": "2026-10-25T00:00:00Z", "count": 2}
    answer = world.call("POST", "/v1/schedules:preview", body)
    assert answer.json["occurrences"][0] == {
        "utc": "2026-10-25T20:30:00Z",
        "local": "2026-10-26T02:00:00+05:30",
        "note": None,
    }
    assert len(answer.json["occurrences"]) == 2
    assert world.call("POST", "/v1/schedules:preview", body | {"from": "2026-10-25T00:00:00"}).fields == ["from"]
    assert world.call("POST", "/v1/schedules:preview", body | {"count": 0}).fields == ["count"]
    once = world.call("POST", "/v1/schedules:preview", {"schedule": {"delay": 0}, "from": "2026-10-25T00:00:00Z"})
    assert [o["utc"] for o in once.json["occurrences"]] == ["2026-10-25T00:00:00Z"]
    bad = world.call("POST", "/v1/schedules:preview", {"schedule": {"cron": "61 * * * *"}})
    assert bad.fields == ["schedule.cron"]
