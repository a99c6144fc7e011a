"""Runs a worker's loops over one shard (fetch, execute, finish, verify) and its drain.

Fetch is the heartbeat and the only source of leases. A fetched attempt is in `active` until Redis has answered for its end.
"""

from __future__ import annotations

import asyncio
import logging
import os
import random
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import anyio

from rsched.core.errors import Unavailable
from rsched.core.ids import WorkerId
from rsched.runtime.clock import Clock
from rsched.runtime.loop import Wake, run_steps
from rsched.runtime.metrics import (
    ATTEMPTS_DROPPED,
    ATTEMPTS_REQUEUED,
    ATTEMPTS_RUNNING,
    CONCURRENCY,
    RESULTS_WAITING,
    Metrics,
)
from rsched.store.run_values import FinishItem
from rsched.worker.adoption import Adoption
from rsched.worker.attempt import ActiveAttempts, Attempt, Stop
from rsched.worker.execute import Counters, Executor
from rsched.worker.finisher import Finisher
from rsched.worker.lease import EXIT_STUCK, LeaseLimits, Renewal, StepThread, Watchdog, extend_deadlines, poster
from rsched.worker.ports import Renewer, WorkerStore
from rsched.worker.targets.base import Callers

_GATHER_SLOTS_MS = 2.0
_STOP_MS = 500
_FLUSH_MS = 1000
_LISTEN_AGAIN_MS = 1000.0


class Limits(NamedTuple):
    """What a worker may use of one shard, and its times.

    Attributes:
        concurrency: How many attempts may run at once.
        lease_ms: How long a lease lasts from its last renewal (ms).
        renew_ms: The pause between two renewals (ms).
        margin_ms: How long before its lease ends an attempt must have stopped (ms).
        drain_ms: How long running attempts may go on after SIGTERM (ms).
        poll_ms: The pause of a loop that has nothing to do and is not woken (ms).
    """

    concurrency: int
    lease_ms: int
    renew_ms: int
    margin_ms: int
    drain_ms: int
    poll_ms: int


