"""A Postgres that comes back from a backup, while the journal of what it lost is trimmed."""

from __future__ import annotations

import anyio
import psycopg
from psycopg import sql

from rsched.core.ids import WorkerId
from rsched.recorder.resync.resync import Resync
from tests.recorder.stepped_shard import HOUR, Shard

Backup = dict[str, bytes]
_TABLES = (
    "SELECT relname FROM pg_class WHERE relkind IN ('r', 'p') AND NOT relispartition"
    " AND relnamespace = 'public'::regnamespace AND relname NOT IN ('queue_keys', 'worker_names') ORDER BY relname"
)


def backup(url: str) -> Backup:
    """All rows of all tables but the dictionaries: a restore ends all sessions, and with them what they know of these."""
    kept = {}
    with psycopg.connect(url) as c:
        for (table,) in c.execute(_TABLES).fetchall():
            with c.cursor().copy(sql.SQL("COPY (SELECT * FROM {}) TO STDOUT").format(sql.Identifier(table))) as copy:
                kept[table] = b"".join(bytes(part) for part in copy)
    return kept


def restore(url: str, kept: Backup) -> None:
    with psycopg.connect(url) as c:
        c.execute(sql.SQL("TRUNCATE {}").format(sql.SQL(", ").join(map(sql.Identifier, kept))))
        for table, rows in kept.items():
            with c.cursor().copy(sql.SQL("COPY {} FROM STDIN").format(sql.Identifier(table))) as copy:
                copy.write(rows)


async def without_tail(s: Shard, url: str, kept: Backup, *, quiet: bool = False) -> Resync:
    """Postgres is back from the backup, no entry of the journal is left; the recorder has noticed. quiet: no new entry comes."""
    restore(url, kept)
    for key in (s.keys.journal, s.keys.definitions):
        await s.redis.xtrim(key, maxlen=0, approximate=False)
    resync = Resync(s.store, s.ledger, shard=s.shard)
    s.gap = resync.found_gap
    s.__post_init__()
    if not quiet:
        await s.put("made after it", due_in=HOUR, every=2 * HOUR)
        await s.store.runs.fetch(WorkerId("came after it"), request=1, slots=1, lease_ms=60_000, queues=["none"])
    await caught_up(s)
    assert await s.store.resync.is_requested()
    return resync


async def caught_up(s: Shard) -> None:
    """The recorder has recorded what is there."""
    for stream in s.streams.values():
        while await stream.step(block_ms=1):
            pass


async def written_again(s: Shard, resync: Resync) -> None:
    """To the end of resync, while the recorder goes on."""
    with anyio.fail_after(30):
        async with s.recording():
            while await resync.step():
                pass
    assert not await s.store.resync.is_requested()
