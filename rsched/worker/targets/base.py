"""What all targets share."""

from __future__ import annotations

from typing import Protocol

from rsched.worker.attempt import Attempt


class TargetFailed(Exception):
    """The target answered with a failure, or could not be called; the text becomes the attempt's error."""


class Begin(Protocol):
    def __call__(self, attempt: Attempt, *, spare_s: float = 0) -> None:
        """Right before the call: refuses when the lease may be over, notes the start, arms the timeout (+ spare_s)."""


class Target(Protocol):
    async def call(self, attempt: Attempt, begin: Begin) -> None:
        """Returns on success. Any exception is a failure. Once cancelled it ends only when the target has really ended."""
