"""Brings back from the ledger what a shard's Redis has lost; the loss of everything is a lost tail from zero.

The scripts compare: only a later version of a job, or a later revision of a run, than Redis has is written.
"""

from __future__ import annotations

from collections.abc import Sequence

from rsched.core.ids import JobId, RunId
from rsched.core.jobs.packed import FLAG_PAYLOAD, RunRecord
from rsched.ledger import Ledger
from rsched.runtime import faults
from rsched.store.catchup import CatchupRange
from rsched.store.store import Store

_PAGE = 500
Page = Sequence[tuple[RunId, RunRecord]]


async def restore_extras(store: Store, ledger: Ledger, *, shard: str) -> None:
    """Calendars of exclusions, and catch-up ranges that are not paid out. Unavailable."""
    if calendars := await ledger.recovery.pages.calendars(shard):
        await store.restore.put_calendars(calendars)
    found = await ledger.recovery.pages.pending_ranges(shard)
    for i in range(0, len(found), _PAGE):
        await store.restore.put_catchup_ranges(
            [CatchupRange(JobId(r[0]), *r[1:], score=0) for r in found[i : i + _PAGE]]
        )
    # What was paid out to its end, and is there once more, would be paid twice.
    here = await store.catchup.list_all()
    for i in range(0, len(here), _PAGE):
        ranges = here[i : i + _PAGE]
        ended = await ledger.recovery.pages.ended_ranges([(r.job, r.made_at, r.end) for r in ranges])
        await store.restore.put_catchup_ranges(
            [r._replace(start=r.end + 1) for r in ranges if (r.job, r.made_at, r.end) in ended]
        )


async def restore_runs(store: Store, ledger: Ledger, *, shard: str, lease_ms: int) -> tuple[int, int]:
    """(runs that came back, runs dropped because they had ended). Unavailable."""
    # First, while Redis has only its own: it may be all that there were, of which the ends are in the tail that is gone.
    back, dropped = 0, await _drop_ended(store, ledger, lease_ms=lease_ms)
    async for page in ledger.recovery.unfinished.pages(shard, limit=_PAGE):
        # Their ends could not be recorded.
        over = await ledger.quarantine.refused_ends(page)
        back += await _restore(store, ledger, [(run, r) for run, r in page if run not in over], lease_ms=lease_ms)
        if over:
            dropped += await store.restore.put_runs([(run, r.pack()) for run, r in over.items()], lease_ms=lease_ms)
        faults.point("recovery.in_runs")
    return back, dropped


async def _restore(store: Store, ledger: Ledger, page: Page, *, lease_ms: int) -> int:
    payloads = await ledger.recovery.pages.payloads_of([run for run, r in page if FLAG_PAYLOAD in r.flags])
    return await store.restore.put_runs([(run, r.pack()) for run, r in page], lease_ms=lease_ms, payloads=payloads)


async def _drop_ended(store: Store, ledger: Ledger, *, lease_ms: int) -> int:
    count, cursor = 0, -1
    while cursor:
        cursor, page = await store.resync.read_runs(cursor=max(cursor, 0), count=_PAGE)
        since = min((r.claimed_at for _, r in page), default=0)
        known = await ledger.recovery.compare.runs([run for run, _ in page], since=since)
        if ended := [(run, r.pack()) for run, r in known.items() if r.state.final]:
            count += await store.restore.put_runs(ended, lease_ms=lease_ms)
    return count
