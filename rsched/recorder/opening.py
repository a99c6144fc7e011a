"""Opens a shard for the server it is on: a new generation, the journal drained, what was lost repaired, then open."""

from __future__ import annotations

from typing import NamedTuple

from rsched.core.errors import Unavailable
from rsched.ledger import Ledger
from rsched.ledger.positions import Position, parse_position
from rsched.recorder.rebuild import Rebuild
from rsched.recorder.repair import restore_extras, restore_runs
from rsched.recorder.stream import StreamRecorder
from rsched.runtime import faults
from rsched.runtime.clock import Clock
from rsched.runtime.log import get_logger
from rsched.store.recovery import Marker, Repair
from rsched.store.store import Store

_log = get_logger("rsched.recorder")
STREAMS = ("definitions", "journal")


class Opened(NamedTuple):
    """rebuild: definitions that are still to be restored, None where all are there."""

    generation: int
    rebuild: Rebuild | None


class Opening:
    """lease_ms: the longest lease of any worker. For this long after an opening that follows a loss, or a start or change of the
    server, which may have lost what nobody recorded, an attempt from before may be active without Redis knowing.
    """

    def __init__(self, store: Store, ledger: Ledger, *, shard: str, clock: Clock, lease_ms: int) -> None:
        self._store, self._ledger, self._shard = store, ledger, shard
        self._clock, self._lease_ms = clock, lease_ms

    async def ensure_open(self, recorders: list[StreamRecorder]) -> Opened:
        """Opens the shard where it is not open. Unavailable: try again."""
        store, ledger, shard = self._store, self._ledger, self._shard
        marker = await store.marker()
        unfinished = await store.coming_back()
        if marker is not None and marker.matches and marker.state == "open":
            store.generation = str(marker.generation)
            # A Postgres that was restored from a backup may have given out these numbers and forgotten it.
            await ledger.keep_above(shard, generation=marker.generation, fence=await store.fence())
            rebuild = Rebuild(store, ledger, shard=shard, generation=marker.generation) if unfinished else None
            return Opened(marker.generation, rebuild)
        # What Redis has, before adopting workers add entries of the new generation.
        last = {stream: parse_position(await store.stream_last(stream)) for stream in STREAMS}
        whole = (
            marker is not None and marker.state == "closed" and 0 < marker.generation == await ledger.generation(shard)
        )
        generation, fence = await ledger.next_generation(
            shard, redis_fence=await store.fence(), above=marker.generation if marker else 0
        )
        faults.point("opening.after_generation")
        positions = {stream: parse_position(await ledger.position(shard, stream)) for stream in STREAMS}
        lost = _lost(marker, unfinished=unfinished, last=last, positions=positions)
        if not await store.reopen(generation, fence=fence, lost=lost, whole=whole):
            raise Unavailable(f"shard {shard} is being opened by another recorder")
        faults.point("opening.after_reopen")
        fields = {"shard": shard, "generation": generation, "fence": fence}
        _log.warning("opening a shard", extra={"fields": fields})
        began = self._clock.perf_s()
        # A run that ended in Redis and is open in the ledger must not come back: the ledger learns all that Redis has first.
        for recorder in recorders:
            while await recorder.step(block_ms=0):
                pass
        faults.point("opening.after_drain")
        await self._restage()
        faults.point("opening.after_restage")
        rebuild = await self._repair(generation) if lost else None
        faults.point("opening.before_open")
        await store.open_(hold_ms=self._lease_ms)
        faults.point("opening.after_open")
        took = {"seconds": round(self._clock.perf_s() - began, 3)}
        _log.warning("a shard is open", extra={"fields": fields | took})
        return Opened(generation, rebuild)

    async def _repair(self, generation: int) -> Rebuild:
        """What has to be there before the first claim; the rest is for the rebuild that is given back."""
        store, ledger, shard = self._store, self._ledger, self._shard
        total = await ledger.count_jobs(shard)
        await store.set_repair(Repair("runs", generation, 0, total, 0, await store.time()))
        runs, dropped = await restore_runs(store, ledger, shard=shard, lease_ms=self._lease_ms)
        await restore_extras(store, ledger, shard=shard)
        faults.point("opening.after_runs")
        rebuild = Rebuild(store, ledger, shard=shard, generation=generation)
        # First, while what is due is only what Redis had itself.
        moved = await rebuild.claimed()
        jobs = await rebuild.soon()
        # Before the opening: whoever finds the shard open goes on where this recorder may end.
        await store.set_repair(Repair("jobs", generation, jobs, total, runs, await store.time()))
        store.metrics.alert("writes_lost")
        _log.error(
            "Redis had lost writes; what was due is restored from the ledger",
            extra={
                "fields": {"shard": shard, "runs": runs, "dropped": dropped, "dues": moved, "jobs": jobs, "of": total}
            },
        )
        return rebuild

    async def _restage(self) -> None:
        cursor = await self._store.restage(0, lease_ms=self._lease_ms)
        while cursor:
            cursor = await self._store.restage(cursor, lease_ms=self._lease_ms)


def _lost(
    marker: Marker | None, *, unfinished: bool, last: dict[str, Position], positions: dict[str, Position]
) -> bool:
    """Whether Redis lacks entries of the ledger; or did at an opening that was not finished, which later entries may hide."""
    if unfinished or (marker is not None and marker.state == "recovering" and marker.lost):
        return True
    return any(last[s] < positions[s] for s in STREAMS)
