"""From the bytes of a request to a JobSpec that is safe to store; each refusal names its field and the fix.

What of a schedule needs a clock or a team's calendars is found by rsched.core.schedule.schedule.resolve.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TypeVar

import msgspec

from rsched.core.durations import parse_duration
from rsched.core.errors import FieldError, Invalid, invalid
from rsched.core.ids import is_job_id
from rsched.core.jobs.model import JobSpec
from rsched.core.jobs.shapes import choices_at, fields_at
from rsched.core.jobs.targets import TARGET_KINDS, check_slug, check_target
from rsched.core.schedule.parse import parse_schedules
from rsched.core.schedule.parsed import ParsedSchedules

__all__ = ["check_job", "check_name", "check_slug", "check_value", "decode", "parse_job", "parse_request"]

MAX_NAME = 200
MAX_DEPTH = 64
MAX_TAGS = 32
MAX_TIMEOUT_S = 86_400
MAX_ATTEMPTS = 100
MAX_PAUSE_MS = 7 * 86_400_000

_AT = re.compile(r"^(.*?)(?: - at (?:`key` in )?`\$(.*)`)?$", re.DOTALL)
_QUOTED = re.compile(r"`([^`]*)`")
# JSON without an escape, a long number and a large exponent has no value that check_value refuses, unless it is deep.
_LONG = re.compile(rb"[0-9][0-9]{17}")  # so that it begins with one character, which is quick to look for
_EXPONENT = re.compile(rb"[eE][+-]?[0-9]{3}")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_FREE = ("name", "team", "payload", "target", "tags", "schedule", "schedules")
T = TypeVar("T")
Errors = Iterator[FieldError]


def decode(raw: bytes, kind: type[T]) -> T:
    """Reads JSON as a type.

    Args:
        raw: As it came.
        kind: The type.

    Raises:
        Invalid: It names the field whose type is wrong, or the whole body where that is not JSON.
    """
    try:
        return msgspec.json.decode(raw, type=kind)
    except msgspec.ValidationError as error:
        # The typed decoder tells of an unknown field even in a text that breaks off later.
        if _broken(raw):
            raise invalid("", "the body is not valid JSON; send one UTF-8 JSON object") from None
        raise Invalid(errors=[_field_error(str(error), kind)]) from None
    except RecursionError:
        raise invalid("", f"is nested too deeply; keep to {MAX_DEPTH} levels") from None
    except ValueError as error:
        raise invalid("", f"the body is not valid JSON ({error}); send one UTF-8 JSON object") from None


def _broken(raw: bytes) -> bool:
    try:
        msgspec.json.decode(raw)
    except msgspec.ValidationError:
        return False
    except (ValueError, RecursionError):
        return True
    return False


def parse_job(raw: bytes) -> JobSpec:
    """Returns the job in the body of POST /v1/jobs. Raises Invalid, which lists every field that cannot stand."""
    return parse_request(raw).spec


class ParsedJob(NamedTuple):
    """A job that can stand, and its schedules as they were read."""

    spec: JobSpec
    schedules: ParsedSchedules


def parse_request(raw: bytes) -> ParsedJob:
    """Reads the body of POST /v1/jobs.

    Args:
        raw: JSON, as it came.

    Raises:
        Invalid: It lists every field that cannot stand.
    """
    spec = decode(raw, JobSpec)
    if _suspect(raw) and (errors := [e for part in _FREE for e in _texts(part, spec)]):
        raise Invalid(errors=errors)
    return check_job(spec)


def check_job(spec: JobSpec) -> ParsedJob:
    """Returns the job with its schedules read. Raises Invalid, which lists every field that cannot stand."""
    errors = [error for check in _CHECKS for error in check(spec)]
    try:
        schedules = parse_schedules(spec)
    except Invalid as error:
        errors += error.errors
    errors += check_target(spec.target)
    if errors:
        raise Invalid(errors=errors)
    return ParsedJob(spec, schedules)


def _suspect(raw: bytes) -> bool:
    return bool(
        b"\\" in raw or _LONG.search(raw) or _EXPONENT.search(raw) or raw.count(b"[") + raw.count(b"{") > MAX_DEPTH
    )


def _field_error(text: str, kind: Any) -> FieldError:
    match = _AT.match(text)
    message, path = (match[1], match[2] or "") if match else (text, "")
    field = path.lstrip(".").replace("[...]", ".*")
    name = _QUOTED.search(message)
    if name and "unknown field" in message:
        known = fields_at(kind, field)
        hint = f"; known here: {', '.join(known)}" if known else ""
        return FieldError(_join(field, name[1]), f"unknown field; leave it out{hint}")
    if name and "missing required field" in message:
        return FieldError(_join(field, name[1]), "is required; add it")
    if "out of range" in message:
        return FieldError(field, "the number is out of range; integers have up to 64 bits")
    if message.startswith("Expected"):
        return FieldError(field, f"wrong type: {message[0].lower()}{message[1:].replace('`', '')}")
    if message.startswith("Invalid value") and field.endswith("type"):
        tags = " or ".join(kind.tag for kind in TARGET_KINDS)
        return FieldError(field, f"{message[:80]}; write {tags}")
    if message.startswith("Invalid enum value") and (choices := choices_at(kind, field)):
        return FieldError(field, f"{message[19:80].strip()} is not one of the choices; write {', '.join(choices)}")
    return FieldError(field, f"{message[:200]}; see /openapi.json for what it takes")


def _join(field: str, name: str) -> str:
    return f"{field}.{name}" if field else name


def _texts(part: str, spec: JobSpec) -> Errors:
    """What no text or number anywhere may be: NUL, a lone surrogate, NaN, over 64 bits, nested without end."""
    value = getattr(spec, part)
    return check_value(value, part)


def check_value(value: Any, field: str, depth: int = 1) -> Errors:
    """Yields why free JSON, or a struct that holds some, cannot be kept and handed on unchanged.

    Args:
        value: The JSON.
        field: Where it stands, for errors.
        depth: How deep that is, from 1.
    """
    if isinstance(value, msgspec.Struct):
        value = msgspec.structs.asdict(value)
    if depth > MAX_DEPTH:
        yield FieldError(field, f"is nested too deeply; keep to {MAX_DEPTH} levels")
    elif isinstance(value, str):
        yield from _check_text(value, field)
    elif isinstance(value, bool) or value is None:
        return
    elif isinstance(value, int):
        if not -(2**63) <= value < 2**64:
            yield FieldError(field, "the integer does not fit 64 bits; send it as a string")
    elif isinstance(value, float):
        if not math.isfinite(value):
            yield FieldError(field, "must be a finite number")
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _check_text(key, f"{field}.{key[:40]!r}")
            yield from check_value(item, f"{field}.{key[:40]}", depth + 1)
    elif isinstance(value, list | tuple):
        for i, item in enumerate(value):
            yield from check_value(item, f"{field}[{i}]", depth + 1)


def _check_text(text: str, field: str) -> Errors:
    if "\0" in text:
        yield FieldError(field.replace("\0", ""), "must not contain a NUL character; take it out")
    elif not text.isascii() and any("\ud800" <= c <= "\udfff" for c in text):
        yield FieldError(field.encode(errors="replace").decode(), "has half a surrogate pair; send whole characters")


def check_name(name: str, field: str = "name") -> Errors:
    """Yields what is wrong with a job's name: free text without control characters."""
    if not 1 <= len(name) <= MAX_NAME:
        yield FieldError(field, f"has {len(name)} characters; write 1 to {MAX_NAME}")
    elif _CONTROL.search(name):
        yield FieldError(field, "must not contain control characters; take them out")
    elif is_job_id(name):
        yield FieldError(field, "looks like a job_id; choose another name")


