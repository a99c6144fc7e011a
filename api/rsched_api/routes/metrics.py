"""GET /metrics: requests by endpoint and status, their durations, and the process' own numbers."""

from __future__ import annotations

from prometheus_client import CONTENT_TYPE_LATEST
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from rsched.runtime.clock import Clock
from rsched.runtime.metrics import REQUEST_SECONDS, REQUESTS, Metrics


class CountRequests:
    """Middleware that counts and times every answer."""

    def __init__(self, app: ASGIApp, *, metrics: Metrics, clock: Clock) -> None:
        self._app, self._metrics, self._clock = app, metrics, clock

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes the request on, and counts and times its answer."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        status, took = 500, None
        started = self._clock.perf_s()

        async def noting(message: Message) -> None:
            nonlocal status, took
            if message["type"] == "http.response.start":
                # A request that was given up goes on for a while after its answer.
                status, took = message["status"], self._clock.perf_s() - started
            await send(message)

        try:
            await self._app(scope, receive, noting)
        finally:
            # The endpoint's name, not the path: ids in labels would grow without bound. Methods are free text too.
            endpoint = getattr(scope.get("endpoint"), "__name__", "none")
            method = scope["method"] if scope["method"] in _METHODS else "other"
            self._metrics.add(REQUESTS, endpoint, method, str(status))
            self._metrics.histogram(REQUEST_SECONDS).child(endpoint).observe(
                self._clock.perf_s() - started if took is None else took
            )


_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


async def metrics(request: Request) -> Response:
    """GET /metrics: writes the process' metrics in the Prometheus text format."""
    counted: Metrics = request.app.state.metrics
    return Response(counted.render(), headers={"Content-Type": CONTENT_TYPE_LATEST})
