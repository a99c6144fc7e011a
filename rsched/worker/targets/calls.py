"""Which of a worker's callers has a target's kind; the one place that knows all of them."""

from __future__ import annotations

from typing import assert_never

from rsched.core.jobs.targets import FunctionTarget, HttpTarget, Target
from rsched.worker.targets.base import Caller
from rsched.worker.targets.function import FunctionCalls
from rsched.worker.targets.http import HttpCalls


class Calls:
    """The callers of one worker, by kind of target."""

    def __init__(self, *, functions: FunctionCalls, http: HttpCalls | None) -> None:
        """Takes one caller for each kind.

        Args:
            functions: Calls the functions that this worker serves.
            http: Makes HTTP calls; None: this worker makes none.
        """
        self._functions, self._http = functions, http

    def caller_of(self, target: Target) -> Caller | None:
        """Returns who calls the target; None where this worker cannot call its kind."""
        match target:
            case HttpTarget():
                return self._http
            case FunctionTarget():
                return self._functions
            case _:
                assert_never(target)
