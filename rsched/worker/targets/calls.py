"""Which of a worker's callers has a target's kind; the one place that knows all of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import assert_never

from rsched.core.jobs.targets import FunctionTarget, HttpTarget, Target
from rsched.runtime.clock import Clock
from rsched.worker.app import Function
from rsched.worker.targets.base import Caller
from rsched.worker.targets.function import FunctionCalls
from rsched.worker.targets.http import HttpCalls


class Calls:
    """The callers of one worker, by kind of target. To be made in the event loop that calls; close() ends them all."""

    def __init__(self, functions: Mapping[str, Function], *, threads: int, clock: Clock, http: bool = True) -> None:
        """Makes one caller for each kind.

        Args:
            functions: Those that this worker serves, by their names.
            threads: How many sync functions run at once, at most.
            clock: Tells whether an attempt's lease is over.
            http: Whether this worker makes HTTP calls.
        """
        self._functions = FunctionCalls(functions, threads=threads, clock=clock)
        self._http = HttpCalls() if http else None

    def caller_of(self, target: Target) -> Caller | None:
        """Returns who calls the target; None where this worker cannot call its kind."""
        match target:
            case HttpTarget():
                return self._http
            case FunctionTarget():
                return self._functions
            case _:
                assert_never(target)

    def close(self) -> None:
        """Ends the callers; what is being called ends by itself."""
        self._functions.close()
        if self._http is not None:
            self._http.close()
