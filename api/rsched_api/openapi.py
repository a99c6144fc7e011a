"""The OpenAPI 3.1 document: schemas from the msgspec types, paths from the table below.

`python -m rsched_api.openapi [FILE]` writes the checked-in copy, api/openapi.json.
"""

from __future__ import annotations

import json
import sys
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from rsched.core.model import JobSpec, JobView, RunView
from rsched.core.states import JobState, RunState
from rsched_api.health import Health, Readiness
from rsched_api.preview import Preview, PreviewRequest
from rsched_api.problems import Problem

_TYPES = (JobSpec, JobView, RunView, Problem, Health, Readiness, PreviewRequest, Preview)
_JOB_STATES = [s.value for s in JobState if s is not JobState.DELETED]


class Operation(NamedTuple):
    """answers: status -> component name, "" for an answer without a body. problems: the statuses of problem documents."""

    method: str
    path: str
    name: str
    summary: str
    answers: dict[int, str]
    problems: tuple[int, ...]
    parameters: tuple[str, ...] = ()
    body: str | None = None


_READ = (422, 503)
_VERB = (404, 409, 412, 422, 503)
_OF_JOB = ("ref", "team_of_name")

OPERATIONS = (
    Operation(
        "post", "/v1/jobs", "createJob", "Create a job; a repeat with the same Idempotency-Key gives the same job",
        {201: "JobView"}, (409, 413, 422, 503), ("idempotency_key",), "JobSpec",
    ),
    Operation(
        "get", "/v1/jobs", "listJobs", "Jobs, by filters, page by page",
        {200: "JobPage"}, _READ, ("team", "tag", "state", "name", "q", "limit", "cursor"),
    ),
    Operation("get", "/v1/jobs/{ref}", "getJob", "One job", {200: "JobView"}, (404, *_READ), _OF_JOB),
    Operation(
        "put", "/v1/jobs/{ref}", "putJob", "Replace a job's definition; under a name that is free, create it",
        {200: "JobView", 201: "JobView"}, (404, 409, 412, 413, 422, 503), (*_OF_JOB, "if_match"), "JobSpec",
    ),
    Operation(
        "delete", "/v1/jobs/{ref}", "deleteJob", "Delete a job; what has not started is withdrawn",
        {204: ""}, _VERB, (*_OF_JOB, "if_match"),
    ),
    Operation(
        "post", "/v1/jobs/{ref}/pause", "pauseJob", "Stop a job's schedule",
        {200: "JobView"}, _VERB, (*_OF_JOB, "if_match"),
    ),
    Operation(
        "post", "/v1/jobs/{ref}/resume", "resumeJob", "Start a paused job's schedule again",
        {200: "JobView"}, _VERB, (*_OF_JOB, "if_match"),
    ),
    Operation(
        "post", "/v1/jobs/{ref}/trigger", "triggerJob", "Owe one run now, beside the schedule",
        {202: "RunView"}, (404, 409, 422, 503), (*_OF_JOB, "idempotency_key"),
    ),
    Operation(
        "get", "/v1/jobs/{ref}/runs", "listRuns", "Runs of a job, newest first",
        {200: "RunPage"}, (404, *_READ), (*_OF_JOB, "status", "limit", "cursor"),
    ),
    Operation("get", "/v1/runs/{run}", "getRun", "One run with its attempts", {200: "RunView"}, (404, *_READ), ("run",)),
    Operation(
        "post", "/v1/runs/{run}/cancel", "cancelRun", "Cancel a run; one that is running is asked to stop",
        {200: "RunView"}, (404, 409, 422, 503), ("run",),
    ),
    Operation(
        "get", "/v1/dead-letters", "listDeadLetters", "Runs that used up their attempts",
        {200: "RunPage"}, _READ, ("team", "limit", "cursor"),
    ),
    Operation(
        "post", "/v1/schedules:preview", "previewSchedule", "When a schedule would run",
        {200: "Preview"}, (413, 422, 503), (), "PreviewRequest",
    ),
    Operation("get", "/healthz", "healthz", "The process answers", {200: "Health"}, ()),
    Operation(
        "get", "/readyz", "readyz", "All that a run needs is there, or what is missing",
        {200: "Readiness", 503: "Readiness"}, (),
    ),
)  # fmt: skip


def _parameter(place: str, name: str, description: str, schema: dict[str, Any]) -> dict[str, Any]:
    required = {"required": True} if place == "path" else {}
    return {"in": place, "name": name, "description": description, **required, "schema": schema}


_TEXT = {"type": "string", "maxLength": 200}
_SLUG = {"type": "string", "pattern": "^[a-z0-9][a-z0-9_-]{0,62}$"}

