"""Targets that are HTTP calls."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

import msgspec

from rsched.core.errors import FieldError
from rsched.core.jobs.targets.base import TargetKind
from rsched.core.options import option

HTTP_QUEUE = "http"
MAX_HEADERS = 64
MAX_TEXT = 8192

# Source: the token of RFC 9110, section 5.6.2.
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,200}", re.ASCII)
_HEADER_VALUE = re.compile(r"[\t\x20-\x7e]*", re.ASCII)
# Written by the worker or by the HTTP client itself; a second one would change what the target is promised.
_RESERVED_HEADERS = frozenset(
    {"idempotency-key", "traceparent", "host", "content-length", "transfer-encoding", "connection", "expect", "upgrade"}
)


class HttpTarget(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True, tag="http"):
    """An HTTP call; 2xx is success.

    Attributes:
        url: An absolute http or https URL.
        method: Of the call.
        headers: Beside those that rsched sends.
        body: Any JSON, by default the job's payload.
    """

    url: Annotated[str, option("--url", text="Call this http or https address.")]
    method: Annotated[
        Literal["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD"],
        option("--method", text="Of the call, by default POST.", reads="upper"),
    ] = "POST"
    headers: Annotated[
        dict[str, str], option("--header", text="'Name: value', any number of times.", reads="headers")
    ] = {}
    body: Annotated[Any, option("--body", text="JSON to send, or @file; by default the payload.", reads="json")] = None


def _check(target: HttpTarget) -> Iterator[FieldError]:
    yield from _url_errors(target.url)
    yield from _headers(target.headers)


@lru_cache(maxsize=1024)
def _url_errors(url: str) -> tuple[FieldError, ...]:
    return tuple(_url(url))


def _url(url: str) -> Iterator[FieldError]:
    field = "target.url"
    if len(url) > MAX_TEXT:
        yield FieldError(field, f"has {len(url)} characters; keep to {MAX_TEXT}")
        return
    if not url.isascii() or any(c <= " " or c == "\x7f" or c in '"<>\\^`{|}' for c in url):
        yield FieldError(field, "has a character that no URL has; percent-encode it, and write the host in punycode")
        return
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        yield FieldError(field, f"is not a valid URL ({error}); write http://host/path or https://host/path")
        return
    if parts.scheme not in ("http", "https") or not host:
        yield FieldError(field, "must be an absolute http or https URL, such as https://host/path")
    elif port == 0:
        yield FieldError(field, "port 0 cannot be called; write 1 to 65535")


def _headers(headers: dict[str, str]) -> Iterator[FieldError]:
    if len(headers) > MAX_HEADERS:
        yield FieldError("target.headers", f"has {len(headers)} entries; keep to {MAX_HEADERS}")
        return
    seen: set[str] = set()
    for name, value in headers.items():
        field, lower = f"target.headers.{name[:60]}", name.lower()
        if not _HEADER_NAME.fullmatch(name):
            yield FieldError(field, "is not a valid header name; use letters, digits and -")
        elif lower in _RESERVED_HEADERS or lower.startswith("x-rsched-"):
            yield FieldError(field, "is set by rsched itself; leave it out")
        elif lower in seen:
            yield FieldError(field, "is there twice, in another case; keep one")
        elif not _HEADER_VALUE.fullmatch(value) or len(value) > MAX_TEXT:
            yield FieldError(field, f"the value must be printable ASCII in one line, up to {MAX_TEXT} characters")
        seen.add(lower)


def _without_body(target: HttpTarget) -> HttpTarget:
    """A run's own payload is what is sent."""
    return msgspec.structs.replace(target, body=None)


HTTP = TargetKind(
    struct=HttpTarget,
    check=_check,
    queue=lambda _target: HTTP_QUEUE,
    summary=lambda target: f"{target.method} {target.url}",
    own_queue=HTTP_QUEUE,
    for_payload=_without_body,
)
