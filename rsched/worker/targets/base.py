"""What all kinds of targets share in a worker."""

from __future__ import annotations

from typing import Protocol

from rsched.core.jobs.targets import Target
from rsched.worker.attempt import Attempt


class TargetFailed(Exception):
    """The target answered with a failure, or could not be called; the text becomes the attempt's error."""


class Begin(Protocol):
    def __call__(self, attempt: Attempt, *, spare_s: float = 0) -> None:
        """Right before the call: refuses when the lease may be over, notes the start, arms the timeout (+ spare_s)."""


class Caller(Protocol):
    """Calls all targets of one kind."""

    async def call(self, attempt: Attempt, begin: Begin) -> None:
        """Returns on success. Any exception is a failure. Once cancelled it ends only when the target has really ended."""


class Callers(Protocol):
    """Knows who calls a target."""

    def caller_of(self, target: Target) -> Caller | None:
        """Returns who calls the target; None where this worker cannot call its kind."""
