"""The Starlette app: routes, errors, and what it opens for as long as it lives."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.routing import Route

from rsched.core.errors import RschedError
from rsched.core.settings import ApiSettings
from rsched.ledger import Ledger, Waiter
from rsched.runtime.clock import Clock
from rsched.runtime.metrics import Metrics
from rsched.store.store import Store
from rsched_api import openapi
from rsched_api.http import problems
from rsched_api.http.ack import Acknowledge
from rsched_api.http.deadline import Deadline
from rsched_api.http.deps import SHARD, Deps, LookUps, Restoration
from rsched_api.http.ports import ApiStore
from rsched_api.http.requests import RawPath
from rsched_api.routes import (
    backfill,
    batch,
    bulk,
    control,
    forecast,
    health,
    jobs,
    lists,
    metrics,
    patch,
    preview,
    runs,
    trigger,
)
from rsched_api.routes import calendars as exclusions

ROUTES = (
    Route("/v1/jobs", jobs.post_job, methods=["POST"]),
    Route("/v1/jobs", lists.list_jobs, methods=["GET"]),
    Route("/v1/jobs:batch", batch.post_jobs, methods=["POST"]),
    Route("/v1/jobs/{ref}", jobs.get_job, methods=["GET"]),
    Route("/v1/jobs/{ref}", jobs.put_job, methods=["PUT"]),
    Route("/v1/jobs/{ref}", patch.patch_job, methods=["PATCH"]),
    Route("/v1/jobs/{ref}", jobs.delete_job, methods=["DELETE"]),
    Route("/v1/jobs:pause", bulk.pause_jobs, methods=["POST"]),
    Route("/v1/jobs:resume", bulk.resume_jobs, methods=["POST"]),
    Route("/v1/jobs:delete", bulk.delete_jobs, methods=["POST"]),
    Route("/v1/jobs/{ref}/pause", control.pause_job, methods=["POST"]),
    Route("/v1/jobs/{ref}/resume", control.resume_job, methods=["POST"]),
    Route("/v1/jobs/{ref}/trigger", trigger.trigger_job, methods=["POST"]),
    Route("/v1/jobs/{ref}/backfill", backfill.backfill_job, methods=["POST"]),
    Route("/v1/jobs/{ref}/skips", jobs.list_skips, methods=["GET"]),
    Route("/v1/jobs/{ref}/runs", runs.list_runs, methods=["GET"]),
    Route("/v1/runs/{run}", runs.get_run, methods=["GET"]),
    Route("/v1/runs/{run}/cancel", runs.cancel_run, methods=["POST"]),
    Route("/v1/dead-letters", runs.list_dead_letters, methods=["GET"]),
    Route("/v1/teams/{team}/calendars", exclusions.list_calendars, methods=["GET"]),
    Route("/v1/teams/{team}/calendars/{name}", exclusions.get_calendar, methods=["GET"]),
    Route("/v1/teams/{team}/calendars/{name}", exclusions.put_calendar, methods=["PUT"]),
    Route("/v1/teams/{team}/calendars/{name}", exclusions.delete_calendar, methods=["DELETE"]),
    Route("/v1/forecast", forecast.forecast, methods=["GET"]),
    Route("/v1/schedules:preview", preview.preview, methods=["POST"]),
    Route("/healthz", health.healthz, methods=["GET"]),
    Route("/readyz", health.readyz, methods=["GET"]),
    Route("/metrics", metrics.metrics, methods=["GET"]),
    Route("/openapi.json", openapi.serve, methods=["GET"]),
)


def create_app(
    settings: ApiSettings,
    *,
    clock: Clock,
    store: ApiStore | None = None,
    ledger: Ledger | None = None,
    waiter: Waiter | None = None,
) -> Starlette:
    """The API. What is not handed in is opened when the app starts and closed when it ends."""

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            shard, reader, listener = store, ledger, waiter
            if shard is None:
                opened = Store.open(settings.redis_url, prefix=settings.prefix, shard=SHARD, clock=clock)
                stack.push_async_callback(opened.aclose)
                opened.connection.metrics = counted
                shard = opened
            if reader is None:
                reader = await stack.enter_async_context(Ledger(settings.database_url, clock=clock))
            if listener is None:
                listener = await stack.enter_async_context(Waiter(settings.database_url, clock=clock))
            app.state.deps = Deps(
                settings=settings,
                clock=clock,
                store=shard,
                ledger=reader,
                waiter=listener,
                look_up=LookUps(reader, clock),
                restoration=Restoration(shard),
            )
            yield

    counted = Metrics("api")
    app = Starlette(
        routes=list(ROUTES),
        lifespan=lifespan,
        middleware=[
            Middleware(RawPath),
            Middleware(metrics.CountRequests, metrics=counted, clock=clock),
            Middleware(Deadline, seconds=settings.ack_timeout_s),
            Middleware(Acknowledge),
        ],
        exception_handlers={
            RschedError: problems.on_rsched_error,
            HTTPException: problems.on_http_error,
            Exception: problems.on_bug,
        },
    )
    app.router.redirect_slashes = False
    app.state.metrics = counted
    return app
