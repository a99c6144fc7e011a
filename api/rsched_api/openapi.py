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

from rsched.core.answers import (
    BackfillView,
    BulkAnswer,
    CalendarView,
    ForecastView,
    JobView,
    Preview,
    RunView,
    SkipView,
)
from rsched.core.jobs.model import JobSpec
from rsched.core.states import JobState, RunState
from rsched.version import __version__
from rsched_api.descriptions import describe
from rsched_api.http.ack import ACKS, HEADER, changes
from rsched_api.http.batch_body import MAX_BATCH_BYTES, MAX_JOBS, BatchAnswer, BatchRequest
from rsched_api.http.problems import Problem
from rsched_api.routes.backfill import MAX_OCCURRENCES, BackfillRequest
from rsched_api.routes.bulk import MAX_MATCHED, BulkPause, BulkRequest, BulkResume
from rsched_api.routes.calendars import CalendarRequest
from rsched_api.routes.control import PauseRequest, ResumeRequest
from rsched_api.routes.forecast import MAX_HOURS
from rsched_api.routes.health import Health, Readiness
from rsched_api.routes.patch import MEDIA_TYPES
from rsched_api.routes.preview import PreviewRequest
from rsched_api.routes.trigger import TriggerRequest

_TYPES = (
    ForecastView, JobSpec, JobView, RunView, Problem, Health, Readiness, PreviewRequest, Preview, BatchRequest,
    BatchAnswer, BackfillRequest, BackfillView, BulkAnswer, BulkPause, BulkRequest, BulkResume, CalendarRequest,
    CalendarView, PauseRequest, ResumeRequest, SkipView, TriggerRequest,
)  # fmt: skip
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
    body_optional: bool = False


_READ = (422, 503)
_VERB = (404, 409, 412, 422, 503)
_WITH_BODY = (404, 409, 412, 413, 422, 503)
_OF_JOB = ("ref", "team_of_name")
_OF_CALENDAR = ("team_of_path", "name_of_calendar")

