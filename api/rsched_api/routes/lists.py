"""GET /v1/jobs: what the ledger has, by filters, page by page."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from rsched.core.errors import invalid
from rsched.core.jobs.packed import JobRecord
from rsched.core.jobs.validate import check_slug
from rsched.core.states import JobState
from rsched_api.http.deps import deps_of
from rsched_api.http.requests import limit, query
from rsched_api.routes.calendars import calendars_of_all
from rsched_api.views import job_view, page, respond

_SHOWN = [s for s in JobState if s is not JobState.DELETED]


async def list_jobs(request: Request) -> Response:
    """GET /v1/jobs: lists the jobs that the ledger has and that match all filters, a page at a time.

    Raises:
        Invalid: A field or parameter cannot stand (422).
        Unavailable: Redis or Postgres does not answer, or the job is being restored (503).
    """
    deps = deps_of(request)
    params = query(request, "team", "tag", "state", "name", "q", "limit", "cursor")
    for field in ("team", "tag"):
        if field in params:
            for error in check_slug(params[field], field):
                raise invalid(*error)
    items, cursor = await deps.ledger.jobs.list(
        team=params.get("team"),
        state=state_of(params.get("state")),
        name=params.get("name"),
        tag=params.get("tag"),
        q=params.get("q"),
        cursor=params.get("cursor"),
        limit=limit(params),
    )
    now = deps.store.clock.now_ms()
    calendars = await calendars_of_all(deps, [j.definition for j in items])
    views = [job_view(j.job_id, JobRecord(j.head, j.definition), now, c) for j, c in zip(items, calendars, strict=True)]
    return respond(page(views, cursor))


def state_of(text: str | None) -> JobState | None:
    """Reads a state that jobs can be listed by; None for None.

    Raises:
        Invalid: It is not one.
    """
    if text is None:
        return None
    if text not in _SHOWN:
        raise invalid("state", f"is not a job state; write one of {', '.join(_SHOWN)}")
    return JobState(text)
