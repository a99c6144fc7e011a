"""The attempts that this worker runs, and the reasons for which one is stopped."""

from __future__ import annotations

import asyncio
import enum
import threading

from rsched.core.ids import JobId, RunId
from rsched.core.jobs.model import Definition
from rsched.store.run_values import FetchedRun
from rsched.worker.context import JobContext, at, traceparent


class Stop(enum.IntEnum):
    """Why an attempt is stopped; a greater reason overrides a lesser one.

    Attributes:
        SHUTDOWN: The worker's time to drain is over.
        TIMEOUT: The attempt ran longer than its job's timeout.
        CANCEL: Somebody cancelled the run.
        REQUEUE: The drain began before the attempt was started, so its run goes back to the queue.
        LEASE: The lease was not renewed in time.
        LOST: Redis says that this worker no longer has the attempt.
    """

    SHUTDOWN = 1
    TIMEOUT = 2
    CANCEL = 3
    REQUEUE = 4
    LEASE = 5
    LOST = 6

    @property
    def forfeits(self) -> bool:
        """Whether another attempt may be under way, so that this one is neither renewed nor finished."""
        return self >= Stop.LEASE


class Attempt:
    """One attempt at a run, from its fetch until Redis has acknowledged its end.

    Attributes:
        deadline: Instant (ms, boot clock) at which it must have stopped, because its lease ends soon after.
        started_at: Instant (ms, Redis' clock) right before the target was called; 0 before that.
        stop_at: Instant (ms, boot clock) of the first request to stop; 0 before that.
        stopping: The greatest reason to stop so far; None while there is none.
        ended: Whether the target is over, so that the result waits for Redis' acknowledgement.
        reported: Whether the watchdog has reported it as stuck.
    """

    __slots__ = (
        "attempt", "deadline", "definition", "due_at", "ended", "fence", "manual",
        "reported", "run", "started_at", "stop_at", "stopping", "task", "timer",
    )  # fmt: skip

    def __init__(self, fetched: FetchedRun, deadline: int) -> None:
        self.run: RunId = fetched.run
        self.attempt: int = fetched.attempt
        self.fence: int = fetched.fence
        self.due_at: int = fetched.due_at
        self.manual: bool = fetched.manual
        self.definition: Definition = fetched.definition
        self.deadline = deadline
        self.started_at = 0
        self.stop_at = 0
        self.stopping: Stop | None = None
        self.task: asyncio.Task[None] | None = None
        self.timer: asyncio.TimerHandle | None = None
        self.ended = False
        self.reported = False

    def stop(self, reason: Stop, now_ms: int) -> None:
        """Asks the attempt to stop; does nothing when it has ended. Only the event loop's thread may call it.

        Args:
            reason: Why it stops.
            now_ms: The instant of the request (ms, boot clock).
        """
        if self.ended or (self.stopping is not None and reason <= self.stopping):
            return
        if self.stopping is None:
            self.stop_at = now_ms
        self.stopping = reason
        if self.task is not None:
            self.task.cancel()

    def context(self) -> JobContext:
        """Returns what a Python function may ask about its run."""
        d = self.definition
        return JobContext(
            job_id=JobId(self.run[:15]),
            run_id=self.run,
            scheduled_at=at(int(self.run[16:].removeprefix("m-").partition("-")[0])),
            attempt=self.attempt,
            fence=self.fence,
            deadline=at(self.started_at + int(d.timeout_s * 1000)),
            idempotency_key=self.run,
            team=d.team,
            name=d.name,
            payload=d.payload,
            traceparent=traceparent(self.run, self.fence),
        )


class ActiveAttempts:
    """All attempts of a worker from their fetch until Redis has acknowledged their end.

    The event loop changes it and the lease threads read it. Its key is the fence, because a run may be fetched again before
    the answer to its last finish arrives.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._attempts: dict[int, Attempt] = {}

    def add(self, attempt: Attempt) -> None:
        """Adds an attempt that was fetched."""
        with self._lock:
            self._attempts[attempt.fence] = attempt

    def remove(self, attempt: Attempt) -> None:
        """Removes an attempt whose end is acknowledged; does nothing when it is not there."""
        with self._lock:
            self._attempts.pop(attempt.fence, None)

    def all(self) -> list[Attempt]:
        """Returns a copy of all attempts, ended ones among them."""
        with self._lock:
            return list(self._attempts.values())

    def running(self) -> list[Attempt]:
        """Returns the attempts whose target is not over yet."""
        return [a for a in self.all() if not a.ended]

    def __len__(self) -> int:
        return len(self._attempts)
