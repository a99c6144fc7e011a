"""GET /metrics: requests by endpoint and status, their durations, and the process' own numbers."""

from __future__ import annotations

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.platform_collector import PlatformCollector
from prometheus_client.process_collector import ProcessCollector
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from rsched.runtime.clock import Clock


class Metrics:
    """One registry an app, so that two apps in one process do not count together."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        PlatformCollector(registry=self.registry)
        self._requests = Counter(
            "rsched_api_requests", "Answered requests.", ["endpoint", "method", "status"], registry=self.registry
        )
        self._seconds = Histogram(
            "rsched_api_request_duration_seconds",
            "From the request's first byte to the last of the answer.",
            ["endpoint"],
            registry=self.registry,
        )

    def answered(self, endpoint: str, *, method: str, status: int, seconds: float) -> None:
        self._requests.labels(endpoint, method, str(status)).inc()
        self._seconds.labels(endpoint).observe(seconds)


class CountRequests:
    """Middleware that counts and times every answer."""

    def __init__(self, app: ASGIApp, *, metrics: Metrics, clock: Clock) -> None:
        self._app, self._metrics, self._clock = app, metrics, clock

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        status = 500
        started = self._clock.perf_s()

        async def noting(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, noting)
        finally:
            # The endpoint's name, not the path: ids in labels would grow without bound. Methods are free text too.
            endpoint = getattr(scope.get("endpoint"), "__name__", "none")
            method = scope["method"] if scope["method"] in _METHODS else "other"
            self._metrics.answered(endpoint, method=method, status=status, seconds=self._clock.perf_s() - started)


_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


async def metrics(request: Request) -> Response:
    registry: CollectorRegistry = request.app.state.metrics.registry
    return Response(generate_latest(registry), headers={"Content-Type": CONTENT_TYPE_LATEST})
