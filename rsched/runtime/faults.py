"""Ends this process as kill -9 does at a named point between two steps, where RSCHED_FAULTS asks for it.

`RSCHED_FAULTS=recorder.after_commit:3` ends it at the third passing; several points are separated by commas, and the first
to be reached counts.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping

from rsched.core.errors import Misconfigured

VARIABLE = "RSCHED_FAULTS"

# In the order in which they are passed.
RECORDER = (
    "recorder.after_read",
    "recorder.after_lock",
    "recorder.after_copy",
    "recorder.after_upsert",
    "recorder.before_commit",
    "recorder.after_commit",
    "recorder.after_trim",
)
OPENING = (
    "recovery.after_generation",
    "recovery.after_begin",
    "recovery.after_drain",
    "recovery.after_restage",
    "recovery.in_runs",
    "recovery.after_runs",
    "recovery.in_dues",
    "recovery.in_jobs",
    "recovery.before_open",
    "recovery.after_finish",
    "recovery.in_later_jobs",
)
HOUSEKEEPING = (
    "housekeeping.before_forget",
    "housekeeping.before_mark",
    "housekeeping.after_mark",
)
RETENTION = (
    "retention.after_leave",
    "retention.in_export",
    "retention.before_verify",
    "retention.before_rename",
    "retention.before_manifest",
    "retention.before_drop",
    "retention.after_drop",
)
LOAD_LEVEL = ("load_level.before_set", "load_level.after_set")
POINTS = frozenset((*RECORDER, *OPENING, *HOUSEKEEPING, *RETENTION, *LOAD_LEVEL))

# Module state, because points lie in functions of every layer and must cost nothing where none is set.
_left: dict[str, int] | None = None


def arm(env: Mapping[str, str]) -> None:
    """Reads from RSCHED_FAULTS at which points this process is to end.

    Args:
        env: The environment variables.

    Raises:
        Misconfigured: A name in it is not that of a point, or a passing is not a number from 1.
    """
    global _left
    wanted = env.get(VARIABLE, "")
    passings: dict[str, int] = {}
    for item in filter(None, wanted.split(",")):
        name, _, passing = item.partition(":")
        if name not in POINTS:
            raise Misconfigured(f"{VARIABLE}: {name!r} is not a fault point; write one of {', '.join(sorted(POINTS))}")
        if passing and not (passing.isdecimal() and int(passing) > 0):
            raise Misconfigured(f"{VARIABLE}: {item!r}: write the passing as a number from 1, as in {name}:3")
        passings[name] = int(passing or 1)
    _left = passings or None


def point(name: str) -> None:
    """Marks a point by its name; the process ends here where it was armed for it."""
    if _left is not None:
        _passed(_left, name)


def _passed(left: dict[str, int], name: str) -> None:
    if name in left:
        left[name] -= 1
        if left[name] == 0:
            os.kill(os.getpid(), signal.SIGKILL)
