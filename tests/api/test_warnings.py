"""What is legal and perhaps not meant is told in the answer to who wrote it."""

from __future__ import annotations

import pytest

from tests.api.world import World, job


@pytest.mark.parametrize(
    ("cron", "told"),
    [("* 0 * * *", "write `0 0 * * *`"), ("0 0 31 * *", "write `L`"), ("0 0 13 * 5", "either one is enough")],
)
def test_a_schedule_that_is_perhaps_not_meant_is_told_of_when_it_is_written(world: World, cron: str, told: str) -> None:
    made = world.create(name="n", schedule={"cron": cron})
    assert any(told in text for text in made["warnings"])
    put = world.call("PUT", "/v1/jobs/n", job(schedule={"cron": cron, "timezone": "Asia/Kolkata"}))
    assert any(told in text for text in put.json["warnings"])
    assert "warnings" not in world.call("GET", f"/v1/jobs/{made['job_id']}").json


def test_a_plain_schedule_is_answered_without_warnings(world: World) -> None:
    assert "warnings" not in world.create()