def _name(spec: JobSpec) -> Errors:
    if spec.name is not None:
        yield from check_name(spec.name)
    yield from check_slug(spec.team, "team")


def _tags(spec: JobSpec) -> Errors:
    if len(spec.tags) > MAX_TAGS:
        yield FieldError("tags", f"has {len(spec.tags)} entries; keep to {MAX_TAGS}")
    for i, tag in enumerate(spec.tags[:MAX_TAGS]):
        yield from check_slug(tag, f"tags[{i}]")
        if tag in spec.tags[:i]:
            yield FieldError(f"tags[{i}]", f"{tag!r} is there twice; list it once")


def _timeout(spec: JobSpec) -> Errors:
    if not (0 < spec.timeout_s <= MAX_TIMEOUT_S):
        yield FieldError("timeout_s", f"must be more than 0 and at most {MAX_TIMEOUT_S} seconds")
    elif spec.timeout_s < 0.001:
        yield FieldError("timeout_s", "must be at least 0.001 seconds")


def _duration(value: str | int | float, *, field: str, most_ms: int | None = None) -> Errors:
    try:
        ms = parse_duration(value)
    except ValueError as error:
        yield FieldError(field, str(error))
        return
    if most_ms is not None and ms > most_ms:
        yield FieldError(field, f"must be at most {most_ms // 86_400_000} days")


def _retry(spec: JobSpec) -> Errors:
    retry = spec.retry
    if not 1 <= retry.max_attempts <= MAX_ATTEMPTS:
        yield FieldError("retry.max_attempts", f"must be 1 to {MAX_ATTEMPTS}")
    if not (1 <= retry.factor <= 100):
        yield FieldError("retry.factor", "must be a number from 1 to 100")
    yield from _duration(retry.base, field="retry.base", most_ms=MAX_PAUSE_MS)
    yield from _duration(retry.cap, field="retry.cap", most_ms=MAX_PAUSE_MS)


def _misfire(spec: JobSpec) -> Errors:
    grace, window = spec.misfire.grace, spec.misfire.catchup_window
    wrong = [*_duration(grace, field="misfire.grace")]
    if window is not None:
        wrong += _duration(window, field="misfire.catchup_window")
    yield from wrong
    if window is not None and not wrong and parse_duration(window) < parse_duration(grace):
        yield FieldError(
            "misfire.catchup_window",
            f"{window!r} is shorter than the grace ({grace!r}), so that nothing would be caught up; write a longer one",
        )


_CHECKS: tuple[Callable[[JobSpec], Errors], ...] = (_name, _tags, _timeout, _retry, _misfire)
