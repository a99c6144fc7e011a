"""Verbs on jobs that Redis has lost, while they are being restored: nothing is missing, and no change is lost."""

from __future__ import annotations

from typing import Any

import pytest

from rsched.core.ids import JobId
from tests.api.world import World, job

SPAN = {"from": "2026-10-20T00:00:00Z", "to": "2026-10-21T00:00:00Z"}
VERBS: dict[str, tuple[str, str, Any]] = {
    "PUT": ("PUT", "", job(timeout_s=7)),
    "DELETE": ("DELETE", "", None),
    "pause": ("POST", "/pause", {"note": "n"}),
    "pause without a body": ("POST", "/pause", None),
    "resume": ("POST", "/resume", None),
    "trigger": ("POST", "/trigger", None),
    "backfill": ("POST", "/backfill", SPAN),
}
each_verb = pytest.mark.parametrize("verb", VERBS)


def refused(answer: Any) -> None:
    assert (answer.status, answer.json["code"]) == (503, "unavailable"), answer.body
    assert int(answer.headers["retry-after"]) > 0
    assert "being restored" in answer.json["detail"]


@each_verb
@pytest.mark.parametrize("by", ["job_id", "name"])
@pytest.mark.parametrize("state", ["active", "paused"])
def test_a_job_that_is_not_back_yet_is_waited_for(world: World, verb: str, by: str, state: str) -> None:
    made = world.create(name="n")
    if state == "paused":
        world.call("POST", "/v1/jobs/n/pause")
    world.lose(keep=False)
    method, rest, body = VERBS[verb]
    refused(world.call(method, f"/v1/jobs/{made[by]}{rest}", body))
    assert not world.runs()
    assert not world.jobs()


# To a job that is paused.
DONE = {
    "PUT": 200, "DELETE": 204, "pause": 200, "pause without a body": 200, "resume": 200, "trigger": 202, "backfill": 409,
}  # fmt: skip


@each_verb
def test_a_change_of_an_earlier_version_would_be_lost_and_waits(world: World, verb: str) -> None:
    job_id = JobId(world.create(name="n")["job_id"])
    earlier, due = world.record_of(job_id), world.due_of(job_id)
    world.call("PUT", "/v1/jobs/n", job(timeout_s=5))
    world.call("POST", "/v1/jobs/n/pause")
    later = world.record_of(job_id)
    world.lose(keep=False)
    world.run(world.store.restore.put_jobs([(job_id, due, earlier.pack())]))
    method, rest, body = VERBS[verb]
    refused(world.call(method, f"/v1/jobs/{job_id}{rest}", body))
    assert world.record_of(job_id) == earlier
    assert not world.runs()
    world.run(world.store.restore.put_jobs([(job_id, None, later.pack())]))
    assert world.call(method, f"/v1/jobs/{job_id}{rest}", body).status == DONE[verb]


def test_a_job_that_is_back_can_be_changed_while_others_are_not(world: World) -> None:
    made = world.create(name="n")
    world.lose(done=5)
    assert world.call("POST", f"/v1/jobs/{made['job_id']}/pause").status == 200


def test_once_all_is_back_nothing_more_is_asked_until_the_next_recovery(world: World) -> None:
    made = world.create(name="n")
    world.lose(done=10)
    world.all_is_back()
    assert world.call("POST", f"/v1/jobs/{made['job_id']}/pause").status == 200
    asked: list[int] = []

    async def counted() -> bool:
        asked.append(1)
        return False

    world.store.restore.is_in_progress = counted  # type: ignore[method-assign]
    assert world.call("POST", f"/v1/jobs/{made['job_id']}/resume").status == 200
    assert not asked
    world.lose(done=10)
    assert world.call("POST", f"/v1/jobs/{made['job_id']}/pause").status == 200
    assert asked
