"""What is quarantined for people in the table `quarantine`: events that can't be recorded, and gaps of the journal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rsched.core.ids import RunId
from rsched.core.jobs.packed import Event, QuarantineEvent, RunEvent, RunRecord, unpack_run
from rsched.ledger.base import Base
from rsched.ledger.positions import Position
from rsched.ledger.staging import Batch, Refused, recordable
from rsched.ledger.upserts import Connection
from rsched.runtime.log import get_logger

_log = get_logger("rsched.ledger")
_RAW_BYTES = 100_000
NO_DETAIL = "the text that came with this could not be recorded"
_RUN = "run"


class Quarantine(Base):
    async def record_gap(self, shard: str, *, stream: str, before: Position, found: Position) -> bool:
        """On record among what was quarantined: entries between the two are missing. False where it was already. Unavailable."""
        reason = f"entries after {before} and before {found} are missing: what ended in them has no history"
        gap = (shard, stream, str(found), reason)
        # One recorder a shard, so that no other puts the same one in meanwhile.
        added = await self._do(
            "INSERT INTO quarantine (shard, stream, kind, key, raw, reason) SELECT %s, %s, 'gap', %s, '', %s WHERE NOT EXISTS"
            " (SELECT FROM quarantine WHERE shard = %s AND stream = %s AND kind = 'gap' AND key = %s AND reason = %s)",
            (*gap, *gap),
        )
        return added == 1

    async def quarantined_ends(self, page: Sequence[tuple[RunId, RunRecord]]) -> dict[RunId, RunRecord]:
        """Of these runs, given as the ledger has them, those whose end was refused, with its record: they are over, though the
        ledger has them open. Unavailable.

        A later event that is no end does not count: its run may be pending still.
        """
        if not page:
            return {}
        known = dict(page)
        rows = await self._all(
            "SELECT key, raw FROM quarantine WHERE kind = %s AND key = ANY(%s)", (_RUN, [str(run) for run in known])
        )
        ends = {}
        for key, raw in rows:
            run, later = RunId(key), _record_of(bytes(raw))
            if later and later.state.final and (later.fence, later.revision) > (known[run].fence, known[run].revision):
                ends[run] = later
        return ends

    async def _quarantine(
        self, c: Connection, shard: str, *, stream: str, batch: Batch, refused: Sequence[Refused]
    ) -> int:
        """How many."""
        aside = [*refused, *batch.refused, *(Refused(p, "could not be read in Redis") for p in batch.quarantine)]
        for event, reason in aside:
            kind, key, raw = _described(event)
            _log.error("an event was quarantined", extra={"fields": {"shard": shard, "kind": kind, "key": key,
                                                                     "reason": reason}})  # fmt: skip
            await c.execute(
                "INSERT INTO quarantine (shard, stream, kind, key, raw, reason) VALUES (%s, %s, %s, %s, %s, %s)",
                (shard, stream, kind, key, raw, recordable(reason)),
            )
        return len(aside)


def without_detail(event: Event) -> RunEvent | None:
    """A run's event as it can perhaps be recorded: a run that ended must not stay open for the text of its error. None where no
    text is to blame.
    """
    if isinstance(event, RunEvent) and event.detail:
        return event._replace(detail=NO_DETAIL)
    return None


def _described(event: Event) -> tuple[str, str, bytes]:
    kind = type(event).__name__.removesuffix("Event").lower()
    key: Any = event[0]
    raw = repr(event)
    if isinstance(event, QuarantineEvent):
        kind, key, raw = event.kind, event.key, event.raw
    elif isinstance(event, RunEvent):
        kind, raw = _RUN, "\n".join((event.run, event.record.pack(), str(event.at), event.detail))
    return recordable(kind), recordable(str(key)), raw.encode("utf-8", "backslashreplace")[:_RAW_BYTES]


def _record_of(raw: bytes) -> RunRecord | None:
    """The record in what _described made of a run's event."""
    lines = raw.decode(errors="replace").split("\n", 2)
    try:
        return unpack_run(lines[1])
    except (IndexError, ValueError, KeyError):
        return None
