"""Requests of the API as values, and their typed answers: what both clients are made of."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import Any, NamedTuple, TypeVar
from urllib.parse import quote, urlencode

import msgspec

from rsched.core.errors import RschedError
from rsched.core.jobs.model import Ack

T = TypeVar("T")
Query = Mapping[str, str | int | None]


class Request(NamedTuple):
    """One request, safe to repeat: a POST carries an idempotency key, the other methods are idempotent by nature.

    Args:
        method: GET, POST, PUT, PATCH or DELETE.
        target: Path and query as they are sent.
        body: JSON, or None where the request has no body.
        headers: Beside those that every request carries.
    """

    method: str
    target: str
    body: bytes | None = None
    headers: Mapping[str, str] = {}


class Answer(NamedTuple):
    """What a server answered: the status, the Retry-After header or "", and the body."""

    status: int
    retry_after: str
    body: bytes


def get(path: str, query: Query | None = None) -> Request:
    """Describes a request that reads."""
    return Request("GET", _target(path, query))


def post(
    path: str,
    body: Mapping[str, Any] | None = None,
    *,
    query: Query | None = None,
    key: str | None = None,
    if_match: int | None = None,
) -> Request:
    """Describes a request that a repeat with the same idempotency key does not do twice.

    Args:
        path: The path, quoted.
        body: What becomes its JSON; None or nothing for an empty body.
        query: Its parameters; those that are None are left out.
        key: The idempotency key; None for a new one.
        if_match: The version that the caller has seen; None where it does not matter.
    """
    headers = {"Idempotency-Key": key or f"sdk-{secrets.token_hex(16)}", **_if_match(if_match)}
    return Request("POST", _target(path, query), msgspec.json.encode(body) if body else b"", headers)


def put(path: str, body: Mapping[str, Any], *, query: Query | None = None, if_match: int | None = None) -> Request:
    """Describes a request that replaces the whole of what is at the path."""
    return Request("PUT", _target(path, query), msgspec.json.encode(body), _if_match(if_match))


def patch(path: str, body: Mapping[str, Any], *, query: Query | None = None, if_match: int | None = None) -> Request:
    """Describes a request that changes parts of what is at the path (JSON merge patch, RFC 7396)."""
    return Request("PATCH", _target(path, query), msgspec.json.encode(body), _if_match(if_match))


def delete(path: str, *, query: Query | None = None, if_match: int | None = None) -> Request:
    """Describes a request that removes what is at the path."""
    return Request("DELETE", _target(path, query), None, _if_match(if_match))


def of_job(team: str | None, ack: Ack | None = None) -> dict[str, str | int | None]:
    """Gives the query of a request about one job."""
    return {"team": team, "ack": ack}


def job_path(job: str, verb: str = "") -> str:
    """Gives the path of a job that is named by its id or its name, and of a verb of it."""
    return f"/v1/jobs/{quote(job, safe='')}{verb}"


def run_path(run_id: str, verb: str = "") -> str:
    """Gives the path of a run, and of a verb of it."""
    return f"/v1/runs/{quote(run_id, safe=':')}{verb}"


def calendar_path(team: str, name: str | None = None) -> str:
    """Gives the path of one calendar of a team, or of all of them."""
    one = "" if name is None else f"/{quote(name, safe='')}"
    return f"/v1/teams/{quote(team, safe='')}/calendars{one}"


def decode(answer: Answer, kind: type[T]) -> T:
    """Reads an answer's body as this type.

    Raises:
        RschedError: It is something else, so whoever answered is no API of rsched.
    """
    try:
        return msgspec.json.decode(answer.body, type=kind)
    except (msgspec.ValidationError, msgspec.DecodeError) as error:
        raise RschedError(f"the answer is not of this API ({error}); is the URL that of rsched?") from error


def _target(path: str, query: Query | None) -> str:
    pairs = {name: value for name, value in (query or {}).items() if value is not None}
    return f"{path}?{urlencode(pairs)}" if pairs else path


def _if_match(version: int | None) -> dict[str, str]:
    return {} if version is None else {"If-Match": f'"{version}"'}
