"""Renews leases from a thread of its own, so that a busy event loop loses none, and enforces their end with a watchdog.

Authority: the lease in Redis. An attempt may go on until its `deadline` on the boot clock: counted from before the last
good renewal was sent, a margin before the lease's end. Two threads, because a renewal may hang in its socket.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
from collections.abc import Callable
from typing import Any, NamedTuple

from rsched.core.errors import Unavailable
from rsched.core.ids import WorkerId
from rsched.runtime.clock import Clock
from rsched.worker.attempt import ActiveAttempts, Attempt, Stop
from rsched.worker.ports import Renewer

EXIT_STUCK = 70
_RETRY_MS = 500.0
_CHECK_MS = 1000.0
_LAST_CHANCE_MS = 250
_SHORTEST_MS = 10.0

# Calls a function with its arguments in the event loop's thread.
Post = Callable[..., None]


class LeaseLimits(NamedTuple):
    """The times of a lease.

    Attributes:
        lease_ms: How long a lease lasts from its last renewal (ms).
        renew_ms: The pause between two renewals (ms).
        margin_ms: How long before the lease's end an attempt must have stopped (ms).
    """

    lease_ms: int
    renew_ms: int
    margin_ms: int


class StepThread:
    """Calls a step again and again in a daemon thread, whatever it raises.

    Args:
        name: The thread's name.
        step: Does one piece of work and returns the pause before the next (ms).
        log: Where a failed step is logged.
    """

    def __init__(self, name: str, step: Callable[[], float], log: logging.Logger) -> None:
        self._step, self._log = step, log
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Starts the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Ends the thread after the step that is under way, without waiting for it."""
        self._over.set()

    def _run(self) -> None:
        pause = 0.0
        while not self._over.wait(pause / 1000):
            try:
                pause = self._step()
            except Exception:  # noqa: BLE001 - see below
                # Without this thread every attempt would be stopped, so it logs the error and goes on.
                self._log.exception("a step of a lease thread failed")
                pause = _CHECK_MS


class Renewal:
    """Renews the leases of all active attempts in one call.

    Args:
        renewer: Speaks to Redis in this thread.
        worker: The worker that has the leases.
        active: The attempts to renew.
        limits: The times of a lease.
        clock: This machine's clock.
        post: Calls a function in the event loop's thread.
        suspect: Called (by post) with the attempts that Redis does not know.
        log: Where failures are logged, once each outage.
    """

    def __init__(
        self, renewer: Renewer, worker: WorkerId, *, active: ActiveAttempts, limits: LeaseLimits, clock: Clock,
        post: Post, suspect: Callable[[list[Attempt]], None], log: logging.Logger,
    ) -> None:  # fmt: skip
        self._renewer, self._worker, self._active, self._limits = renewer, worker, active, limits
        self._clock, self._post, self._suspect, self._log = clock, post, suspect, log
        self._failing = False

    def step(self) -> float:
        """Renews once, and returns the pause before the next renewal (ms)."""
        limits = self._limits
        attempts = [a for a in self._active.all() if a.stopping is None or not a.stopping.forfeits]
        if not attempts:
            return float(limits.renew_ms)
        sent = self._clock.boot_ms()
        items = [(a.run, a.fence) for a in attempts]
        try:
            reply = self._renewer.renew(self._worker, lease_ms=limits.lease_ms, items=items)
        except Unavailable as error:
            if not self._failing:
                self._log.warning("leases cannot be renewed: %s", error)
            self._failing = True
            return min(_RETRY_MS, limits.renew_ms)
        if self._failing:
            self._log.warning("leases are renewed again")
        self._failing = False
        extend_deadlines(attempts, reply.tags, deadline=sent + limits.lease_ms - limits.margin_ms)
        now = self._clock.boot_ms()
        suspects = []
        for attempt, tag in zip(attempts, reply.tags, strict=True):
            if tag == "cancel":
                self._post(attempt.stop, Stop.CANCEL, now)
            elif tag != "ok":
                suspects.append(attempt)
        if suspects:
            # They are not stopped yet: after a recovery Redis may not know attempts that are still to be adopted.
            self._post(self._suspect, suspects)
        return float(limits.renew_ms)


def extend_deadlines(attempts: list[Attempt], tags: list[str], *, deadline: int) -> None:
    """Moves the deadlines of the attempts that were renewed, never backwards.

    Args:
        attempts: The attempts that were asked about.
        tags: Redis' answer for each of them, in the same order.
        deadline: The new deadline (ms, boot clock).
    """
    for attempt, tag in zip(attempts, tags, strict=True):
        if tag in ("ok", "cancel"):
            attempt.deadline = max(attempt.deadline, deadline)


class Watchdog:
    """Stops attempts at their deadline; ends the process where one does not stop before its lease ends.

    Args:
        active: The attempts to watch.
        margin_ms: How long before the lease's end an attempt must have stopped (ms).
        grace_ms: How long an attempt may ignore a request to stop before it counts as stuck (ms).
        clock: This machine's clock.
        post: Calls a function in the event loop's thread.
        stuck: Called (by post) with an attempt that is stuck.
        leave: Ends the process with an exit code.
        log: Where the end of the process is logged.
    """

    def __init__(
        self, *, active: ActiveAttempts, margin_ms: int, grace_ms: int, clock: Clock, post: Post,
        stuck: Callable[[Attempt], None], leave: Callable[[int], Any], log: logging.Logger,
    ) -> None:  # fmt: skip
        self._active, self._margin_ms, self._grace_ms = active, margin_ms, grace_ms
        self._clock, self._post, self._stuck, self._leave, self._log = clock, post, stuck, leave, log
        self._forfeited_at: dict[int, int] = {}

    def step(self) -> float:
        """Checks every attempt once, and returns the pause before the next check (ms)."""
        now = self._clock.boot_ms()
        pause = _CHECK_MS
        before, self._forfeited_at = self._forfeited_at, {}
        for attempt in self._active.running():
            stopping = attempt.stopping
            if attempt.deadline <= now or (stopping is not None and stopping.forfeits):
                if stopping is None or not stopping.forfeits:
                    self._post(attempt.stop, Stop.LEASE, now)
                since = self._forfeited_at[attempt.fence] = before.get(attempt.fence, now)
                left = self._end(attempt, since) - now
                if left <= 0 and attempt.started_at:
                    self._exit(attempt)
            else:
                left = attempt.deadline - now
                if stopping is not None and not attempt.reported and now - attempt.stop_at >= self._grace_ms:
                    attempt.reported = True
                    self._post(self._stuck, attempt)
            pause = min(pause, left)
        return max(pause, _SHORTEST_MS)

    def _end(self, attempt: Attempt, since: int) -> int:
        """Returns when the process must exit (ms, boot clock).

        Half of the margin is for the function to stop in, half for the process to end. A process that was suspended past that
        gets a moment to stop its attempts in, and so does one whose attempt is lost.
        """
        if attempt.stopping is Stop.LOST:
            return since + _LAST_CHANCE_MS
        return max(attempt.deadline + self._margin_ms // 2, since + _LAST_CHANCE_MS)

    def _exit(self, attempt: Attempt) -> None:
        self._log.critical(
            "an attempt does not stop and its lease ends soon, so the process exits",
            extra={"fields": {"run": attempt.run, "fence": attempt.fence}},
        )
        self._leave(EXIT_STUCK)


def poster(loop: asyncio.AbstractEventLoop) -> Post:
    """Returns a function that calls another one in the loop's thread, from any thread."""

    def post(function: Callable[..., Any], *args: Any) -> None:
        # The loop may be closed already; then nothing is left that could be told.
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(function, *args)

    return post
