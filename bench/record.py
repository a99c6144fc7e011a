"""How many events a second the recorder's ledger path takes: one transaction a batch, as the recorder makes them."""

from __future__ import annotations

from typing import Any

from bench.figures import circumstances
from rsched.core.ids import derive_job_id
from rsched.core.jobs.packed import Event, RunEvent, RunRecord
from rsched.core.states import RunState
from rsched.ledger import Ledger
from rsched.runtime.clock import Clock
from rsched.store.store import shard_tags
from tests.support.deployment import deployment

_BATCH = 5000
_JOBS = 2000


async def measure(*, runs: int, clock: Clock) -> dict[str, Any]:
    """runs, each QUEUED, RUNNING and SUCCEEDED; once with all moves of a run in one batch (a burst: they merge to one row),
    once each kind of move in batches of its own (nothing merges).
    """
    async with deployment({}, clock=clock) as w, Ledger(w.database_url, clock=clock) as ledger:
        merged = await _recorded(ledger, clock, runs=runs, generation=1, merge=True)
        apart = await _recorded(ledger, clock, runs=runs, generation=2, merge=False)
    return {
        "benchmark": "record",
        "runs": runs,
        "batch": _BATCH,
        "events_per_s": {"merged": round(3 * runs / merged), "apart": round(3 * runs / apart)},
        "rows_per_s": {"merged": round(runs / merged), "apart": round(3 * runs / apart)},
        **circumstances(clock),
    }


async def _recorded(ledger: Ledger, clock: Clock, *, runs: int, generation: int, merge: bool) -> float:
    """Seconds that recording took."""
    at = clock.wall_ms()
    moves = [_moves(n, at=at, generation=generation) for n in range(runs)]
    if merge:
        events = [event for run in moves for event in run]
    else:
        events = [
            event
            for start in range(0, runs, _BATCH)
            for move in range(3)
            for event in [m[move] for m in moves[start : start + _BATCH]]
        ]
    (shard,) = shard_tags(1)
    before = await ledger.write.position(shard, "journal")
    began = clock.perf_s()
    for n, start in enumerate(range(0, len(events), _BATCH)):
        new = f"{generation}-{n}"
        assert await ledger.write.record(
            shard, stream="journal", expected=before, new=new, events=events[start : start + _BATCH]
        )
        before = new
    return clock.perf_s() - began


def _moves(n: int, *, at: int, generation: int) -> list[Event]:
    job = derive_job_id("bench", f"job {n % _JOBS}", 1)
    run = f"{job}:{at + generation * 10_000_000 + n}"
    fence = generation * 2**36 + n
    queued = RunRecord(RunState.QUEUED, 1, "default:bench:1", 1, 0, 0, "", at, at, 0, "")
    running = queued._replace(
        state=RunState.RUNNING, revision=2, attempt=1, fence=fence, worker="w_bench", started_at=at
    )
    return [
        RunEvent(run, record, at, "")
        for record in (queued, running, running._replace(state=RunState.SUCCEEDED, revision=3))
    ]
