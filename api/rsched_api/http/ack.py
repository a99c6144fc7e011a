"""`?ack=` of requests that change something: what their success stands for, said in the header Rsched-Durability."""

from __future__ import annotations

from typing import get_args
from urllib.parse import parse_qsl, urlencode

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from rsched.core.errors import Invalid, invalid
from rsched.core.jobs.model import Ack
from rsched_api.http.problems import of_error

ACKS: tuple[Ack, ...] = get_args(Ack)
HEADER = "Rsched-Durability"
# POST without a change: `ack` means nothing here and is refused like any unknown parameter.
READ_ONLY = frozenset({"/v1/schedules:preview"})

_SCOPE_KEY = "rsched.ack"


def ack_of(request: Request) -> Ack:
    """Returns what the request's `ack` says, as the middleware left it in the scope; "postgres" by default."""
    found: Ack = request.scope.get(_SCOPE_KEY, "postgres")
    return found


def changes(method: str, path: str) -> bool:
    """Returns whether a request of this method and path may change something."""
    return method in ("POST", "PUT", "PATCH", "DELETE") and path.startswith("/v1/") and path not in READ_ONLY


class Acknowledge:
    """Middleware: takes `ack` out of the query for all verbs alike, so that none can forget it."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers the request, and names its acknowledgement in the header of a success."""
        if scope["type"] != "http" or not changes(scope["method"], scope["path"]):
            await self._app(scope, receive, send)
            return
        try:
            ack, rest = _taken(scope["query_string"])
        except Invalid as error:
            await of_error(error)(scope, receive, send)
            return

        async def saying(message: Message) -> None:
            if message["type"] == "http.response.start" and 200 <= message["status"] < 300:
                MutableHeaders(scope=message)[HEADER] = ack
            await send(message)

        # In place: those who count requests read the endpoint from this very scope.
        scope["query_string"], scope[_SCOPE_KEY] = rest, ack
        await self._app(scope, receive, saying)


def _taken(query: bytes) -> tuple[Ack, bytes]:
    """What `ack` says, and the query without it. Invalid."""
    if b"ack" not in query:
        return "postgres", query
    # Latin-1 both ways: what else is in the query comes out byte for byte, and is judged by its handler.
    pairs = parse_qsl(query.decode("latin-1"), keep_blank_values=True, encoding="latin-1")
    given = [value for name, value in pairs if name == "ack"]
    if not given:
        return "postgres", query
    if len(given) > 1:
        raise invalid("ack", "is there twice; give it once")
    for ack in ACKS:
        if given[0] == ack:
            rest = [pair for pair in pairs if pair[0] != "ack"]
            return ack, urlencode(rest, encoding="latin-1").encode("ascii")
    raise invalid("ack", f"must be {' or '.join(ACKS)}")
