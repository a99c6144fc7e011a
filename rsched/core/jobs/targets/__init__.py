"""Kinds of targets: what a run calls. One file a kind, and one registry of them.

Authority: this registry alone says which kinds there are, which of a target's fields are wrong, whose workers call it and how
it is shown. Workers have a class for each kind (rsched.worker.targets), which mypy holds against the union below.

Trusts: that `decode` has checked the types of a target's fields. Fails: a wrong field is yielded as a FieldError, never raised;
a type that is not registered is a KeyError, since it can come from a mistake in the program alone.

A new kind is a file here with its struct and its TargetKind, its two places below, a file in rsched/worker/targets and its arm
in rsched/worker/targets/calls.py.
"""

from __future__ import annotations

from collections.abc import Iterator

from rsched.core.errors import FieldError
from rsched.core.jobs.targets.base import SLUG_FIX, TargetKind, TargetKinds, check_slug
from rsched.core.jobs.targets.function import FUNCTION, FunctionTarget
from rsched.core.jobs.targets.http import HTTP, HTTP_QUEUE, HttpTarget

__all__ = [
    "FUNCTION",
    "HTTP",
    "HTTP_QUEUE",
    "SLUG_FIX",
    "TARGET_KINDS",
    "FunctionTarget",
    "HttpTarget",
    "Target",
    "TargetKind",
    "TargetKinds",
    "check_slug",
    "check_target",
    "queue_of",
    "summary_of",
    "target_for_payload",
]

Target = HttpTarget | FunctionTarget
TARGET_KINDS = TargetKinds((HTTP, FUNCTION))


def check_target(target: Target) -> Iterator[FieldError]:
    """Yields each wrong field of a target, named as in a job."""
    return TARGET_KINDS.check(target)


def queue_of(target: Target) -> str:
    """Returns the queue whose workers can call the target."""
    return TARGET_KINDS.of(target).queue(target)


def summary_of(target: Target) -> str:
    """Returns the target as a few words for a list, such as `POST https://host/path`."""
    return TARGET_KINDS.of(target).summary(target)


def target_for_payload(target: Target) -> Target:
    """Returns the target as a run with a payload of its own calls it."""
    called: Target = TARGET_KINDS.of(target).for_payload(target)
    return called
