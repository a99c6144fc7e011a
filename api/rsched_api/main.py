"""Runs the API as a process: loopback only until it has keys, graceful on stop."""

from __future__ import annotations

import gc
import ipaddress
import socket
from collections.abc import Iterator
from contextlib import contextmanager

import anyio
import uvicorn

from rsched.core.errors import Misconfigured
from rsched.core.settings import ApiSettings
from rsched.runtime.clock import Clock
from rsched.runtime.log import get_logger
from rsched_api.app import create_app

_GRACE_S = 3
# Of new objects, until the garbage collector looks at them; Python's 700 has it go through a batch's jobs hundreds of times,
# which took a fifth of the batch's time.
_NEW_OBJECTS = 20_000


def check_bind(settings: ApiSettings) -> None:
    """Misconfigured where the API would be open to other machines, which it has no keys against yet."""
    if settings.allow_insecure_bind or settings.host == "localhost":
        return
    try:
        loopback = ipaddress.ip_address(settings.host).is_loopback
    except ValueError:
        loopback = False
    if not loopback:
        raise Misconfigured(
            f"the API has no keys yet and binds to loopback only, not to {settings.host}: set RSCHED_API_HOST=127.0.0.1,"
            " or RSCHED_API_ALLOW_INSECURE_BIND=true where a proxy in front checks callers"
        )


class _Server(uvicorn.Server):
    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        # Signals are the service's; it sets the stop event.
        yield


def _listen(settings: ApiSettings) -> socket.socket:
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((settings.host, settings.port))
    except OSError as error:
        listener.close()
        raise Misconfigured(
            f"cannot listen on {settings.host}:{settings.port} ({error.strerror}); set RSCHED_API_PORT to a free port"
        ) from None
    listener.set_inheritable(True)
    return listener


@contextmanager
def _seldom_collected() -> Iterator[None]:
    before = gc.get_threshold()
    gc.set_threshold(_NEW_OBJECTS, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


async def run_api(settings: ApiSettings, stop: anyio.Event, *, clock: Clock) -> None:
    """Serves until stop is set, then lets open requests end, at most a few seconds. Misconfigured."""
    check_bind(settings)
    log = get_logger("rsched.api")
    listener = _listen(settings)
    config = uvicorn.Config(
        create_app(settings, clock=clock),
        access_log=False,
        log_config=None,
        log_level="warning",
        lifespan="on",
        timeout_graceful_shutdown=_GRACE_S,
        server_header=False,
        h11_max_incomplete_event_size=65_536,
    )
    server = _Server(config)

    async def end() -> None:
        await stop.wait()
        server.should_exit = True

    with listener, _seldom_collected():
        async with anyio.create_task_group() as group:
            group.start_soon(end)
            host = f"[{settings.host}]" if ":" in settings.host else settings.host
            log.info("listening", extra={"fields": {"url": f"http://{host}:{listener.getsockname()[1]}"}})
            await server.serve(sockets=[listener])
            group.cancel_scope.cancel()
    if not server.started and not stop.is_set():
        raise Misconfigured("the API did not start; the log above says why")
