"""From RFC 9457 problem documents back to the error tree, by their stable code."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from rsched.core.errors import DurabilityUnknown, FieldError, Rejected, RschedError, Unavailable


class _Field(msgspec.Struct):
    field: str = ""
    message: str = ""


class _Problem(msgspec.Struct):
    code: str = ""
    title: str = ""
    detail: str = ""
    errors: list[_Field] = []
    job_id: str | None = None
    run_id: str | None = None


_decode = msgspec.json.Decoder(_Problem).decode


def _classes(of: type[RschedError]) -> Iterator[type[RschedError]]:
    yield of
    for sub in of.__subclasses__():
        yield from _classes(sub)


def error_of(status: int, body: bytes) -> RschedError:
    """The error an answer stands for. An unknown code becomes the nearest class, and keeps its own code and status."""
    try:
        problem = _decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        text = body[:200].decode(errors="replace").strip()
        problem = _Problem(detail=f"HTTP {status}{f': {text}' if text else ''}")
    detail = problem.detail or problem.title or f"HTTP {status}"
    errors = [FieldError(f.field, f.message) for f in problem.errors]
    if problem.code == DurabilityUnknown.code:
        return DurabilityUnknown(detail, job_id=problem.job_id, run_id=problem.run_id)
    cls = next((c for c in _classes(RschedError) if c.code == problem.code), None)
    if cls is not None:
        return cls(detail, errors=errors)
    error = _nearest(status)(detail, errors=errors)
    error.code, error.status = problem.code or error.code, status
    return error


def _nearest(status: int) -> type[RschedError]:
    if status in (429, 502, 503, 504):
        return Unavailable
    return Rejected if 400 <= status < 500 else RschedError
