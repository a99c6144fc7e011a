"""Bodies of requests from keyword arguments and Python's own types, so that common jobs are one readable line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, datetime, timedelta, timezone, tzinfo
from typing import Any, TypedDict
from zoneinfo import ZoneInfo

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
"""RFC 3339 text with an offset, or an aware datetime."""
Length = str | int | float | timedelta
"""A text such as "90s", a number of seconds, or a timedelta."""
Zone = str | tzinfo
"""The name of a zone, such as "Asia/Kolkata", or a zoneinfo.ZoneInfo."""
Day = str | date
"""A date, a range of dates such as "2026-12-24/2027-01-02" (both included), or the name of a calendar."""


class JobOptions(TypedDict, total=False):
    """What a job is made of, each as a keyword argument; one that is None is as if it were left out.

    Attributes:
        team: The team that owns the job, by default `default`.
        schedule: The whole schedule at once, in place of its parts.
        cron: Five fields, such as "0 2 * * *", or "@daily".
        timezone: The zone that cron and dates are read in, by default UTC.
        every: The length of an interval.
        anchor: An instant of the interval, which sets its phase.
        at: The one instant to run at.
        delay: How long from now to run once.
        second: The cron field of seconds.
        year: The cron field of years.
        dst: What cron does where the clocks change.
        exclude: Days without a run, and names of the team's calendars.
        start: No occurrence lies before it.
        end: All occurrences lie before it.
        max_runs: How many occurrences the schedule has in all.
        window: Runs are spread over so long after their occurrence.
        schedules: Several schedules in place of one.
        target: The whole target at once, in place of its parts.
        url: The address that is called.
        method: Of the call, by default POST.
        headers: Of the call.
        body: Of the call, as JSON; by default the payload.
        function: The name of a Python function that workers serve.
        queue: The queue whose workers have the function.
        args: Positional arguments of the function.
        kwargs: Keyword arguments of the function.
        payload: Any JSON, for the target.
        timeout_s: Seconds that one attempt may take, by default 60; or a timedelta.
        retry: How often and when an attempt is repeated.
        max_attempts: Attempts before a run is DEAD, by default 3.
        misfire_policy: What becomes of late occurrences, by default run_once.
        misfire: When an occurrence is late, and when it is too old.
        overlap: What happens while a run of the job is active, by default allow.
        priority: Among the runs of a team, by default normal.
        tags: Any number of labels.
    """

    team: str | None
    schedule: ScheduleSpec | Mapping[str, Any] | None
    cron: str | None
    timezone: Zone | None
    every: Length | None
    anchor: Instant | None
    at: Instant | None
    delay: Length | None
    second: str | int | None
    year: str | int | None
    dst: DstPolicy | Mapping[str, str] | None
    exclude: Sequence[Day] | None
    start: Instant | None
    end: Instant | None
    max_runs: int | None
    window: Length | None
    schedules: Sequence[ScheduleSpec | Mapping[str, Any]] | None
    target: Target | Mapping[str, Any] | None
    url: str | None
    method: str | None
    headers: Mapping[str, str] | None
    body: Any
    function: str | None
    queue: str | None
    args: Sequence[Any] | None
    kwargs: Mapping[str, Any] | None
    payload: Any
    timeout_s: float | timedelta | None
    retry: RetryPolicy | Mapping[str, Any] | None
    max_attempts: int | None
    misfire_policy: MisfirePolicy | None
    misfire: Misfire | Mapping[str, Any] | None
    overlap: Overlap | None
    priority: Priority | None
    tags: Sequence[str] | None


_SCHEDULE = ScheduleSpec.__struct_fields__
_HTTP = ("url", "method", "headers", "body")
_FUNCTION = ("function", "queue", "args", "kwargs")
_POLICIES = ("team", "timeout_s", "misfire_policy", "misfire", "overlap", "priority", "tags")
_WHOLE = ("payload", "schedule", "schedules", "target", "retry", "max_attempts")
_KNOWN = frozenset((*_SCHEDULE, *_HTTP, *_FUNCTION, *_POLICIES, *_WHOLE))
# Of each kind of schedule: what it cannot have. (An interval has a time zone where it excludes dates.)
_OF_CRON = ("cron", "second", "year", "dst")
_OF_RECURRING = (*_OF_CRON, "timezone", "every", "anchor", "start", "end", "max_runs", "exclude")
_GONE = {
    "cron": ("every", "anchor", "at", "delay"),
    "every": (*_OF_CRON, "at", "delay"),
    "at": (*_OF_RECURRING, "delay"),
    "delay": (*_OF_RECURRING, "at"),
}


class JobFilter(TypedDict, total=False):
    """Which jobs are meant; all that is given must fit.

    Attributes:
        team: Jobs of this team.
        tag: Jobs with this tag.
        state: active, paused, completed or invalid.
        name: Jobs of exactly this name; in requests about many jobs * stands for any text.
        q: Jobs with this in their name.
    """

    team: str | None
    tag: str | None
    state: str | None
    name: str | None
    q: str | None


def job_body(name: str | None, spec: JobSpec | Mapping[str, Any] | None, options: Mapping[str, Any]) -> dict[str, Any]:
    """Gives the JSON of a job. The server checks the values; here only what it could not see is refused.

    Args:
        name: The job's name, if it has one.
        spec: The whole job at once, in place of options.
        options: JobOptions.

    Raises:
        Invalid: A value that JSON has no word for, a naive datetime, or a part that is given in two ways.
        TypeError: There is no such option.
    """
    _check(options)
    given = {k: v for k, v in options.items() if v is not None}
    if spec is not None:
        if given:
            raise invalid("spec", f"holds the whole job, and {', '.join(given)} is given too; put it into the spec")
        body = spec_body(spec)
    else:
        body = _policies(given) | _schedule(given)
        body["target"] = _target(given)
    return body if name is None else {**body, "name": name}


def spec_body(spec: JobSpec | Mapping[str, Any]) -> dict[str, Any]:
    """Gives the JSON of a whole job, from a struct or from what is JSON already."""
    parts = msgspec.structs.asdict(spec) if isinstance(spec, JobSpec) else spec
    for_the_target = ("target", "payload")
    return {
        name: json_value(value, name) if name in for_the_target else plain(value, name)
        for name, value in parts.items()
        if name != "name" or value is not None
    }


def patch_body(changes: Mapping[str, Any]) -> dict[str, Any]:
    """Gives the JSON merge patch for these JobOptions, where None stands for null: it takes away, or sets the default.

    What makes a schedule or a target one of another kind takes the members of the kinds away that it cannot be any more.

    Raises:
        Invalid: A value that JSON has no word for, a naive datetime, or a part that is given in two ways.
        TypeError: There is no such option.
    """
    _check(changes)
    body = _policies(changes)
    if changes.get("schedules") is not None:
        body |= {"schedule": None, **_schedule(changes)}
    elif schedule := _part(changes, "schedule", _SCHEDULE):
        body |= _switched(schedule)
    elif "schedule" in changes:
        body["schedule"] = schedule
    if "schedules" in changes:
        body.setdefault("schedules", None)
    if any(k in changes for k in ("target", *_HTTP, *_FUNCTION)):
        target = _target(changes)
        others = {"http": _FUNCTION, "function": _HTTP}.get(target.get("type", ""), ()) if target else ()
        body["target"] = target and {**dict.fromkeys(others), **target}
    return body


def given(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Gives those fields that have a value, as JSON has them."""
    return {name: plain(value, name) for name, value in fields.items() if value is not None}