OPERATIONS = (
    Operation(
        "post", "/v1/jobs", "createJob", "Create a job; a repeat with the same Idempotency-Key gives the same job",
        {201: "JobView"}, (409, 413, 422, 503), ("idempotency_key",), "JobSpec",
    ),
    Operation(
        "get", "/v1/jobs", "listJobs", "Jobs, by filters, page by page",
        {200: "JobPage"}, _READ, ("team", "tag", "state", "name", "q", "limit", "cursor"),
    ),
    Operation(
        "post", "/v1/jobs:batch", "createJobs",
        f"Create up to {MAX_JOBS} jobs in at most {MAX_BATCH_BYTES >> 20} MB, all or none;"
        " a repeat with the same Idempotency-Key gives the same jobs",
        {201: "BatchAnswer"}, (409, 413, 422, 503), ("idempotency_key",), "BatchRequest",
    ),
    Operation("get", "/v1/jobs/{ref}", "getJob", "One job", {200: "JobView"}, (404, *_READ), _OF_JOB),
    Operation(
        "put", "/v1/jobs/{ref}", "putJob", "Replace a job's definition; under a name that is free, create it",
        {200: "JobView", 201: "JobView"}, (404, 409, 412, 413, 422, 503), (*_OF_JOB, "if_match"), "JobSpec",
    ),
    Operation(
        "patch", "/v1/jobs/{ref}", "updateJob", "Change some fields of a job's definition (JSON merge patch, RFC 7396)",
        {200: "JobView"}, (404, 412, 413, 422, 503), (*_OF_JOB, "if_match"), "JobPatch",
    ),
    Operation(
        "delete", "/v1/jobs/{ref}", "deleteJob", "Delete a job; what has not started is withdrawn",
        {204: ""}, _VERB, (*_OF_JOB, "if_match"),
    ),
    Operation(
        "post", "/v1/jobs:pause", "pauseJobs", f"Stop the schedules of all jobs that match, {MAX_MATCHED} a request",
        {200: "BulkAnswer"}, (413, 422, 503), (), "BulkPause",
    ),
    Operation(
        "post", "/v1/jobs:resume", "resumeJobs",
        f"Start the schedules of all jobs that match again, {MAX_MATCHED} a request",
        {200: "BulkAnswer"}, (413, 422, 503), (), "BulkResume",
    ),
    Operation(
        "post", "/v1/jobs:delete", "deleteJobs", f"Delete all jobs that match, {MAX_MATCHED} a request",
        {200: "BulkAnswer"}, (413, 422, 503), (), "BulkRequest",
    ),
    Operation(
        "post", "/v1/jobs/{ref}/pause", "pauseJob",
        "Stop a job's schedule, until it is resumed or for a while; of a paused job, change note and end of the pause",
        {200: "JobView"}, _WITH_BODY, (*_OF_JOB, "if_match"), "PauseRequest", True,
    ),
    Operation(
        "post", "/v1/jobs/{ref}/resume", "resumeJob", "Start a paused job's schedule again",
        {200: "JobView"}, _WITH_BODY, (*_OF_JOB, "if_match"), "ResumeRequest", True,
    ),
    Operation(
        "post", "/v1/jobs/{ref}/trigger", "triggerJob", "Owe one run now, beside the schedule",
        {202: "RunView"}, (404, 409, 413, 422, 503), (*_OF_JOB, "idempotency_key"), "TriggerRequest", True,
    ),
    Operation(
        "post", "/v1/jobs/{ref}/backfill", "backfillJob",
        f"Owe the occurrences of a past range that have no run, {MAX_OCCURRENCES:,} at most; a repeat finds them pending",
        {202: "BackfillView"}, (404, 409, 413, 422, 503), _OF_JOB, "BackfillRequest",
    ),
    Operation(
        "get", "/v1/jobs/{ref}/skips", "listSkips", "Occurrences that made no run and why, the latest first",
        {200: "SkipPage"}, (404, *_READ), (*_OF_JOB, "limit", "cursor"),
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
    Operation(
        "get", "/v1/teams/{team}/calendars", "listCalendars", "A team's calendars of exclusions, by name",
        {200: "CalendarPage"}, _READ, ("team_of_path", "limit", "cursor"),
    ),
    Operation(
        "get", "/v1/teams/{team}/calendars/{name}", "getCalendar", "One calendar of exclusions",
        {200: "CalendarView"}, (404, *_READ), _OF_CALENDAR,
    ),
    Operation(
        "put", "/v1/teams/{team}/calendars/{name}", "putCalendar",
        "Create or replace a calendar of exclusions; jobs that name it go by the new one",
        {200: "CalendarView", 201: "CalendarView"}, (412, 413, 422, 503), (*_OF_CALENDAR, "if_match"), "CalendarRequest",
    ),
    Operation(
        "delete", "/v1/teams/{team}/calendars/{name}", "deleteCalendar", "Delete a calendar that no job uses",
        {204: ""}, _VERB, (*_OF_CALENDAR, "if_match"),
    ),
    Operation(
        "get", "/v1/forecast", "forecast", "Runs per minute to come, by team and in total, with the spikes",
        {200: "ForecastView"}, _READ, ("hours", "team"),
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
    "hours": _parameter(
        "query", "hours", "How far to look", {"type": "integer", "minimum": 1, "maximum": MAX_HOURS, "default": 24}
    ),
    "ref": _parameter("path", "ref", "job_id, or the percent-encoded name", {"type": "string", "minLength": 1}),
    "team_of_name": _parameter("query", "team", "Whose name the path has, by default the team `default`", _SLUG),
    "team_of_path": _parameter("path", "team", "The team that has it", _SLUG),
    "name_of_calendar": _parameter("path", "name", "Its name, with a letter in it", _SLUG),
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
    "ack": _parameter(
        "query", "ack",
        "Where a change has to be before it is answered: in Postgres, where it survives the loss of Redis, or in Redis only. "
        "With `redis` a create with a key and without a name is answered while Postgres is away, too, by what Redis has: a "
        "repeat that comes more than 10 minutes after the job completed or was deleted may then make it a second time. A name "
        "is checked in Postgres whatever this says",
        {"enum": list(ACKS), "default": ACKS[0]},
    ),
    "idempotency_key": _parameter(
        "header", "Idempotency-Key", "Makes a repeat harmless", {"type": "string", "minLength": 1, "maxLength": 255}
    ),
    "if_match": _parameter(
        "header", "If-Match", "The ETag that was seen; another version answers 412", {"type": "string"}
    ),
}  # fmt: skip


_PAGES = (("JobPage", "JobView"), ("RunPage", "RunView"), ("SkipPage", "SkipView"), ("CalendarPage", "CalendarView"))


def document() -> dict[str, Any]:
    """The whole document, ready for JSON."""
    _, components = msgspec.json.schema_components(_TYPES, ref_template="#/components/schemas/{name}")
    describe(components)
    _say_what_is_always_there(components["JobView"], JobView)
    for page, item in _PAGES:
        components[page] = {
            "type": "object",
            "required": ["items", "next_cursor"],
            "properties": {
                "items": {"type": "array", "items": _ref(item)},
                "next_cursor": {"type": ["string", "null"]},
            },
        }
    components["JobPatch"] = _patch()
    paths: dict[str, Any] = {}
    for operation in OPERATIONS:
        paths.setdefault(operation.path, {})[operation.method] = _operation(operation)
    paths["/metrics"] = {"get": _plain("metrics", "Prometheus metrics of this process", "text/plain")}
    paths["/openapi.json"] = {"get": _plain("openapi", "This document", "application/json")}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "rsched",
            "version": __version__,
            "description": "A Redis-native job scheduler. Errors are RFC 9457 problem documents.",
        },
        "paths": paths,
        "components": {"schemas": dict(sorted(components.items())), "parameters": PARAMETERS},
    }


