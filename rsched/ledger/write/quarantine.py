"""What is kept for people in the table `quarantine`: events that can't be recorded, and gaps of the journal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rsched.core.ids import RunId
from rsched.core.jobs.packed import Event, QuarantineEvent, RunEvent, RunRecord, unpack_run
from rsched.ledger.base import Connection, Database
from rsched.ledger.positions import Position
from rsched.ledger.write.batch import Batch, Refused, recordable
from rsched.runtime.log import get_logger

_log = get_logger("rsched.ledger")
_RAW_BYTES = 100_000
NO_DETAIL = "the text that came with this could not be recorded"
_RUN = "run"


class Quarantine:
    """The table as the recorder uses it."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def record_gap(self, shard: str, *, stream: str, before: Position, found: Position) -> bool:
        """Puts on record that entries of the journal are missing.

        Args:
            shard: The shard.
            stream: `journal` or `definitions`.
            before: The last entry before the gap.
            found: The first entry after it.

        Returns:
            False where it was on record already.

        Raises:
            Unavailable: Postgres is away.
        """
        reason = f"entries after {before} and before {found} are missing: what ended in them has no history"
        gap = (shard, stream, str(found), reason)
        # One recorder a shard, so that no other puts the same one in meanwhile.
        added = await self._database.execute(
            "INSERT INTO quarantine (shard, stream, kind, key, raw, reason) SELECT %s, %s, 'gap', %s, '', %s WHERE NOT EXISTS"
            " (SELECT FROM quarantine WHERE shard = %s AND stream = %s AND kind = 'gap' AND key = %s AND reason = %s)",
            (*gap, *gap),
        )
        return added == 1

    async def refused_ends(self, page: Sequence[tuple[RunId, RunRecord]]) -> dict[RunId, RunRecord]:
        """Finds the runs whose end could not be recorded: they are over, though the ledger has them as unfinished.

        A later event that does not end the run does not count: its run may be pending still.

        Args:
            page: Runs as the ledger has them.

        Returns:
            The records of those ends.

        Raises:
            Unavailable: Postgres is away.
        """
        if not page:
            return {}
        known = dict(page)
        rows = await self._database.rows(
            "SELECT key, raw FROM quarantine WHERE kind = %s AND key = ANY(%s)", (_RUN, [str(run) for run in known])
        )
        ends = {}
        for key, raw in rows:
            run, later = RunId(key), _record_of(bytes(raw))
            if later and later.state.final and (later.fence, later.revision) > (known[run].fence, known[run].revision):
                ends[run] = later
        return ends


async def put_in_quarantine(
    connection: Connection, shard: str, *, stream: str, batch: Batch, refused: Sequence[Refused]
) -> int:
    """Puts what a batch could not record into quarantine, in the transaction that records the rest.

    Args:
        connection: The transaction's connection.
        shard: The shard.
        stream: `journal` or `definitions`.
        batch: The batch, with what it refused itself.
        refused: What Postgres refused.

    Returns:
        How many events these are.
    """
    items = [*refused, *batch.refused, *(Refused(e, "could not be read in Redis") for e in batch.unreadable)]
    for event, reason in items:
        kind, key, raw = _described(event)
        _log.error("an event was put in quarantine", extra={"fields": {"shard": shard, "kind": kind, "key": key,
                                                                         "reason": reason}})  # fmt: skip
        await connection.execute(
            "INSERT INTO quarantine (shard, stream, kind, key, raw, reason) VALUES (%s, %s, %s, %s, %s, %s)",
            (shard, stream, kind, key, raw, recordable(reason)),
        )
    return len(items)


def without_detail(event: Event) -> RunEvent | None:
    """Returns a run's event as it can perhaps be recorded: a run must not stay unfinished for the text of its error.

    Returns:
        The event without its text, None where no text is to blame.
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
    """Returns the record in what _described made of a run's event."""
    lines = raw.decode(errors="replace").split("\n", 2)
    try:
        return unpack_run(lines[1])
    except (IndexError, ValueError, KeyError):
        return None