def plain(value: Any, field: str) -> Any:
    """Gives a value as the API reads it: instants in RFC 3339, lengths in seconds, zones by name.

    Raises:
        Invalid: A naive datetime, a zone without a name, or something else that JSON has no word for.
    """
    if isinstance(value, datetime):
        if value.utcoffset() is None:
            raise invalid(field, "has no offset, so it names no instant; pass an aware datetime")
        return value.isoformat()
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, tzinfo):
        return _zone(value, field)
    if isinstance(value, Mapping):
        return {key: plain(each, f"{field}.{key}") for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each, f"{field}[{i}]") for i, each in enumerate(value)]
    return json_value(value, field)


def json_value(value: Any, field: str) -> Any:
    """Gives a value that is for the target alone, as JSON has it.

    Raises:
        Invalid: JSON has no word for it.
    """
    try:
        return msgspec.to_builtins(value, str_keys=True)
    except TypeError as error:
        raise invalid(field, f"cannot be written as JSON ({error}); pass plain values") from None


def _zone(zone: tzinfo, field: str) -> str:
    if isinstance(zone, ZoneInfo) and zone.key:
        return zone.key
    if zone is timezone.utc:  # noqa: UP017
        return "UTC"
    raise invalid(field, f"{zone!r} has no name in the time zone database; pass a zoneinfo.ZoneInfo")


