"""With ack=redis and Postgres away, what Redis has decides a repeat; while it has not all back, it can decide none."""

from __future__ import annotations

from typing import Any

import pytest

from rsched.core.errors import Unavailable
from tests.api.world import World, job


@pytest.mark.parametrize("path", ["/v1/jobs", "/v1/jobs:batch"])
def test_a_repeat_makes_nothing_anew_while_definitions_come_back(
    world: World, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    one = job(schedule={"every": "1h"})
    body: Any = one if path == "/v1/jobs" else {"jobs": [one]}
    assert world.call("POST", f"{path}?ack=redis", body, Idempotency_Key="k1").status == 201
    world.lose(keep=False)

    async def away(*_: object) -> Any:
        raise Unavailable("Postgres is away")

    monkeypatch.setattr(world.ledger.jobs, "last_incarnations", away)
    again = world.call("POST", f"{path}?ack=redis", body, Idempotency_Key="k1")
    assert again.status == 503
    assert not world.jobs()
