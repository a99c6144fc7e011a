"""The attempts that this worker holds, and why one is stopped."""

from __future__ import annotations

import asyncio
import enum
import threading

from rsched.core.ids import JobId, RunId
from rsched.core.jobs.model import Definition
from rsched.store.run_values import FetchedRun
from rsched.worker.context import JobContext, at, traceparent


class Stop(enum.IntEnum):
    """Why an attempt is stopped. A greater reason overrides a lesser one.

    SHUTDOWN: the drain is over. TIMEOUT: the job's own. CANCEL: somebody asked. GIVEBACK: the drain began before it was
    started. LEASE: not renewed in time. LOST: Redis says the attempt is no longer ours.
    """

    SHUTDOWN = 1
    TIMEOUT = 2
    CANCEL = 3
    GIVEBACK = 4
    LEASE = 5
    LOST = 6

    @property
    def forfeits(self) -> bool:
        """Another attempt may be under way: neither renew nor finish this one."""
        return self >= Stop.LEASE


class Attempt:
    """deadline: boot ms at which it must have stopped, because its lease ends soon after.

    started_at: Redis-clock ms right before the target was called, 0 before that. stop_at: boot ms of the first request
    to stop. ended: the target is over and its result waits for Redis' acknowledgement.
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
        """Asks it to stop (in the event loop's thread only); now_ms by the boot clock. Harmless when it has ended."""
        if self.ended or (self.stopping is not None and reason <= self.stopping):
            return
        if self.stopping is None:
            self.stop_at = now_ms
        self.stopping = reason
        if self.task is not None:
            self.task.cancel()

    def context(self) -> JobContext:
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
    """All attempts from fetch until Redis has acknowledged their end. Read by the lease threads, changed by the loop.

    Keyed by fence: a run may be fetched again before the answer to its last finish is here.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._attempts: dict[int, Attempt] = {}

    def add(self, attempt: Attempt) -> None:
        with self._lock:
            self._attempts[attempt.fence] = attempt

    def remove(self, attempt: Attempt) -> None:
        with self._lock:
            self._attempts.pop(attempt.fence, None)

    def all(self) -> list[Attempt]:
        with self._lock:
            return list(self._attempts.values())

    def running(self) -> list[Attempt]:
        return [a for a in self.all() if not a.ended]

    def __len__(self) -> int:
        return len(self._attempts)
