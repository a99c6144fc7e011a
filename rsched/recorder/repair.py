"""Brings back from the ledger what a shard's Redis has lost; the loss of everything is a lost tail from zero.

The scripts compare: only a later version of a job, or a later revision of a run, than Redis has is written.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from rsched.core import schedule as schedules
from rsched.core.errors import RschedError
from rsched.core.ids import RunId, partition_of, run_id_of
from rsched.core.model import decode_definition
from rsched.core.packed import JobHead, unpack_head
from rsched.core.states import JobState
from rsched.ledger import Ledger
from rsched.ledger.positions import START, Position
from rsched.ledger.repair import LedgerJob
from rsched.runtime.log import get_logger
from rsched.store.store import Store

_log = get_logger("rsched.recorder")
_PAGE = 500


class Repaired(NamedTuple):
    """jobs, runs: written back; dropped: runs that had ended."""

    jobs: int
    runs: int
    dropped: int


async def repair(store: Store, ledger: Ledger, *, shard: str, lost: Mapping[str, Position], lease_ms: int) -> Repaired:
    """lost: the streams whose tail is gone, with the last entry that Redis has. Unavailable."""
    jobs = await restore_jobs(store, ledger, shard=shard)
    runs = await _open_runs(store, ledger, shard=shard, lease_ms=lease_ms)
    dropped = 0
    for stream, last in lost.items():
        if last != START:
            dropped += await _ended_runs(store, ledger, shard=shard, stream=stream, last=last, lease_ms=lease_ms)
    return Repaired(jobs, runs, dropped)


async def restore_jobs(store: Store, ledger: Ledger, *, shard: str) -> int:
    marks = await ledger.watermarks(shard)
    count, after = 0, ""
    while page := await ledger.jobs_after(shard, after=after, limit=_PAGE):
        after = page[-1].job_id
        heads = {job.job_id: unpack_head(job.value) for job in page}
        once = [run_id_of(j, int(h.arg)) for j, h in heads.items() if h.kind == "o" and h.state is JobState.ACTIVE]
        ran = await ledger.runs_there(once) if once else set()
        count += await store.restore_jobs(
            [(j.job_id, _due(j, heads[j.job_id], mark=marks.get(partition_of(j.job_id), 0), ran=ran), j.value)
             for j in page]
        )  # fmt: skip
    return count


def _due(job: LedgerJob, head: JobHead, *, mark: int, ran: set[str]) -> int | None:
    """The first occurrence that has no run yet: after the job's last change, and not claimed by the watermark."""
    if head.state is not JobState.ACTIVE:
        return None
    if head.kind == "o":
        at = int(head.arg)
        return None if run_id_of(job.job_id, at) in ran else at
    definition = decode_definition(job.value.partition(b"\n")[2])
    try:
        schedule = schedules.load(definition)
        # All before the watermark are claimed; the occurrence at its very instant is not.
        return schedule.next_after(max(mark - 1, head.sv_at))
    except (RschedError, ValueError) as error:
        # Due at once: the claim finds the same fault and parks the job with an alert.
        _log.error("a schedule can't be read", extra={"fields": {"job": job.job_id, "error": str(error)}})
        return max(mark, head.sv_at)


async def _open_runs(store: Store, ledger: Ledger, *, shard: str, lease_ms: int) -> int:
    count, after = 0, ""
    while page := await ledger.open_runs(shard, after=after, limit=_PAGE):
        after = page[-1][0]
        count += await store.restore_runs([(run, r.pack()) for run, r in page if not r.state.final], lease_ms=lease_ms)
    return count


async def _ended_runs(store: Store, ledger: Ledger, *, shard: str, stream: str, last: Position, lease_ms: int) -> int:
    count, after = 0, RunId("")
    while page := await ledger.runs_above(shard, stream=stream, above=last, after=after, limit=_PAGE):
        after = page[-1][0]
        ended = [(run, r.pack()) for run, r in page if r.state.final]
        if ended:
            count += await store.restore_runs(ended, lease_ms=lease_ms)
    return count
