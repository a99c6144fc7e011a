"""A scheduler process: its loops over every shard, and the wake-ups between them."""

from __future__ import annotations

import logging
import random
import secrets
from collections.abc import Callable

import anyio

from rsched.core.errors import RschedError, Unavailable
from rsched.core.settings import SchedulerSettings
from rsched.runtime.clock import Clock
from rsched.runtime.log import get_logger
from rsched.runtime.loop import Outage, Step, Wake, run_steps
from rsched.runtime.metrics import PARTITIONS, Metrics
from rsched.runtime.metrics_server import served
from rsched.scheduler.catch_up import CatchUp
from rsched.scheduler.claim import WITHIN_MS, Claimer
from rsched.scheduler.ownership import Ownership
from rsched.scheduler.reap import Reaper
from rsched.scheduler.refresh import RefreshLoop
from rsched.scheduler.release import Releaser
from rsched.scheduler.resume import Resumer
from rsched.store.load_shedding import EVERY_MS, LoadShedding
from rsched.store.store import Store, shard_tags

# Looking through all jobs again costs, and what a job missed is settled within seconds.
_REFRESH_WAIT_MS = 10_000.0


class ShardScheduler:
    """All loops of one scheduler on one shard."""

    def __init__(self, store: Store, name: str, *, settings: SchedulerSettings, clock: Clock) -> None:
        self._store, self._settings, self._clock = store, settings, clock
        self._log = get_logger("rsched.scheduler")
        self._claim_wake, self._release_wake = Wake(), Wake()
        self._own_wake, self._slow_wake = Wake(), Wake()
        self.ownership = Ownership(store, name, lease_ms=settings.partition_lease_ms, log=self._log)
        self.claimer = Claimer(
            store,
            name,
            epochs=self.ownership.epochs if settings.ownership else None,
            lookahead_ms=settings.lookahead_ms,
            batch=settings.batch,
            lost=self._lost,
            claimed=self._release_wake.set,
            clock=clock,
            log=self._log,
        )
        self.releaser = Releaser(store, batch=settings.batch)
        self.catch_up = CatchUp(
            store,
            per_s=settings.catchup_per_s,
            share=settings.catchup_share,
            schedulers=lambda: self.ownership.live,
            clock=clock,
            log=self._log,
        )
        self.resumer = Resumer(store, log=self._log)
        self.refresh = RefreshLoop(store, log=self._log)
        self.reaper = Reaper(
            store, after_ms=settings.reap_after_ms, rng=random.Random(secrets.randbits(64)), log=self._log
        )

    def _gauge(self) -> None:
        self._store.connection.metrics.put(PARTITIONS, self._store.keys.shard, value=len(self.ownership.epochs))

    def _lost(self, partitions: list[int]) -> None:
        self.ownership.lost(partitions)
        self._own_wake.set()

    async def _own_step(self) -> bool:
        before = len(self.ownership.epochs)
        changed = await self.ownership.step()
        if len(self.ownership.epochs) > before:
            self._claim_wake.set()
        return changed

    def _until(self, instant: int | None) -> float:
        """Returns how long to sleep until an instant of Redis' clock (ms), at most the polling interval."""
        poll = float(self._settings.poll_ms)
        return poll if instant is None else min(poll, max(1.0, instant - self._store.clock.now_ms()))

    def _own_idle(self) -> float:
        renew = float(self._settings.partition_renew_ms)
        end = self.ownership.next_end
        # Looked at when another's lease ends, so that a dead one is followed at once.
        return renew if end is None else min(renew, max(1.0, end + 1 - self._store.clock.now_ms()))

    def _claim_idle(self) -> float:
        head = self.claimer.next_head
        return self._until(None if head is None else head - WITHIN_MS)

    async def _listen(self) -> None:
        outage = Outage("signals", self._log)
        while True:
            try:
                async for kind, argument in self._store.signals.listen():
                    outage.over()
                    if kind == "due":
                        self._woken(int(argument))
            except Unavailable as error:
                await self._clock.sleep(outage.failed(error))

    def _woken(self, due: int) -> None:
        """Something is due at that instant: wakes the loops that would sleep past it."""
        head, release = self.claimer.next_head, self.releaser.next_at
        if head is None or due < head:
            self._claim_wake.set()
        if release is None or due < release:
            self._release_wake.set()

    async def run(self, stop: anyio.Event) -> None:
        """Until stop; then the partitions are free for the others at once."""
        poll = self._settings.poll_ms
        self._store.connection.metrics.before_scrape.append(self._gauge)
        async with anyio.create_task_group() as group:
            loops: list[tuple[str, Step, Wake, Callable[[], float]]] = [
                ("claim", self.claimer.step, self._claim_wake, self._claim_idle),
                ("release", self.releaser.step, self._release_wake, lambda: self._until(self.releaser.next_at)),
                ("catch-up", self.catch_up.step, self._slow_wake, lambda: float(poll)),
                ("reap", self.reaper.step, Wake(), lambda: float(poll)),
                ("resume", self.resumer.step, Wake(), lambda: float(poll)),
                (
                    "load_level",
                    LoadShedding(self._store.recovery, self._store.server, log=self._log).step,
                    Wake(),
                    lambda: EVERY_MS,
                ),
                ("refresh", self.refresh.step, Wake(), lambda: _REFRESH_WAIT_MS if self.refresh.waits else float(poll)),
            ]
            if self._settings.ownership:
                loops.append(("own", self._own_step, self._own_wake, self._own_idle))
            for name, step, wake, idle in loops:
                group.start_soon(_loop, name, step, wake, idle, self._clock, self._log)
            group.start_soon(self._listen)
            await stop.wait()
            group.cancel_scope.cancel()
        if self._settings.ownership:
            try:
                with anyio.fail_after(2):
                    await self.ownership.leave()
            except (TimeoutError, RschedError) as error:
                self._log.warning("partitions free themselves when the lease ends: %s", error)


async def _loop(
    name: str, step: Step, wake: Wake, idle: Callable[[], float], clock: Clock, log: logging.Logger
) -> None:
    await run_steps(step, name=name, clock=clock, wake=wake, idle_ms=idle, log=log)


async def run_scheduler(settings: SchedulerSettings, stop: anyio.Event, *, clock: Clock) -> None:
    """Schedules every shard until stop."""
    name = f"s_{secrets.token_hex(6)}"
    stores = [
        Store.open(settings.redis_url, prefix=settings.prefix, shard=tag, clock=clock)
        for tag in shard_tags(settings.shards)
    ]
    metrics = Metrics("scheduler")
    get_logger("rsched.scheduler").info("scheduler %s starts", name)
    try:
        async with served(metrics, settings), anyio.create_task_group() as group:
            for store in stores:
                store.connection.metrics = metrics
                group.start_soon(ShardScheduler(store, name, settings=settings, clock=clock).run, stop)
    finally:
        for store in stores:
            await store.aclose()
