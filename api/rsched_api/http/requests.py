"""Reading requests: bounded bodies, paths, headers and query parameters, each refused with its field and the fix."""

from __future__ import annotations

import re
from collections.abc import Callable
from urllib.parse import parse_qsl, quote, unquote

from starlette.requests import ClientDisconnect, Request
from starlette.types import ASGIApp, Receive, Scope, Send

from rsched.core.errors import FieldError, Invalid, TooLarge, Unavailable, invalid
from rsched.core.jobs.model import MAX_DEFINITION_BYTES
from rsched.core.jobs.records import definition_too_large
from rsched.core.jobs.validate import check_value

# JSON may be up to this much longer than what is kept of it (spaces, escapes); past it nothing more is read.
MAX_BODY_BYTES = 4 * MAX_DEFINITION_BYTES
MAX_KEY = 255

_VERSION = re.compile(r'(?:W/)?"?([1-9][0-9]{0,15})"?', re.ASCII)


class RawPath:
    """Routes by the path as it was sent, so that a name with `/` in it is one segment; handlers decode their part."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes the request on with its path as it was sent."""
        if scope["type"] == "http":
            raw: bytes = scope.get("raw_path") or quote(scope["path"]).encode()
            path = raw.partition(b"?")[0].decode("ascii", "replace")
            scope = {**scope, "path": path.replace("%3A", ":").replace("%3a", ":")}
        await self._app(scope, receive, send)


def part(request: Request, name: str) -> str:
    """Returns a decoded segment of the path."""
    return unquote(request.path_params[name], errors="replace")


async def body(
    request: Request, *, most: int = MAX_BODY_BYTES, refused: Callable[[], TooLarge] = definition_too_large
) -> bytes:
    """Reads the whole body.

    Raises:
        TooLarge: It has more than `most` bytes; the rest is never read.
        Unavailable: The client hung up.
    """
    declared = request.headers.get("content-length", "")
    if declared.isdigit() and int(declared[:18]) > most:
        raise refused()
    chunks, size = [], 0
    try:
        async for chunk in request.stream():
            size += len(chunk)
            if size > most:
                raise refused()
            chunks.append(chunk)
    except ClientDisconnect:
        raise Unavailable("the request broke off") from None
    return b"".join(chunks)


def idempotency_key(request: Request) -> str | None:
    """Returns the Idempotency-Key of the request; None without one.

    Raises:
        Invalid: It is empty, too long, or not printable ASCII.
    """
    key = request.headers.get("idempotency-key")
    if key is not None and not (1 <= len(key) <= MAX_KEY and key.isascii() and key.isprintable()):
        raise invalid("Idempotency-Key", f"must be 1 to {MAX_KEY} printable ASCII characters")
    return key


def if_match(request: Request) -> int | None:
    """Returns the version that the caller has seen, from If-Match; None where it does not matter.

    Raises:
        Invalid: It is not one version.
    """
    text = request.headers.get("if-match")
    if text is None or text.strip() == "*":
        return None
    match = _VERSION.fullmatch(text.strip())
    if match is None:
        raise invalid("If-Match", 'must be one version as the ETag header gave it, such as "3"')
    return int(match[1])


def query(request: Request, *known: str) -> dict[str, str]:
    """Reads the parameters of the query by name.

    Raises:
        Invalid: One is unknown, repeated, too long, or has characters that cannot be kept.
    """
    found: dict[str, str] = {}
    errors: list[FieldError] = []
    try:
        pairs = parse_qsl(
            request.url.query, keep_blank_values=True, max_num_fields=100, encoding="utf-8", errors="replace"
        )
    except ValueError as error:
        raise invalid("", f"the query cannot be read ({error})") from None
    for name, value in pairs:
        if name not in known:
            hint = f"known here: {', '.join(known)}" if known else "this path takes none"
            errors.append(FieldError(name[:60], f"unknown parameter; leave it out ({hint})"))
        elif name in found:
            errors.append(FieldError(name, "is there twice; give it once"))
        elif len(value) > 1000:
            errors.append(FieldError(name, "is too long; keep to 1000 characters"))
        else:
            errors += check_value(value, name)
            found[name] = value
    if errors:
        raise Invalid(errors=errors)
    return found


def limit(params: dict[str, str], *, default: int = 100) -> int:
    """Reads how many items a page may have, from 1 to 1000.

    Raises:
        Invalid: `limit` is something else.
    """
    text = params.get("limit")
    if text is None:
        return default
    if not (text.isascii() and text.isdigit() and len(text) <= 6 and 1 <= int(text) <= 1000):
        raise invalid("limit", "must be a number from 1 to 1000")
    return int(text)