PARAMETERS = {
    "ref": _parameter("path", "ref", "job_id, or the percent-encoded name", {"type": "string", "minLength": 1}),
    "team_of_name": _parameter("query", "team", "Whose name the path has, by default the team `default`", _SLUG),
    "run": _parameter("path", "run", "run_id", {"type": "string", "minLength": 1}),
    "team": _parameter("query", "team", "Of this team only", _SLUG),
    "tag": _parameter("query", "tag", "With this tag only", _SLUG),
    "state": _parameter("query", "state", "In this state only", {"enum": _JOB_STATES}),
    "name": _parameter("query", "name", "Of this name only", _TEXT),
    "q": _parameter("query", "q", "With this text in the name", _TEXT),
    "status": _parameter("query", "status", "In this state only", {"enum": [s.value for s in RunState]}),
    "limit": _parameter(
        "query", "limit", "Items a page", {"type": "integer", "minimum": 1, "maximum": 1000, "default": 100}
    ),
    "cursor": _parameter("query", "cursor", "next_cursor of the page before", {"type": "string"}),
    "idempotency_key": _parameter(
        "header", "Idempotency-Key", "Makes a repeat harmless", {"type": "string", "minLength": 1, "maxLength": 255}
    ),
    "if_match": _parameter(
        "header", "If-Match", "The ETag that was seen; another version answers 412", {"type": "string"}
    ),
}


def document() -> dict[str, Any]:
    """The whole document, ready for JSON."""
    _, components = msgspec.json.schema_components(_TYPES, ref_template="#/components/schemas/{name}")
    for page, item in (("JobPage", "JobView"), ("RunPage", "RunView")):
        components[page] = {
            "type": "object",
            "required": ["items", "next_cursor"],
            "properties": {
                "items": {"type": "array", "items": _ref(item)},
                "next_cursor": {"type": ["string", "null"]},
            },
        }
    paths: dict[str, Any] = {}
    for operation in OPERATIONS:
        paths.setdefault(operation.path, {})[operation.method] = _operation(operation)
    paths["/metrics"] = {"get": _plain("metrics", "Prometheus metrics of this process", "text/plain")}
    paths["/openapi.json"] = {"get": _plain("openapi", "This document", "application/json")}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "rsched",
            "version": "1",
            "description": "A Redis-native job scheduler. Errors are RFC 9457 problem documents.",
        },
        "paths": paths,
        "components": {"schemas": dict(sorted(components.items())), "parameters": PARAMETERS},
    }


def _ref(name: str) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{name}"}


def _plain(name: str, summary: str, media: str) -> dict[str, Any]:
    return {
        "operationId": name,
        "summary": summary,
        "responses": {"200": {"description": "OK", "content": {media: {}}}},
    }


def _operation(operation: Operation) -> dict[str, Any]:
    responses: dict[str, Any] = {}
    for status, component in operation.answers.items():
        responses[str(status)] = {"description": operation.summary}
        if component:
            responses[str(status)]["content"] = {"application/json": {"schema": _ref(component)}}
        if component == "JobView":
            responses[str(status)]["headers"] = {"ETag": {"schema": {"type": "string"}}}
    for status in operation.problems:
        content = {"application/problem+json": {"schema": _ref("Problem")}}
        responses[str(status)] = {"description": _PROBLEMS[status], "content": content}
        if status == 503:
            responses["503"]["headers"] = {"Retry-After": {"schema": {"type": "integer"}}}
    found: dict[str, Any] = {"operationId": operation.name, "summary": operation.summary, "responses": responses}
    if operation.parameters:
        found["parameters"] = [{"$ref": f"#/components/parameters/{p}"} for p in operation.parameters]
    if operation.body:
        found["requestBody"] = {
            "required": True,
            "content": {"application/json": {"schema": _ref(operation.body)}},
        }
    return found


_PROBLEMS = {
    404: "There is no such thing",
    409: "The name is taken, or the state does not allow it",
    412: "Another version than If-Match named",
    413: "The definition is over 64 KB",
    422: "Bad input; errors names each field",
    503: "Not now; after a write durability is unknown, and a repeat with the same key settles it",
}


@cache
def render() -> str:
    """The document as it is served and checked in."""
    return json.dumps(document(), indent=2, ensure_ascii=False) + "\n"


async def serve(request: Request) -> Response:
    return Response(render(), media_type="application/json")


def main(argv: list[str]) -> None:
    path = Path(argv[0]) if argv else Path(__file__).parent.parent / "openapi.json"
    path.write_text(render(), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
