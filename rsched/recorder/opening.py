"""Opens a shard for the server it is on: a new generation, the journal drained, what was lost repaired, then open."""

from __future__ import annotations

from rsched.core.errors import Unavailable
from rsched.ledger import Ledger
from rsched.ledger.positions import START, parse_position
from rsched.recorder.repair import repair
from rsched.recorder.stream import StreamRecorder
from rsched.runtime.log import get_logger
from rsched.store.store import Store

_log = get_logger("rsched.recorder")
STREAMS = ("definitions", "journal")
# The lease of workers: for this long after an opening an attempt from before may be active without Redis knowing.
LEASE_MS = 60_000


async def ensure_open(store: Store, ledger: Ledger, *, shard: str, recorders: list[StreamRecorder]) -> int:
    """The generation of the open shard; opens it where it is not. Unavailable: try again."""
    marker = await store.marker()
    if marker is not None and marker.matches and marker.state == "open":
        store.generation = str(marker.generation)
        return marker.generation
    # What Redis has, before adopting workers add entries of the new generation.
    last = {stream: parse_position(await store.stream_last(stream)) for stream in STREAMS}
    generation, fence = await ledger.next_generation(
        shard, redis_fence=await store.fence(), above=marker.generation if marker else 0
    )
    positions = {stream: parse_position(await ledger.position(shard, stream)) for stream in STREAMS}
    lost = {s: last[s] for s in STREAMS if last[s] < positions[s]}
    if marker is not None and marker.state == "recovering" and marker.lost:
        # An opening that was not finished knew of a loss, which entries written since may hide.
        lost = dict.fromkeys(STREAMS, START)
    if not await store.reopen(generation, fence=fence, lost=bool(lost)):
        raise Unavailable(f"shard {shard} is being opened by another recorder")
    fields = {"shard": shard, "generation": generation, "fence": fence}
    _log.warning("opening a shard", extra={"fields": fields})
    # A run that ended in Redis and is open in the ledger must not come back: the ledger learns all that Redis has first.
    for recorder in recorders:
        while await recorder.step(block_ms=0):
            pass
    await restage(store)
    if lost:
        report = await repair(store, ledger, shard=shard, lost=lost, lease_ms=LEASE_MS)
        _log.error(
            "Redis had lost its last writes; repaired from the ledger", extra={"fields": fields | report._asdict()}
        )
    await store.open_(hold_ms=LEASE_MS)
    _log.warning("a shard is open", extra={"fields": fields})
    return generation


async def restage(store: Store) -> None:
    cursor = await store.restage(0, lease_ms=LEASE_MS)
    while cursor:
        cursor = await store.restage(cursor, lease_ms=LEASE_MS)
