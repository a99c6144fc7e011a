"""What became of a change to many runs or jobs at once."""

from __future__ import annotations

import msgspec


class BackfillView(msgspec.Struct, frozen=True, kw_only=True):
    """The occurrences of a past range that get a run.

    Attributes:
        job_id: Whose they are.
        occurrences: How many are pending now, or would be with dry_run.
        already: How many have a run or are pending one, and were left out.
        ranges: In how many ranges they are kept.
        first: The first of them (RFC 3339), None where there is none.
        last: The last of them.
        pace_per_s: How many of them start a second.
        dry_run: Nothing was changed.
    """

    job_id: str
    occurrences: int
    already: int
    ranges: int
    first: str | None
    last: str | None
    pace_per_s: int
    dry_run: bool


class BulkItem(msgspec.Struct, frozen=True, kw_only=True):
    """A job that matched."""

    job_id: str
    name: str | None
    team: str


class BulkFailure(msgspec.Struct, frozen=True, kw_only=True):
    """Why a job is as it was; code as in a problem document."""

    job_id: str
    code: str
    detail: str


class BulkAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What became of the jobs that matched, at most 1,000 a request.

    Attributes:
        matched: How many did.
        changed: How many were changed.
        unchanged: How many were as asked already.
        failed: Those that could not be changed.
        dry_run: Nothing was changed.
        items: The jobs that matched.
        next_cursor: There are more; send the request again with it.
    """

    matched: int
    changed: int
    unchanged: int
    failed: list[BulkFailure]
    dry_run: bool
    items: list[BulkItem]
    next_cursor: str | None
