"""One tree of errors. Each class has a stable `code` and says whether the same call may succeed later (`retryable`).

rejected: the request cannot succeed as it is. unavailable: try again with backoff.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class FieldError(NamedTuple):
    """field: dotted path in the request (`schedule.cron`), or "" for the whole; message: what was found, and the fix."""

    field: str
    message: str


class RschedError(Exception):
    code = "error"
    status = 500
    retryable = False

    def __init__(self, detail: str = "", *, errors: Sequence[FieldError] = ()) -> None:
        super().__init__(detail or "; ".join(f"{e.field}: {e.message}" if e.field else e.message for e in errors))
        self.errors = tuple(errors)

    @property
    def detail(self) -> str:
        return str(self)


class Rejected(RschedError):
    code, status = "rejected", 400


class Invalid(Rejected):
    """Bad input; `errors` names each field."""

    code, status = "invalid", 422


def invalid(field: str, message: str) -> Invalid:
    return Invalid(errors=[FieldError(field, message)])


class NotFound(Rejected):
    code, status = "not_found", 404


class Conflict(Rejected):
    """The name is taken, or the job's state does not allow the verb."""

    code, status = "conflict", 409


class VersionConflict(Rejected):
    """If-Match named another version."""

    code, status = "version_conflict", 412


class TooLarge(Rejected):
    code, status = "too_large", 413


class Unavailable(RschedError):
    code, status, retryable = "unavailable", 503, True


class ShardClosed(Unavailable):
    """The shard's marker does not match its server; a reconciler has to open it first."""

    code = "shard_closed"


class NeedsFixing(Unavailable):
    """A server is there and refuses until people have fixed something; the text says what."""


class DurabilityUnknown(Unavailable):
    """The change is in Redis, its record was not seen in Postgres before the deadline. `job_id` or `run_id` names it."""

    code = "durability_unknown"

    def __init__(self, detail: str = "", *, job_id: str | None = None, run_id: str | None = None) -> None:
        super().__init__(detail)
        self.job_id, self.run_id = job_id, run_id


class Misconfigured(RschedError):
    """A setting, or a server's setting, breaks a promise; the text says the fix."""

    code = "misconfigured"
