"""Run ids as the ledger's tables have them: three columns that one index serves, for people and for rsched alike."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import date, timedelta
from functools import lru_cache
from typing import NamedTuple

from rsched.core.ids import JobId

DAY_MS = 86_400_000
_EPOCH = date(1970, 1, 1)
# From 1970, where rsched counts from, to 2000, where Postgres does.
EPOCH_2000_MS = 946_684_800_000
_ORDINAL_2000 = date(2000, 1, 1).toordinal()
_BASE32 = "0123456789abcdefghjkmnpqrstvwxyz"
_VALUE = {c: i for i, c in enumerate(_BASE32)}
# As core.ids.split_run_id, and no number is written in two ways: the id of a run is made of its key again.
_NUMBER = "(0|[1-9][0-9]{0,15})"
_RUN_ID = re.compile(rf"(j_[{_BASE32}]{{13}}):(?:{_NUMBER}|m-{_NUMBER}-([{_BASE32}]{{4}}))", re.ASCII)


class RunKey(NamedTuple):
    """What a run is found by.

    Attributes:
        job_id: The run's job.
        scheduled_at: The occurrence, or the instant of a trigger (ms).
        manual: 0 for an occurrence; for a manual run 1 + the number that the last four characters of its id write.
    """

    job_id: JobId
    scheduled_at: int
    manual: int


def run_key(run_id: str) -> RunKey:
    """Splits a run id.

    Raises:
        ValueError: The text is not a run id.
    """
    m = _RUN_ID.fullmatch(run_id)
    if m is None:
        raise ValueError(f"not a run id: {run_id[:80]!r}")
    job_id, at, triggered_at, suffix = m.groups()
    if at is not None:
        return RunKey(JobId(job_id), int(at), 0)
    manual = 0
    for character in suffix:
        manual = manual * 32 + _VALUE[character]
    return RunKey(JobId(job_id), int(triggered_at), manual + 1)


def run_keys(run_ids: Iterable[str]) -> tuple[list[str], list[int], list[int]]:
    """Returns the columns of those that are run ids, as the parameters of `KEYS`."""
    keys = []
    for run_id in run_ids:
        try:
            keys.append(run_key(run_id))
        except ValueError:
            continue  # there is no such run
    return [k.job_id for k in keys], [k.scheduled_at for k in keys], [k.manual for k in keys]


# Rows of run keys, from three parameters.
KEYS = "unnest(%s::text[], %s::bigint[], %s::int[]) AS u (job_id, scheduled_ms, manual)"


def timestamp(at: int) -> int:
    """Returns an instant (ms since 1970) as Postgres' binary format has it: microseconds since 2000."""
    return (at - EPOCH_2000_MS) * 1000


@lru_cache(maxsize=64)
def _day(number: int) -> date:
    return _EPOCH + timedelta(days=number)


def day_number(day: date) -> int:
    """Returns a day as Postgres' binary format has it: days since 2000."""
    return day.toordinal() - _ORDINAL_2000


def day_of_number(number: int) -> date:
    """Returns the day of a day_number."""
    return date.fromordinal(number + _ORDINAL_2000)


def claimed_on(claimed_at: int) -> date:
    """Returns the day (UTC) whose partition a run claimed at an instant (ms) is in.

    Raises:
        OverflowError: It is outside of the years 1 to 9999.
    """
    return _day(claimed_at // DAY_MS)


def day_starts_at(day: date) -> int:
    """Returns the instant (ms) at which a day (UTC) begins."""
    return (day - _EPOCH).days * DAY_MS