def _patch() -> dict[str, Any]:
    """The schema of a merge patch, whose values follow JobSpec once they are merged."""
    fields = [name for name in JobSpec.__struct_fields__ if name not in ("team", "name")]
    return {
        "type": "object",
        "description": (
            "What changes; all else stays. Objects (schedule, target, retry, misfire, payload...) are merged member by member, "
            "lists are replaced, and null takes an optional field away or sets its default. A schedule or target of another kind "
            "takes null for the members of the old one. team and name cannot change."
        ),
        "properties": {name: {"description": f"As in JobSpec: {name}"} for name in fields},
    }


def _say_what_is_always_there(schema: dict[str, Any], view: type[JobView]) -> None:
    """A view shares its fields, and their defaults, with what people send; unlike that it has all of them but a few."""
    schema["required"] = [name for name in view.__struct_fields__ if name not in view.leaves_out]
    for name in schema["required"]:
        schema["properties"][name].pop("default", None)


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
    changing = changes(operation.method.upper(), operation.path)
    for status, component in operation.answers.items():
        responses[str(status)] = {"description": operation.summary}
        if component:
            responses[str(status)]["content"] = {"application/json": {"schema": _ref(component)}}
        if component in ("JobView", "CalendarView"):
            responses[str(status)]["headers"] = {"ETag": {"schema": {"type": "string"}}}
        if changing:
            described = {"description": "Where the change is for sure", "schema": {"enum": list(ACKS)}}
            responses[str(status)].setdefault("headers", {})[HEADER] = described
    for status in operation.problems:
        content = {"application/problem+json": {"schema": _ref("Problem")}}
        responses[str(status)] = {"description": _PROBLEMS[status], "content": content}
        if status == 503:
            responses["503"]["headers"] = {"Retry-After": {"schema": {"type": "integer"}}}
    found: dict[str, Any] = {"operationId": operation.name, "summary": operation.summary, "responses": responses}
    parameters = (*operation.parameters, *(("ack",) if changing else ()))
    if parameters:
        found["parameters"] = [{"$ref": f"#/components/parameters/{p}"} for p in parameters]
    if operation.body:
        media_types = MEDIA_TYPES if operation.method == "patch" else MEDIA_TYPES[:1]
        found["requestBody"] = {
            "required": not operation.body_optional,
            "content": {media_type: {"schema": _ref(operation.body)} for media_type in media_types},
        }
    return found


_PROBLEMS = {
    404: "There is no such thing",
    409: "The name is taken, or the state does not allow it",
    412: "Another version than If-Match named",
    413: "The definition is over 64 KB, or the batch too long",
    422: "Bad input; errors names each field",
    503: "Not now. With `durability` the change may have been made, and a repeat with the same key tells",
}


@cache
def render() -> str:
    """The document as it is served and checked in."""
    return json.dumps(document(), indent=2, ensure_ascii=False) + "\n"


async def serve(request: Request) -> Response:
    """GET /openapi.json: answers with the description of this API."""
    return Response(render(), media_type="application/json")


def main(argv: list[str]) -> None:
    """Writes the document to the path given, by default to the checked-in copy."""
    path = Path(argv[0]) if argv else Path(__file__).parent.parent / "openapi.json"
    path.write_text(render(), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
