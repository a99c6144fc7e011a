"""The body of a job from keyword arguments, so that common jobs are one readable line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, TypedDict

import msgspec

from rsched.core.errors import invalid
from rsched.core.jobs.model import (
    DstPolicy,
    FunctionTarget,
    HttpTarget,
    JobSpec,
    Misfire,
    MisfirePolicy,
    Overlap,
    Priority,
    RetryPolicy,
    ScheduleSpec,
    Target,
)

Instant = str | datetime
Length = str | int | float | timedelta


class JobOptions(TypedDict, total=False):
    """A schedule (cron and timezone, every and anchor, at, or delay; with second, year, dst, exclude, start, end, max_runs,
    window), a target (url..., or function...), and policies.

    at, anchor, start and end: RFC 3339 text or an aware datetime. every, delay and window: "90s", a number of seconds, or a
    timedelta. schedule and target take the whole part at once, schedules several schedules.
    """

    team: str
    schedule: ScheduleSpec | Mapping[str, Any]
    cron: str
    timezone: str
    every: Length
    anchor: Instant
    at: Instant
    delay: Length
    second: str | int
    year: str | int
    dst: DstPolicy | Mapping[str, str]
    exclude: Sequence[str]
    start: Instant
    end: Instant
    max_runs: int
    window: Length
    schedules: Sequence[ScheduleSpec | Mapping[str, Any]]
    target: Target | Mapping[str, Any]
    url: str
    method: str
    headers: Mapping[str, str]
    body: Any
    function: str
    queue: str
    args: Sequence[Any]
    kwargs: Mapping[str, Any]
    payload: Any
    timeout_s: float
    retry: RetryPolicy | Mapping[str, Any]
    max_attempts: int
    misfire_policy: MisfirePolicy
    misfire: Misfire | Mapping[str, Any]
    overlap: Overlap
    priority: Priority
    tags: Sequence[str]


_SCHEDULE = ScheduleSpec.__struct_fields__
_HTTP = ("url", "method", "headers", "body")
_FUNCTION = ("function", "queue", "args", "kwargs")
_POLICIES = ("team", "payload", "timeout_s", "misfire_policy", "misfire", "overlap", "priority", "tags")
_KNOWN = frozenset(
    (*_SCHEDULE, *_HTTP, *_FUNCTION, *_POLICIES, "schedule", "schedules", "target", "retry", "max_attempts")
)


def job_body(name: str | None, options: Mapping[str, Any]) -> dict[str, Any]:
    """The JSON of a job. The server checks the values; here only what it could not see is refused. Invalid, TypeError."""
    unknown = sorted(set(options) - _KNOWN)
    if unknown:
        raise TypeError(f"unknown option {unknown[0]!r}; known are {', '.join(sorted(_KNOWN))}")
    given = {k: v for k, v in options.items() if v is not None}
    body = {k: plain(given[k], k) for k in _POLICIES if k in given}
    if name is not None:
        body["name"] = name
    body |= _schedule(given)
    body["target"] = _target(given)
    retry = plain(given.get("retry", {}), "retry")
    if "max_attempts" in given:
        retry = {**retry, "max_attempts": given["max_attempts"]}
    if retry:
        body["retry"] = retry
    return body


def spec_body(spec: JobSpec | Mapping[str, Any]) -> dict[str, Any]:
    """A whole job at once, as a struct or as JSON."""
    body: dict[str, Any] = msgspec.to_builtins(spec)
    if body.get("name", "") is None:
        del body["name"]
    return body


def _schedule(given: Mapping[str, Any]) -> dict[str, Any]:
    if "schedules" not in given:
        return {"schedule": _part(given, "schedule", _SCHEDULE)}
    found = [k for k in ("schedule", *_SCHEDULE) if k in given]
    if found:
        raise invalid("schedules", f"is given, and {', '.join(found)} too; write it in one of the two ways")
    return {"schedules": plain(given["schedules"], "schedules")}


def _part(given: Mapping[str, Any], whole: str, names: Sequence[str]) -> dict[str, Any]:
    found = {k: plain(given[k], f"{whole}.{k}") for k in names if k in given}
    if whole not in given:
        return found
    if found:
        raise invalid(whole, f"is given, and {', '.join(found)} too; write it in one of the two ways")
    entire: dict[str, Any] = plain(given[whole], whole)
    return entire


def _target(given: Mapping[str, Any]) -> dict[str, Any]:
    http = [k for k in _HTTP if k in given]
    function = [k for k in _FUNCTION if k in given]
    if "target" in given or not (http or function):
        if "target" not in given:
            raise invalid("target", "is missing; give url (an HTTP call) or function (a Python function)")
        return _part(given, "target", (*_HTTP, *_FUNCTION))
    if http and function:
        raise invalid("target", f"{http[0]} is of an HTTP call and {function[0]} of a Python function; give one kind")
    kind = HttpTarget if http else FunctionTarget
    tag = str(kind.__struct_config__.tag)
    return {"type": tag, **{k: plain(given[k], f"target.{k}") for k in (http or function)}}


def plain(value: Any, field: str) -> Any:
    """value as JSON has it. Invalid."""
    if isinstance(value, datetime):
        if value.utcoffset() is None:
            raise invalid(field, "has no offset, so it names no instant; pass an aware datetime")
        return value.isoformat()
    if isinstance(value, timedelta):
        return value.total_seconds()
    try:
        return msgspec.to_builtins(value)
    except TypeError as error:
        raise invalid(field, f"is no JSON ({error}); pass plain values") from None
