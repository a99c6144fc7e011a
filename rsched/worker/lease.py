"""Leases are kept from threads of their own, so that a busy event loop loses none; and a watchdog enforces their end.

Authority: the lease in Redis. An attempt may go on until its `deadline` on the boot clock: counted from before the last
good renewal was sent, a margin before the lease's end. Two threads, because a renewal may hang in its socket.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
from collections.abc import Callable
from typing import Any

from rsched.core.errors import Unavailable
from rsched.core.ids import WorkerId
from rsched.runtime.clock import Clock
from rsched.worker.attempt import ActiveAttempts, Attempt, Stop
from rsched.worker.ports import Renewer

EXIT_STUCK = 70
_RETRY_MS = 500.0
_LOOK_MS = 1000.0
_LAST_CHANCE_MS = 250
_SHORTEST_MS = 10.0

Post = Callable[..., None]


class StepThread:
    """Calls step() again and again, each time after the pause (ms) that the last call returned."""

    def __init__(self, name: str, step: Callable[[], float], log: logging.Logger) -> None:
        self._step, self._log = step, log
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Does not wait for a step that is under way."""
        self._over.set()

    def _run(self) -> None:
        pause = 0.0
        while not self._over.wait(pause / 1000):
            try:
                pause = self._step()
            except Exception:  # noqa: BLE001 - see below
                # Without this thread every attempt would be stopped: log, and go on trying.
                self._log.exception("a step of a lease thread failed")
                pause = _LOOK_MS


class Renewal:
    """Renews all leases in one call. suspect: told (in the loop) what Redis no longer knows, cancelled: what to stop."""

    def __init__(
        self, renewer: Renewer, worker: WorkerId, *, active: ActiveAttempts, lease_ms: int, renew_ms: int, margin_ms: int,
        clock: Clock, post: Post, suspect: Callable[[list[Attempt]], None], log: logging.Logger,
    ) -> None:  # fmt: skip
        self._renewer, self._worker, self._active = renewer, worker, active
        self._lease_ms, self._renew_ms, self._margin_ms = lease_ms, renew_ms, margin_ms
        self._clock, self._post, self._suspect, self._log = clock, post, suspect, log
        self._failing = False

    def step(self) -> float:
        attempts = [a for a in self._active.all() if a.stopping is None or not a.stopping.forfeits]
        if not attempts:
            return float(self._renew_ms)
        sent = self._clock.boot_ms()
        items = [(a.run, a.fence) for a in attempts]
        try:
            reply = self._renewer.renew(self._worker, lease_ms=self._lease_ms, items=items)
        except Unavailable as error:
            if not self._failing:
                self._log.warning("leases cannot be renewed: %s", error)
            self._failing = True
            return min(_RETRY_MS, self._renew_ms)
        if self._failing:
            self._log.warning("leases are renewed again")
        self._failing = False
        settle(attempts, reply.tags, deadline=sent + self._lease_ms - self._margin_ms)
        now = self._clock.boot_ms()
        suspects = []
        for attempt, tag in zip(attempts, reply.tags, strict=True):
            if tag == "cancel":
                self._post(attempt.stop, Stop.CANCEL, now)
            elif tag != "ok":
                suspects.append(attempt)
        if suspects:
            # Not stopped yet: after a recovery Redis may have forgotten what it has still to hear about.
            self._post(self._suspect, suspects)
        return float(self._renew_ms)


def settle(attempts: list[Attempt], tags: list[str], *, deadline: int) -> None:
    """Moves the deadlines of what was renewed."""
    for attempt, tag in zip(attempts, tags, strict=True):
        if tag in ("ok", "cancel"):
            attempt.deadline = max(attempt.deadline, deadline)


class Watchdog:
    """Stops attempts at their deadline. What won't stop takes the process with it before its lease ends.

    stuck: told (in the loop) of an attempt that has ignored another request to stop for grace_ms.
    """

    def __init__(
        self, *, active: ActiveAttempts, margin_ms: int, grace_ms: int, clock: Clock, post: Post,
        stuck: Callable[[Attempt], None], leave: Callable[[int], Any], log: logging.Logger,
    ) -> None:  # fmt: skip
        self._active, self._margin_ms, self._grace_ms = active, margin_ms, grace_ms
        self._clock, self._post, self._stuck, self._leave, self._log = clock, post, stuck, leave, log
        self._forfeited_at: dict[int, int] = {}

    def step(self) -> float:
        now = self._clock.boot_ms()
        pause = _LOOK_MS
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
        """When the process goes: half of the margin is for the function to stop in, half for the process to be gone.

        A process that was stopped past that gets a moment to stop its attempts in, and so does one whose attempt is lost.
        """
        if attempt.stopping is Stop.LOST:
            return since + _LAST_CHANCE_MS
        return max(attempt.deadline + self._margin_ms // 2, since + _LAST_CHANCE_MS)

    def _exit(self, attempt: Attempt) -> None:
        self._log.critical(
            "an attempt does not stop and its lease ends: the process goes",
            extra={"fields": {"run": attempt.run, "fence": attempt.fence}},
        )
        self._leave(EXIT_STUCK)


def poster(loop: asyncio.AbstractEventLoop) -> Post:
    """Calls a function in the loop's thread, from any thread."""

    def post(function: Callable[..., Any], *args: Any) -> None:
        # The loop may be closed already: nothing runs in it any more.
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(function, *args)

    return post
