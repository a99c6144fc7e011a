"""Opens a shard for the server it is on: a new generation, the journal drained, what was lost repaired, then open."""

from __future__ import annotations

from typing import NamedTuple

from rsched.core.errors import Unavailable
from rsched.ledger import Ledger
from rsched.ledger.positions import Position, parse_position
from rsched.recorder.recovery.background import BackgroundRestore
from rsched.recorder.recovery.restore import restore_extras, restore_runs
from rsched.recorder.stream import StreamRecorder
from rsched.runtime import faults
from rsched.runtime.clock import Clock
from rsched.runtime.log import get_logger
from rsched.store.recovery import Marker
from rsched.store.restore import RestoreProgress
from rsched.store.store import Store

_log = get_logger("rsched.recorder")
STREAMS = ("definitions", "journal")


class Recovered(NamedTuple):
    """background_restore: definitions that are still to be restored, None where all are there."""

    generation: int
    background_restore: BackgroundRestore | None


class Recovery:
    """Opens a shard where it is not open.

    `lease_ms` is the longest lease of any worker: for so long after a recovery that follows a loss, or a start or change of the
    server (which may have lost what nobody recorded), an attempt from before may be active without Redis knowing.
    """

    def __init__(self, store: Store, ledger: Ledger, *, shard: str, clock: Clock, lease_ms: int) -> None:
        self._store, self._ledger, self._shard = store, ledger, shard
        self._clock, self._lease_ms = clock, lease_ms

    async def ensure_open(self, recorders: list[StreamRecorder]) -> Recovered:
        """Opens the shard where it is not open. Unavailable: try again."""
        store, ledger, shard = self._store, self._ledger, self._shard
        marker = await store.recovery.get_marker()
        unfinished = await store.restore.is_in_progress()
        if marker is not None and marker.matches and marker.state == "open":
            store.connection.generation = str(marker.generation)
            # A Postgres that was restored from a backup may have given out these numbers and forgotten it.
            await ledger.recovery.generations.keep_above(
                shard, generation=marker.generation, fence=await store.recovery.get_fence()
            )
            background_restore = (
                BackgroundRestore(store, ledger, shard=shard, generation=marker.generation) if unfinished else None
            )
            return Recovered(marker.generation, background_restore)
        # What Redis has, before adopting workers add entries of the new generation.
        last = {stream: parse_position(await store.journal.get_last_id(stream)) for stream in STREAMS}
        whole = (
            marker is not None
            and marker.state == "closed"
            and 0 < marker.generation == await ledger.recovery.generations.last(shard)
        )
        generation, fence = await ledger.recovery.generations.next(
            shard, redis_fence=await store.recovery.get_fence(), above=marker.generation if marker else 0
        )
        faults.point("recovery.after_generation")
        positions = {stream: parse_position(await ledger.write.position(shard, stream)) for stream in STREAMS}
        lost = _lost(marker, unfinished=unfinished, last=last, positions=positions)
        if not await store.recovery.begin(generation, fence=fence, lost=lost, whole=whole):
            raise Unavailable(f"shard {shard} is being opened by another recorder")
        faults.point("recovery.after_begin")
        fields = {"shard": shard, "generation": generation, "fence": fence}
        _log.warning("recovering a shard", extra={"fields": fields})
        began = self._clock.perf_s()
        # A run that ended in Redis and is open in the ledger must not come back: the ledger learns all that Redis has first.
        for recorder in recorders:
            while await recorder.step(block_ms=0):
                pass
        faults.point("recovery.after_drain")
        await self._restage()
        faults.point("recovery.after_restage")
        background_restore = await self._repair(generation) if lost else None
        faults.point("recovery.before_open")
        await store.recovery.finish(recovery_grace_ms=self._lease_ms)
        faults.point("recovery.after_finish")
        took = {"seconds": round(self._clock.perf_s() - began, 3)}
        _log.warning("a shard is open", extra={"fields": fields | took})
        return Recovered(generation, background_restore)

    async def _repair(self, generation: int) -> BackgroundRestore:
        """What has to be there before the first claim; the rest is for the background restore that is requeued."""
        store, ledger, shard = self._store, self._ledger, self._shard
        total = await ledger.recovery.pages.count_jobs(shard)
        await store.restore.set_progress(RestoreProgress("runs", generation, 0, total, 0, await store.clock.read()))
        runs, dropped = await restore_runs(store, ledger, shard=shard, lease_ms=self._lease_ms)
        await restore_extras(store, ledger, shard=shard)
        faults.point("recovery.after_runs")
        background_restore = BackgroundRestore(store, ledger, shard=shard, generation=generation)
        # First, while what is due is only what Redis had itself.
        moved = await background_restore.claimed()
        jobs = await background_restore.soon()
        # Before the recovery: whoever finds the shard open goes on where this recorder may end.
        await store.restore.set_progress(
            RestoreProgress("jobs", generation, jobs, total, runs, await store.clock.read())
        )
        store.connection.metrics.alert("writes_lost")
        _log.error(
            "Redis had lost writes; what was due is restored from the ledger",
            extra={
                "fields": {"shard": shard, "runs": runs, "dropped": dropped, "dues": moved, "jobs": jobs, "of": total}
            },
        )
        return background_restore

    async def _restage(self) -> None:
        cursor = await self._store.recovery.restage(0, lease_ms=self._lease_ms)
        while cursor:
            cursor = await self._store.recovery.restage(cursor, lease_ms=self._lease_ms)


def _lost(
    marker: Marker | None, *, unfinished: bool, last: dict[str, Position], positions: dict[str, Position]
) -> bool:
    """Whether Redis lacks entries of the ledger; or did at a recovery that was not finished, which later entries may hide."""
    if unfinished or (marker is not None and marker.state == "recovering" and marker.lost):
        return True
    return any(last[s] < positions[s] for s in STREAMS)
