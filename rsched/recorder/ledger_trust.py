"""When the ledger can be believed about what Redis was just seen to have, or not to have."""

from __future__ import annotations

from rsched.ledger import Ledger
from rsched.ledger.positions import Position, parse_position
from rsched.recorder.recovery.recovery import STREAMS
from rsched.store.store import Store

# The last entry of each stream at some moment.
Mark = dict[str, Position]
# Between two looks at how far the ledger is.
LOOK_MS = 100.0


async def mark_of(store: Store) -> Mark:
    """What Redis holds now, or has dropped by now, is in the ledger once it has these entries. Unavailable."""
    return {s: parse_position(await store.journal.get_last_id(s)) for s in STREAMS}


async def behind(ledger: Ledger, *, shard: str, mark: Mark) -> list[str]:
    """The streams of which the ledger has not come to the mark. Unavailable."""
    return [s for s, last in mark.items() if parse_position(await ledger.write.position(shard, s)) < last]


async def unsettled(store: Store) -> bool:
    """Returns whether Redis may lack what is on its way back to it.

    That is so while the shard is not open, while a restore is at work, and while workers may still present attempts that Redis
    does not know.

    Raises:
        Unavailable: Redis does not answer.
    """
    marker = await store.recovery.get_marker()
    if (
        marker is None
        or not marker.matches
        or marker.state != "open"
        or await store.clock.read() < marker.recovery_grace_until
    ):
        return True
    return await store.restore.is_in_progress()
