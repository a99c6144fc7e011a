"""Requests and their typed answers, which all methods of the client are made of."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import Any, TypeVar
from urllib.parse import quote

import msgspec

from rsched.client.transport import Answer, Transport
from rsched.core.errors import RschedError
from rsched.core.jobs.model import Ack

T = TypeVar("T")


class Calls:
    _transport: Transport

    def _get(self, path: str, kind: type[T], **query: str | int | None) -> T:
        return decode(self._transport.request("GET", path, query=query), kind)

    def _post(
        self,
        path: str,
        kind: type[T],
        *,
        body: Mapping[str, Any] | None = None,
        team: str | None = None,
        key: str | None = None,
        ack: Ack | None = None,
    ) -> T:
        headers = {"Idempotency-Key": key or f"sdk-{secrets.token_hex(16)}"}
        raw = b"" if body is None else msgspec.json.encode(body)
        query = {"team": team, "ack": ack}
        return decode(self._transport.request("POST", path, query=query, body=raw, headers=headers), kind)


def job_path(job: str, verb: str = "") -> str:
    return f"/v1/jobs/{quote(job, safe='')}{verb}"


def run_path(run_id: str) -> str:
    return f"/v1/runs/{quote(run_id, safe=':')}"


def decode(answer: Answer, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(answer.body, type=kind)
    except (msgspec.ValidationError, msgspec.DecodeError) as error:
        raise RschedError(f"the answer is not of this API ({error}); is the URL that of rsched?") from error
