"""A trigger's idempotency key outlasts Redis: what the ledger has is asked for while Redis may have lost it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from rsched_api.app import create_app

from rsched.core.errors import Unavailable
from rsched.core.jobs.packed import KEYED_FOR_MS
from rsched.core.settings import ApiSettings
from rsched.core.states import RunState
from tests.api.calls import Caller
from tests.api.world import World
from tests.recorder.rollback import stale_generation
from tests.recorder.stepped_shard import CLOCK, HOUR, Shard, within


def trigger(world: World, job_id: str, body: Any = None, *, key: str | None = "k") -> Any:
    headers = {} if key is None else {"idempotency_key": key}
    return world.call("POST", f"/v1/jobs/{job_id}/trigger", body, **headers)


def lost(world: World, *, job_back: bool = True) -> None:
    """Redis was emptied; what comes first is back, and of definitions that of the job, if job_back."""
    world.lose(keep=job_back)
    world.clock.ms += 1000


@pytest.mark.parametrize("job_back", [True, False], ids=["job back", "job not back"])
@pytest.mark.parametrize("state", [RunState.QUEUED, RunState.SUCCEEDED])
def test_a_repeat_while_redis_is_being_restored_gives_the_run_that_was_made_before(
    world: World, state: RunState, job_back: bool
) -> None:
    job_id = world.create(name="n")["job_id"]
    first = trigger(world, job_id, {"payload": 1})
    assert first.status == 202
    run = first.json["run_id"]
    if state.final:
        world.release()
        world.start()
        world.end(run, state)
    lost(world, job_back=job_back)
    again = trigger(world, job_id, {"payload": 1})
    assert (again.status, again.json["run_id"], again.json["status"]) == (202, run, state.value)
    other = trigger(world, job_id, {"payload": 2})
    assert (other.status, other.json["errors"][0]["field"]) == (422, "Idempotency-Key")
    assert world.runs() == ([] if state.final else [run])


def test_another_key_or_none_makes_a_run_while_redis_is_being_restored(world: World) -> None:
    job_id = world.create(name="n")["job_id"]
    made = {trigger(world, job_id).json["run_id"]}
    lost(world)
    made |= {trigger(world, job_id, key=key).json["run_id"] for key in ("l", None)}
    assert len(made) == 3


def test_a_key_of_another_job_says_nothing(world: World) -> None:
    one, other = (world.create(name=name)["job_id"] for name in "ab")
    trigger(world, one)
    lost(world)
    assert trigger(world, other).json["run_id"].startswith(other)


def test_a_key_past_a_day_makes_a_new_run(world: World) -> None:
    job_id = world.create(name="n")["job_id"]
    first = trigger(world, job_id).json["run_id"]
    lost(world)
    world.clock.ms += KEYED_FOR_MS
    assert trigger(world, job_id).json["run_id"] != first


def test_while_neither_server_can_tell_a_keyed_trigger_waits_and_one_without_does_not(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    job_id = world.create(name="n")["job_id"]
    lost(world)

    async def away(*_: object, **__: object) -> None:
        raise Unavailable("Postgres is away")

    monkeypatch.setattr(world.ledger.recovery.triggers, "triggered_at", away)
    refused = trigger(world, job_id)
    assert (refused.status, refused.json["code"]) == (503, "unavailable")
    assert int(refused.headers["retry-after"]) > 0
    assert not world.runs()
    assert trigger(world, job_id, key=None).status == 202


def test_once_all_is_back_the_ledger_is_not_asked_for_keys(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    job_id = world.create(name="n")["job_id"]
    lost(world)
    world.all_is_back()

    async def asked(*_: object, **__: object) -> None:
        raise AssertionError

    monkeypatch.setattr(world.ledger.recovery.triggers, "triggered_at", asked)
    run = trigger(world, job_id).json["run_id"]
    assert trigger(world, job_id).json["run_id"] == run


@pytest.mark.parametrize("all_back", [True, False], ids=["after the background restore", "beside it"])
def test_over_real_servers_a_repeat_after_a_total_loss_gives_the_same_run(
    redis_url: str, database_url: str, redis_prefix: str, all_back: bool
) -> None:
    async def body(s: Shard) -> None:
        path = f"/v1/jobs/{await s.put('a', due_in=HOUR, every=2 * HOUR)}/trigger"
        options = ApiSettings(redis_url=redis_url, database_url=database_url, prefix=redis_prefix)
        app = create_app(options, clock=CLOCK)
        call = Caller(app).call
        async with app.router.lifespan_context(app):
            async with s.recording():
                first = await call("POST", path, {"payload": 1}, idempotency_key="k")
            assert first.status == 202, first.body
            run = first.json["run_id"]
            await s.drain()
            assert s.done == {run: 1}
            await s.record()
            await s.redis.delete(*[key async for key in s.redis.scan_iter(s.keys.prefix + ":*")])
            await stale_generation(s, all_back=all_back)
            async with s.recording():
                # Once it learns of the recovery, an API process that lived through it says so and changes nothing.
                again = await call("POST", path, {"payload": 1}, idempotency_key="k")
                if again.status == 503:
                    again = await call("POST", path, {"payload": 1}, idempotency_key="k")
                other = await call("POST", path, {"payload": 2}, idempotency_key="k")
        assert (again.status, again.json["run_id"], again.json["status"]) == (202, run, "SUCCEEDED"), again.body
        assert (other.status, other.fields) == (422, ["Idempotency-Key"])
        await s.drain()
        assert s.done == {run: 1}

    asyncio.run(within(redis_url, database_url, redis_prefix, body))
