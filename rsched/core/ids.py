"""Identifiers: how a job's id derives from its owner and name, and how run keys are written.

`job_id` is `j_` and 13 lower-case Crockford base32 characters; the first two of them are the partition number, so that
any holder of an id knows its partition without a look-up.
"""

from __future__ import annotations

import hashlib
import re
from typing import NewType

JobId = NewType("JobId", str)
RunId = NewType("RunId", str)
WorkerId = NewType("WorkerId", str)

PARTITIONS = 1024

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
_VALUE = {c: i for i, c in enumerate(_ALPHABET)}
_JOB_ID = re.compile(rf"j_[{_ALPHABET}]{{13}}", re.ASCII)
_RUN_ID = re.compile(rf"(j_[{_ALPHABET}]{{13}}):(m-)?([0-9]{{1,16}})(?:-([{_ALPHABET}]{{4}}))?", re.ASCII)
SLUG = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}", re.ASCII)


_PAIRS = [a + b for a in _ALPHABET for b in _ALPHABET]


def _encode(bits: int, characters: int) -> str:
    # Two characters a step: an id is made for every create.
    text = "".join([_PAIRS[bits >> at & 1023] for at in range(5 * (characters + characters % 2) - 10, -1, -10)])
    return text[-characters:]


def derive_job_id(team: str, handle: str, incarnation: int) -> JobId:
    """Returns the id of a job.

    Args:
        team: The team that owns it.
        handle: The idempotency handle: its name, or its idempotency key.
        incarnation: Which job of this handle it is, from 1.
    """
    digest = hashlib.blake2b(f"{team}\0{incarnation}\0{handle}".encode(), digest_size=9).digest()
    return JobId("j_" + _encode(int.from_bytes(digest) >> 7, 13))


def short_hash(text: str, characters: int = 4) -> str:
    """Returns so many base32 characters, which depend on text alone."""
    digest = hashlib.blake2b(text.encode(), digest_size=10).digest()
    return _encode(int.from_bytes(digest), characters)


def is_job_id(text: str) -> bool:
    """Returns whether text has the form of a job_id."""
    return _JOB_ID.fullmatch(text) is not None


def partition_of(job_id: JobId) -> int:
    """Returns the number of the job's partition, 0 to 1023."""
    return _VALUE[job_id[2]] * 32 + _VALUE[job_id[3]]


def run_id_of(job_id: JobId, scheduled_at: int) -> RunId:
    """Returns the id of the run of an occurrence; scheduled_at in ms."""
    return RunId(f"{job_id}:{scheduled_at}")


def manual_run_id_of(job_id: JobId, triggered_at: int, suffix: str) -> RunId:
    """Returns the id of a manual run, as lua/jobs/trigger.lua makes it; suffix: 4 characters of short_hash."""
    return RunId(f"{job_id}:m-{triggered_at}-{suffix}")


def split_run_id(text: str) -> tuple[JobId, int, bool] | None:
    """Returns (job_id, scheduled_at ms, is manual), or None where text is not a run id."""
    m = _RUN_ID.fullmatch(text)
    if m is None or (m[2] is None) != (m[4] is None):
        return None
    return JobId(m[1]), int(m[3]), m[2] is not None
