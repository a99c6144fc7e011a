from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest
from fakeredis import FakeRedis

from rsched.core.states import RunState
from rsched.runtime.clock import SystemClock
from rsched.store.keys import Keys
from rsched.store.run_values import FetchedRun
from rsched.worker.app import App
from rsched.worker.attempt import ActiveAttempts, Attempt, Stop
from rsched.worker.lease import EXIT_STUCK, LeaseLimits, Renewal, Watchdog
from tests.support.clocks import StillClock
from tests.support.fake_redis import OrderedRenewer, OrderedStore, RedisInProcess
from tests.worker.running_worker import LIMITS, WORKER, Shard, definition, running

LOG = logging.getLogger("test")


class Scene:
    """One attempt with 55 s to go, a renewal and a watchdog to step by hand."""

    def __init__(self) -> None:
        self.clock, self.active = StillClock(), ActiveAttempts()
        self.server = RedisInProcess(SystemClock())
        self.renewer = OrderedRenewer(self.server)
        self.exits: list[int] = []
        self.stuck: list[Attempt] = []
        self.suspects: list[Attempt] = []
        self.attempt = Attempt(asyncio.run(self._fetched()), self.clock.boot + 55_000)
        self.attempt.started_at = 1
        self.active.add(self.attempt)
        self.renewal = Renewal(
            self.renewer, WORKER, active=self.active,
            limits=LeaseLimits(lease_ms=60_000, renew_ms=20_000, margin_ms=5000), clock=self.clock,
            post=self.post, suspect=self.suspects.extend, log=LOG,
        )  # fmt: skip
        self.watchdog = Watchdog(
            active=self.active, margin_ms=5000, grace_ms=5000, clock=self.clock, post=self.post,
            stuck=self.stuck.append, leave=self.exits.append, log=LOG,
        )  # fmt: skip

    async def _fetched(self) -> FetchedRun:
        store = OrderedStore(self.server)
        shard = Shard(store)
        await shard.open()
        await shard.owe(definition())
        reply = await store.runs.fetch(WORKER, request=1, slots=1, lease_ms=60_000, queues=["default"])
        await store.aclose()
        return reply.runs[0]

    def post(self, function: Any, *args: Any) -> None:
        function(*args)


@pytest.fixture
def scene() -> Scene:
    return Scene()


def test_a_deadline_counts_from_before_the_renewal_was_sent(scene: Scene) -> None:
    sent = scene.clock.boot = scene.clock.boot + 20_000
    renew = scene.renewer.renew

    def slow(*args: Any, **kwargs: Any) -> Any:
        scene.clock.boot += 3000
        return renew(*args, **kwargs)

    scene.renewer.renew = slow  # type: ignore[method-assign]
    assert scene.renewal.step() == 20_000
    assert scene.attempt.deadline == sent + 55_000


def test_a_failed_renewal_is_tried_again_soon_and_moves_no_deadline(scene: Scene) -> None:
    before = scene.attempt.deadline
    scene.renewer.away = True
    assert scene.renewal.step() <= 1000
    assert scene.attempt.deadline == before


def test_what_redis_does_not_know_is_suspected_and_not_stopped_at_once(scene: Scene) -> None:
    # Another worker's by now, or ended: no run is left.
    FakeRedis(server=scene.server).delete(Keys("t", "s0").runs)
    scene.renewal.step()
    assert scene.suspects == [scene.attempt]
    assert scene.attempt.stopping is None


def test_an_attempt_that_is_given_up_is_not_renewed(scene: Scene) -> None:
    scene.attempt.stop(Stop.LEASE, 0)
    scene.renewal.step()
    assert scene.renewer.renewed == 0


def test_at_its_deadline_it_is_stopped_and_before_the_lease_ends_the_process_goes(scene: Scene) -> None:
    scene.clock.boot = scene.attempt.deadline - 1
    scene.watchdog.step()
    assert scene.attempt.stopping is None
    scene.clock.boot += 1
    scene.watchdog.step()
    assert scene.attempt.stopping is Stop.LEASE
    scene.clock.boot += 2499
    scene.watchdog.step()
    assert scene.exits == []
    scene.clock.boot += 1
    scene.watchdog.step()
    assert scene.exits == [EXIT_STUCK]


def test_a_process_that_slept_past_the_lease_gets_a_moment_to_stop_in(scene: Scene) -> None:
    scene.clock.boot += 100_000
    scene.watchdog.step()
    assert scene.attempt.stopping is Stop.LEASE
    assert scene.exits == []
    scene.clock.boot += 250
    scene.watchdog.step()
    assert scene.exits == [EXIT_STUCK]


def test_an_ended_attempt_takes_nobody_with_it(scene: Scene) -> None:
    scene.attempt.ended = True
    scene.clock.boot += 100_000
    scene.watchdog.step()
    assert (scene.exits, scene.attempt.stopping) == ([], None)


def test_what_ignores_its_timeout_is_reported_once(scene: Scene) -> None:
    scene.attempt.stop(Stop.TIMEOUT, scene.clock.boot)
    scene.clock.boot += 4999
    scene.watchdog.step()
    assert scene.stuck == []
    scene.clock.boot += 1
    scene.watchdog.step()
    scene.watchdog.step()
    assert scene.stuck == [scene.attempt]


def test_a_worker_that_slept_through_its_lease_calls_no_target_and_finishes_nothing() -> None:
    app, clock = App(), StillClock()
    called = []
    go = asyncio.Event()

    @app.function("work")
    async def work() -> None:
        called.append(1)
        await go.wait()

    async def test() -> None:
        async with running(app, clock=clock, limits=LIMITS._replace(concurrency=1)) as worker:
            await worker.owe(definition())
            await worker.until(lambda: called)
            clock.boot += 56_000
            go.set()
            await worker.until(lambda: len(worker.runtime.active) == 0)
            assert worker.store.finished == []
            fetch = worker.store.runs.fetch

            async def late(*args: Any, **kwargs: Any) -> Any:
                reply = await fetch(*args, **kwargs)
                clock.boot += 56_000
                return reply

            worker.store.runs.fetch = late  # type: ignore[method-assign]
            await worker.owe(definition())
            await worker.until(lambda: worker.runtime.counters.dropped == 2)
            worker.store.runs.fetch = fetch  # type: ignore[method-assign]
            assert called == [1]
            await worker.owe(definition())
            await worker.until(lambda: [i.outcome for i in worker.store.finished] == [RunState.SUCCEEDED])

    asyncio.run(test())
