"""Runs one attempt from its start to its outcome."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable

from rsched.core.jobs.model import queue_of
from rsched.core.retry import backoff_ms
from rsched.core.states import RunState
from rsched.runtime.clock import Clock
from rsched.runtime.metrics import Metrics
from rsched.store.run_values import FinishItem
from rsched.worker.attempt import Attempt, Stop
from rsched.worker.targets.base import Callers, TargetFailed

# Called once for each attempt. The item is None where there is nothing to finish: the run was requeued, or its lease is lost.
Ended = Callable[[Attempt, FinishItem | None], None]

_CANCELLED = "cancelled"
_SHUTDOWN = "the worker was shut down before the attempt ended"


class LeaseOver(Exception):
    """Says that the lease may be over, because the process was suspended or starved since the run was fetched."""


class Counters:
    """Counts attempts by how they ended, since the process started."""

    __slots__ = ("cancelled", "dead", "dropped", "fetched", "requeued", "retrying", "succeeded")

    def __init__(self) -> None:
        self.fetched = self.succeeded = self.retrying = self.dead = 0
        self.cancelled = self.requeued = self.dropped = 0


def describe(error: BaseException) -> str:
    """Returns the error text of a failed attempt, without what Redis or Postgres would refuse.

    Args:
        error: Whatever the target raised.

    Returns:
        The exception's type and text; of a TargetFailed the text alone.
    """
    try:
        text = str(error)
    except Exception:  # noqa: BLE001 - the __str__ of a user's exception may be broken
        text = ""
    if not isinstance(error, TargetFailed):
        text = f"{type(error).__name__}: {text}" if text else type(error).__name__
    return text.replace("\0", "\N{REPLACEMENT CHARACTER}").encode(errors="replace").decode()


class Executor:
    """Calls the target of an attempt and decides its outcome.

    Args:
        targets: What calls a target, by the kind of target.
        now_ms: Reads Redis' clock (ms).
        ended: Called once for each attempt, with the item to finish it by.
        counters: Where ends are counted.
        clock: This machine's clock.
        rng: The source of the jitter of retries.
        log: Where dropped attempts are logged.
        metrics: Where lateness is observed.
    """

    def __init__(
        self, callers: Callers, *, now_ms: Callable[[], int], ended: Ended, counters: Counters,
        clock: Clock, rng: random.Random, log: logging.Logger, metrics: Metrics,
    ) -> None:  # fmt: skip
        self._lateness = metrics.lateness
        self._callers, self._now_ms, self._ended, self._counters = callers, now_ms, ended, counters
        self._clock, self._rng, self._log = clock, rng, log
        self._loop = asyncio.get_running_loop()

    async def run(self, attempt: Attempt) -> None:
        """Runs the attempt in the current task; raises only where the worker itself is cancelled."""
        task = attempt.task = asyncio.current_task()
        error: str | None = None
        try:
            if attempt.stopping is None:
                target = attempt.definition.target
                caller = self._callers.caller_of(target)
                if caller is None:
                    kind = type(target).__name__
                    raise TargetFailed(f"this worker cannot call a target of the kind {kind}")
                await caller.call(attempt, self._begin)
        except asyncio.CancelledError:
            assert task is not None
            if attempt.stopping is not None:
                task.uncancel()
            elif task.cancelling():
                raise
            else:
                # The worker did not cancel it: the function awaited something that was cancelled.
                error = "CancelledError"
        except LeaseOver:
            # Without stop(), which would cancel this very task although the target has not been called.
            attempt.stopping = Stop.LEASE
        except (Exception, SystemExit, KeyboardInterrupt, BaseExceptionGroup) as failure:  # noqa: BLE001 - whatever a target raises is its attempt's failure
            error = describe(failure)
        if attempt.timer is not None:
            attempt.timer.cancel()
        if attempt.started_at and self._clock.boot_ms() >= attempt.deadline:
            # A process that slept through its lease changes nothing: another attempt may be under way.
            attempt.stopping = Stop.LOST if attempt.stopping is Stop.LOST else Stop.LEASE
        attempt.ended = True
        self._ended(attempt, self._outcome(attempt, error))

    def _begin(self, attempt: Attempt, *, spare_s: float = 0) -> None:
        if self._clock.boot_ms() >= attempt.deadline:
            raise LeaseOver
        attempt.started_at = started = self._now_ms()
        d = attempt.definition
        self._lateness.child(queue_of(d.target), d.team).observe((started - attempt.due_at) / 1000)
        now = self._clock.boot_ms
        attempt.timer = self._loop.call_later(
            attempt.definition.timeout_s + spare_s, lambda: attempt.stop(Stop.TIMEOUT, now())
        )

    def _outcome(self, attempt: Attempt, error: str | None) -> FinishItem | None:
        counters = self._counters
        stop = attempt.stopping
        if stop is not None:
            if stop.forfeits:
                counters.dropped += 1
                self._log.warning(
                    "attempt dropped: %s",
                    "Redis gave it to another" if stop is Stop.LOST else "its lease was not renewed in time",
                    extra={"fields": {"run": attempt.run, "fence": attempt.fence}},
                )
                return None
            if stop is Stop.REQUEUE and not attempt.started_at:
                counters.requeued += 1
                return None
            if stop is Stop.CANCEL:
                counters.cancelled += 1
                return self._item(attempt, RunState.CANCELLED, 0, _CANCELLED)
            late = f"timed out after {attempt.definition.timeout_s:g} s"
            error = late if stop is Stop.TIMEOUT else error or _SHUTDOWN
        if error is None:
            counters.succeeded += 1
            return self._item(attempt, RunState.SUCCEEDED, 0, "")
        if attempt.attempt >= attempt.definition.retry.max_attempts:
            counters.dead += 1
            return self._item(attempt, RunState.DEAD, 0, error)
        counters.retrying += 1
        delay = 0 if error is _SHUTDOWN else backoff_ms(attempt.definition.retry, attempt.attempt, self._rng)
        return self._item(attempt, RunState.RETRYING, delay, error)

    def _item(self, attempt: Attempt, outcome: RunState, delay_ms: int, error: str) -> FinishItem:
        return FinishItem(attempt.run, attempt.fence, outcome, delay_ms, attempt.started_at, error)