class Runtime:
    """A worker's attempts of one shard.

    Args:
        store: The shard's store.
        renewer: Renews leases from a thread of its own.
        worker: The worker's id.
        queues: The queues to fetch from.
        targets: What calls a target, by the kind of target.
        limits: What may be used, and the times.
        clock: This machine's clock.
        log: The worker's log.
        leave: Ends the process with an exit code, without waiting for threads.
        metrics: The process' metrics; by default new ones.
    """

    def __init__(
        self, store: WorkerStore, renewer: Renewer, *, worker: WorkerId, queues: Sequence[str],
        callers: Callers, limits: Limits, clock: Clock, log: logging.Logger,
        leave: Callable[[int], Any] = os._exit, metrics: Metrics | None = None,
    ) -> None:  # fmt: skip
        self._store, self._worker, self._queues, self._limits = store, worker, tuple(queues), limits
        self._clock, self._log, self._leave = clock, log, leave
        self.active = ActiveAttempts()
        self.counters = Counters()
        metrics = metrics or Metrics("worker")
        self.adoption = Adoption(
            store.runs, worker, active=self.active, queues=queues, lease_ms=limits.lease_ms, margin_ms=limits.margin_ms,
            clock=clock, log=log,
        )  # fmt: skip
        self.finisher = Finisher(
            store.runs, worker, active=self.active, adoption=self.adoption, clock=clock, metrics=metrics
        )
        self._executor = Executor(
            callers, now_ms=store.clock.now_ms, ended=self._ended, counters=self.counters, clock=clock,
            rng=random.Random(), log=log, metrics=metrics,
        )  # fmt: skip
        post = poster(asyncio.get_running_loop())
        self.renewal = Renewal(
            renewer, worker, active=self.active,
            limits=LeaseLimits(limits.lease_ms, limits.renew_ms, limits.margin_ms), clock=clock,
            post=post, suspect=self._suspect, log=log,
        )  # fmt: skip
        self.watchdog = Watchdog(
            active=self.active, margin_ms=limits.margin_ms, grace_ms=limits.margin_ms, clock=clock, post=post,
            stuck=self._stuck, leave=leave, log=log,
        )  # fmt: skip
        self._group: anyio.abc.TaskGroup | None = None
        self._request = 1
        self._running = 0
        self._starved = False
        self._draining = False
        self._is_stuck = False
        self._fetch_wake, self._verify_wake, self._idle, self._halt = Wake(), Wake(), Wake(), anyio.Event()
        self._suspects: list[Attempt] = []
        self._returns: list[Attempt] = []
        store.connection.on_new_generation = self.adoption.on_new_generation
        metrics.before_scrape.append(lambda: self._gauge(metrics))

    def _gauge(self, metrics: Metrics) -> None:
        metrics.put(ATTEMPTS_RUNNING, value=self._running)
        metrics.put(RESULTS_WAITING, value=len(self.finisher))
        metrics.put(CONCURRENCY, value=self._limits.concurrency)
        metrics.put(ATTEMPTS_DROPPED, value=self.counters.dropped)
        metrics.put(ATTEMPTS_REQUEUED, value=self.counters.requeued)

    async def run(self, stop: anyio.Event) -> None:
        """Runs until stop is set and the drain is over."""
        threads = [
            StepThread("renewal", self.renewal.step, self._log),
            StepThread("watchdog", self.watchdog.step, self._log),
        ]
        for thread in threads:
            thread.start()
        try:
            async with anyio.create_task_group() as loops:
                async with anyio.create_task_group() as attempts:
                    self._group = attempts
                    loops.start_soon(self._steps, self.finisher.step, "finish", self.finisher.wake)
                    loops.start_soon(self._steps, self._verify, "verify", self._verify_wake)
                    loops.start_soon(self._listen)
                    await self._fetch_until(stop)
                    await self._drain()
                    attempts.cancel_scope.cancel()
                loops.cancel_scope.cancel()
        finally:
            for thread in threads:
                thread.stop()

    async def _steps(self, step: Callable[[], Any], name: str, wake: Wake) -> None:
        idle = float(self._limits.poll_ms)
        await run_steps(step, name=name, clock=self._clock, wake=wake, idle_ms=idle, log=self._log)

    async def _fetch_until(self, stop: anyio.Event) -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(self._steps, self.fetch_step, "fetch", self._fetch_wake)
            group.start_soon(self._halt_on, stop)
            await self._halt.wait()
            self._draining = True
            group.cancel_scope.cancel()

    async def _halt_on(self, stop: anyio.Event) -> None:
        await stop.wait()
        self._halt.set()

    async def fetch_step(self) -> bool:
        """Fetches once for the free slots and starts what came; returns whether to fetch again at once.

        Raises:
            ShardClosed: The shard is closed.
            Unavailable: Redis does not answer.
        """
        free = self._limits.concurrency - self._running
        if free > 0 and self._starved and free * 8 < self._limits.concurrency:
            # There is more work than slots, so it waits for several free ones: a call for each would cost more than it starts.
            await self._clock.sleep(_GATHER_SLOTS_MS)
            free = self._limits.concurrency - self._running
        # Results that Redis has not answered for count as work too.
        if free <= 0 or len(self.finisher) > 20 * self._limits.concurrency:
            self._starved = True
            return False
        # Shielded, because the runs of a fetch that is cancelled half-way would be leased to nobody until their leases end.
        with anyio.CancelScope(shield=True):
            await self.adoption.ensure_adopted()
            sent = self._clock.boot_ms()
            reply = await self._store.runs.fetch(
                self._worker, request=self._request, slots=free, lease_ms=self._limits.lease_ms, queues=self._queues
            )
            self._request += 1
            deadline = sent + self._limits.lease_ms - self._limits.margin_ms
            self._start([Attempt(run, deadline) for run in reply.runs])
        self._starved = len(reply.runs) >= free
        return reply.more or self._starved

    def _start(self, attempts: list[Attempt]) -> None:
        assert self._group is not None
        self._running += len(attempts)
        self.counters.fetched += len(attempts)
        run = self._executor.run
        for attempt in attempts:
            self.active.add(attempt)
            if self._draining:
                attempt.stop(Stop.REQUEUE, self._clock.boot_ms())
            self._group.start_soon(run, attempt)

    def _ended(self, attempt: Attempt, item: FinishItem | None) -> None:
        self._running -= 1
        if item is not None:
            self.finisher.put(attempt, item)
        elif attempt.stopping is Stop.REQUEUE:
            self._returns.append(attempt)
        else:
            self.active.remove(attempt)
        if self._starved:
            self._fetch_wake.set()
        if self._draining:
            self._idle.set()

    async def _listen(self) -> None:
        while True:
            try:
                async for kind, argument in self._store.signals.listen():
                    if kind == "work" and argument in self._queues:
                        self._fetch_wake.set()
                    elif kind == "cancel":
                        self.cancel(argument)
            except Unavailable as error:
                self._log.debug("signals are away: %s", error)
            await self._clock.sleep(_LISTEN_AGAIN_MS)
            # A signal may have been missed meanwhile.
            self._fetch_wake.set()

    def cancel(self, run: str) -> None:
        """Stops the attempt at this run, if this worker runs it."""
        for attempt in self.active.running():
            if attempt.run == run:
                attempt.stop(Stop.CANCEL, self._clock.boot_ms())

    def _suspect(self, attempts: list[Attempt]) -> None:
        self._suspects.extend(attempts)
        self._verify_wake.set()

    async def _verify(self) -> bool:
        """Asks again about attempts that a renewal was refused for; after a recovery this makes the worker adopt first."""
        doubtful = [a for a in self._suspects if not a.ended]
        if doubtful:
            await self.adoption.ensure_adopted()
            sent = self._clock.boot_ms()
            items = [(a.run, a.fence) for a in doubtful]
            reply = await self._store.runs.renew(self._worker, lease_ms=self._limits.lease_ms, items=items)
            extend_deadlines(doubtful, reply.tags, deadline=sent + self._limits.lease_ms - self._limits.margin_ms)
            for attempt, tag in zip(doubtful, reply.tags, strict=True):
                if tag == "cancel":
                    attempt.stop(Stop.CANCEL, self._clock.boot_ms())
                elif tag != "ok":
                    attempt.stop(Stop.LOST, self._clock.boot_ms())
        asked = set(map(id, doubtful))
        self._suspects = [a for a in self._suspects if not a.ended and id(a) not in asked]
        return bool(self._suspects)

    def _stuck(self, attempt: Attempt) -> None:
        if attempt.ended:
            return
        self._log.critical(
            "an attempt does not stop, so the worker drains and exits",
            extra={"fields": {"run": attempt.run, "function": getattr(attempt.definition.target, "function", "")}},
        )
        self._is_stuck = True
        self._halt.set()

    async def _drain(self) -> None:
        """Requeues what has not started, waits for what has, stops the rest and sends the last results."""
        now = self._clock.boot_ms
        running = self.active.running()
        for attempt in running:
            if not attempt.started_at:
                attempt.stop(Stop.REQUEUE, now())
        self._log.info("draining", extra={"fields": {"running": self._running}})
        await self._until_idle(now() + self._limits.drain_ms)
        for attempt in self.active.running():
            attempt.stop(Stop.SHUTDOWN, now())
        await self._until_idle(now() + _STOP_MS)
        end = now() + _FLUSH_MS
        await self._requeue()
        while len(self.finisher) and now() < end:
            await self.finisher.emptied.wait(min(20, end - now()))
        left = self.active.running()
        if left or self._is_stuck:
            # Their functions still run and end with this process; their leases end by themselves.
            self._log.critical("attempts do not stop, so the process exits", extra={"fields": {"attempts": len(left)}})
            self._leave(EXIT_STUCK)
        elif not len(self.active):
            try:
                await self._store.processes.forget_worker(self._worker)
            except Unavailable:
                self._log.debug("could not sign off")

    async def _until_idle(self, until_ms: int) -> None:
        while True:
            await self._requeue()
            left = until_ms - self._clock.boot_ms()
            if self._running - self._hopeless() <= 0 or left <= 0:
                return
            await self._idle.wait(left)

    def _hopeless(self) -> int:
        return sum(a.reported for a in self.active.running()) if self._is_stuck else 0

    async def _requeue(self) -> None:
        attempts, self._returns = self._returns, []
        if not attempts:
            return
        try:
            await self._store.runs.requeue(self._worker, [(a.run, a.fence) for a in attempts])
        except Unavailable as error:
            self._log.warning("%d runs could not be requeued, their leases will end: %s", len(attempts), error)
        for attempt in attempts:
            self.active.remove(attempt)