def _check(options: Mapping[str, Any]) -> None:
    unknown = sorted(set(options) - _KNOWN)
    if unknown:
        raise TypeError(f"unknown option {unknown[0]!r}; known are {', '.join(sorted(_KNOWN))}")


def _policies(given: Mapping[str, Any]) -> dict[str, Any]:
    body = {k: plain(given[k], k) for k in _POLICIES if k in given}
    if "payload" in given:
        body["payload"] = json_value(given["payload"], "payload")
    retry = plain(given.get("retry", {}), "retry")
    if "max_attempts" in given:
        retry = {**(retry or {}), "max_attempts": given["max_attempts"]}
    if retry or "retry" in given:
        body["retry"] = retry
    return body


def _schedule(given: Mapping[str, Any]) -> dict[str, Any]:
    if "schedules" not in given:
        return {"schedule": _part(given, "schedule", _SCHEDULE)}
    others = [k for k in ("schedule", *_SCHEDULE) if k in given]
    if others:
        raise invalid("schedules", f"is given, and {', '.join(others)} too; write it in one of the two ways")
    return {"schedules": plain(given["schedules"], "schedules")}


def _switched(schedule: dict[str, Any]) -> dict[str, Any]:
    """The members of a schedule, and null for what only other kinds of schedules have."""
    kind = next((k for k in _GONE if schedule.get(k) is not None), None)
    if kind is None:
        return {"schedule": schedule}
    return {"schedule": {**dict.fromkeys(_GONE[kind]), **schedule}, "schedules": None}


def _part(given: Mapping[str, Any], whole: str, names: Sequence[str]) -> dict[str, Any]:
    entire = whole in given
    parts = [k for k in names if k in given]
    if entire and parts:
        raise invalid(whole, f"is given, and {', '.join(parts)} too; write it in one of the two ways")
    write = json_value if whole == "target" else plain
    if entire:
        value: dict[str, Any] = write(given[whole], whole)
        return value
    return {k: write(given[k], f"{whole}.{k}") for k in parts}


def _target(given: Mapping[str, Any]) -> dict[str, Any]:
    http = [k for k in _HTTP if k in given]
    function = [k for k in _FUNCTION if k in given]
    if "target" in given:
        return _part(given, "target", (*_HTTP, *_FUNCTION))
    if not http and not function:
        raise invalid("target", "is missing; give url (an HTTP call) or function (a Python function)")
    if http and function:
        raise invalid("target", f"{http[0]} is of an HTTP call and {function[0]} of a Python function; give one kind")
    kind = HttpTarget if http else FunctionTarget
    tag = str(kind.__struct_config__.tag)
    return {"type": tag, **_part(given, "target", http or function)}
