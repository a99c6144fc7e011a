"""RFC 9457 problem documents: every error leaves the API as one of these."""

from __future__ import annotations

import logging
from http import HTTPStatus
from typing import Literal

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from rsched.core.errors import DurabilityUnknown, RschedError
from rsched.runtime.log import get_logger

_encode = msgspec.json.Encoder().encode
_log: logging.Logger = get_logger("rsched.api")


class ProblemField(msgspec.Struct, frozen=True):
    """field: dotted path in the request, "" for the whole; message: what was found, and the fix."""

    field: str
    message: str


class Problem(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An RFC 9457 problem document. code is stable; job_id, run_id and durability come with a 503 after a write."""

    type: str
    title: str
    status: int
    code: str
    detail: str
    errors: list[ProblemField] | msgspec.UnsetType = msgspec.UNSET
    job_id: str | None = None
    run_id: str | None = None
    durability: Literal["unknown"] | None = None


def _respond(problem: Problem, headers: dict[str, str] | None = None) -> Response:
    return Response(_encode(problem), problem.status, headers, "application/problem+json")


def _title(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "Error"


def of_error(error: RschedError) -> Response:
    """Returns the problem document that stands for an error of the core tree."""
    unknown = error if isinstance(error, DurabilityUnknown) else None
    return _respond(
        Problem(
            type=f"urn:rsched:problem:{error.code}",
            title=_title(error.status),
            status=error.status,
            code=error.code,
            detail=error.detail,
            errors=[ProblemField(*e) for e in error.errors],
            job_id=unknown.job_id if unknown else None,
            run_id=unknown.run_id if unknown else None,
            durability="unknown" if unknown else None,
        ),
        {"Retry-After": "1"} if error.status == 503 else None,
    )


def of_status(status: int, *, code: str, detail: str, headers: dict[str, str] | None = None) -> Response:
    """Returns a problem document for a status that no error of the core tree stands for."""
    return _respond(
        Problem(
            type=f"urn:rsched:problem:{code}", title=_title(status), status=status, code=code, detail=detail, errors=[]
        ),
        headers,
    )


async def on_rsched_error(request: Request, error: Exception) -> Response:
    """Answers with the problem document of an error that a handler raised."""
    assert isinstance(error, RschedError)
    return of_error(error)


async def on_http_error(request: Request, error: Exception) -> Response:
    """Answers for a path that does not exist or a method that it does not take."""
    assert isinstance(error, HTTPException)
    code = {404: "not_found", 405: "method_not_allowed"}.get(error.status_code, "http_error")
    detail = {
        "not_found": "there is nothing under this path; /openapi.json lists what there is",
        "method_not_allowed": "this path does not take the method; the Allow header lists those it takes",
    }.get(code, str(error.detail))
    headers = dict(error.headers or {})
    if error.status_code == 405:
        # One path has a route a method; the router's own Allow header names the first one's only.
        routes = [r for r in request.app.routes if isinstance(r, Route) and r.path_regex.match(request.scope["path"])]
        headers = {"Allow": ", ".join(sorted({m for r in routes for m in r.methods or ()}))}
    return of_status(error.status_code, code=code, detail=detail, headers=headers)


async def on_bug(request: Request, error: Exception) -> Response:
    """Logs an unexpected error, and answers 500 without its details."""
    _log.error("unexpected error", exc_info=error, extra={"fields": {"path": request.url.path}})
    return of_status(500, code="internal", detail="an unexpected error; it is in the API's log")
