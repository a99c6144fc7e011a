"""One tree of errors. Each class has a stable `code` and says whether the same call may succeed later (`retryable`).

rejected: the request cannot succeed as it is. unavailable: try again with backoff.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class FieldError(NamedTuple):
    """One wrong field.

    Attributes:
        field: Its dotted path in the request (`schedule.cron`), or "" for the whole.
        message: What was found, and the fix.
    """

    field: str
    message: str


class RschedError(Exception):
    """The root of all errors that rsched raises on purpose.

    Attributes:
        code: Stable, for programs.
        status: Of the HTTP answer.
        retryable: The same call may succeed later.
        errors: The fields that are wrong.
    """

    code = "error"
    status = 500
    retryable = False

    def __init__(self, detail: str = "", *, errors: Sequence[FieldError] = ()) -> None:
        """Takes a sentence, or the wrong fields that make one."""
        super().__init__(detail or "; ".join(f"{e.field}: {e.message}" if e.field else e.message for e in errors))
        self.errors = tuple(errors)

    @property
    def detail(self) -> str:
        """What happened, in a sentence."""
        return str(self)


class Rejected(RschedError):
    """The request cannot succeed as it is."""

    code, status = "rejected", 400


class Invalid(Rejected):
    """Bad input; `errors` names each field."""

    code, status = "invalid", 422


def invalid(field: str, message: str) -> Invalid:
    """Returns an Invalid of one field.

    Args:
        field: Its dotted path in the request.
        message: What was found, and the fix.
    """
    return Invalid(errors=[FieldError(field, message)])


class NotFound(Rejected):
    """There is no such job, run or calendar."""

    code, status = "not_found", 404


class Conflict(Rejected):
    """The name is taken, or the job's state does not allow the verb."""

    code, status = "conflict", 409


class VersionConflict(Rejected):
    """If-Match named another version."""

    code, status = "version_conflict", 412


class TooLarge(Rejected):
    """The request, or what it would make, is over a limit."""

    code, status = "too_large", 413


class Unavailable(RschedError):
    """It does not work now; try again with backoff."""

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
        """Takes a sentence, and the job or run that may have been changed."""
        super().__init__(detail)
        self.job_id, self.run_id = job_id, run_id


class Misconfigured(RschedError):
    """A setting, or a server's setting, breaks a promise; the text says the fix."""

    code = "misconfigured"
