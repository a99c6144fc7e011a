"""Verbs on jobs that Redis has lost, while they are being restored: nothing is missing, and no change is lost."""

from __future__ import annotations

from typing import Any

import pytest

from rsched.core.jobs.packed import JobRecord
from rsched.core.states import JobState
from rsched.store.restore import RestoreProgress
from tests.api.conftest import World, job
from tests.api.fakes import NOW

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


def going_on(world: World, *, done: int) -> None:
    world.store.generation = "2"
    world.store.restoration = RestoreProgress("jobs", 2, done, 10, 0, NOW)


def over(world: World) -> None:
    assert world.store.restoration is not None
    world.store.restoration = world.store.restoration._replace(phase="done")


def refused(answer: Any) -> None:
    assert (answer.status, answer.json["code"]) == (503, "unavailable"), answer.body
    assert int(answer.headers["retry-after"]) > 0
    assert "being restored" in answer.json["detail"]


@each_verb
@pytest.mark.parametrize("by", ["job_id", "name"])
@pytest.mark.parametrize("state", [JobState.ACTIVE, JobState.PAUSED])
def test_a_job_that_is_not_back_yet_is_waited_for(world: World, verb: str, by: str, state: JobState) -> None:
    made = world.create(name="n")
    record = world.store.jobs.pop(made["job_id"])
    assert isinstance(record, JobRecord)
    world.ledger.forgotten[made["job_id"]] = record._replace(head=record.head._replace(state=state))
    going_on(world, done=0)
    method, rest, body = VERBS[verb]
    refused(world.call(method, f"/v1/jobs/{made[by]}{rest}", body))
    assert not world.store.runs
    assert made["job_id"] not in world.store.jobs


@each_verb
def test_a_change_of_an_earlier_version_would_be_lost_and_waits(world: World, verb: str) -> None:
    made = world.create(name="n")
    job_id = made["job_id"]
    earlier = world.store.jobs[job_id]
    assert isinstance(earlier, JobRecord)
    later = earlier._replace(head=earlier.head._replace(version=3, state=JobState.PAUSED))
    world.ledger.ahead[job_id] = later
    going_on(world, done=0)
    method, rest, body = VERBS[verb]
    refused(world.call(method, f"/v1/jobs/{job_id}{rest}", body))
    assert world.store.jobs[job_id] == earlier
    assert not world.store.runs
    world.store.jobs[job_id] = world.ledger.ahead.pop(job_id)
    # A paused job owes nothing of what it missed.
    assert world.call(method, f"/v1/jobs/{job_id}{rest}", body).status // 100 == 2 or verb == "backfill"


def test_a_job_that_is_back_can_be_changed_while_others_are_not(world: World) -> None:
    made = world.create(name="n")
    going_on(world, done=5)
    assert world.call("POST", f"/v1/jobs/{made['job_id']}/pause").status == 200


def test_once_all_is_back_nothing_more_is_asked_until_the_next_recovery(world: World) -> None:
    made = world.create(name="n")
    going_on(world, done=10)
    over(world)
    assert world.call("POST", f"/v1/jobs/{made['job_id']}/pause").status == 200
    world.store.restoration = None
    world.store.jobs[made["job_id"]] = world.store.jobs[made["job_id"]]
    asked: list[int] = []

    async def counted() -> bool:
        asked.append(1)
        return False

    world.store.restore_in_progress = counted  # type: ignore[method-assign]
    assert world.call("POST", f"/v1/jobs/{made['job_id']}/resume").status == 200
    assert not asked
    world.store.generation = "3"
    assert world.call("POST", f"/v1/jobs/{made['job_id']}/pause").status == 200
    assert asked
