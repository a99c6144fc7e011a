"""The statements for what a batch has few of: skips, catch-up ranges, calendars, payloads, triggers, watermarks and workers."""

from __future__ import annotations

from rsched.ledger.base import Connection
from rsched.ledger.write.batch import Batch

_SKIPS = (
    "INSERT INTO skips (job_id, first_at, last_at, total, reason, skipped_at)"
    " VALUES (%s, at_ms(%s), at_ms(%s), %s, %s, at_ms(%s)) ON CONFLICT DO NOTHING"
)
_CATCH_UPS = (
    "INSERT INTO catch_ups AS t (shard, job_id, made_at, end_at, start_at, schedule_version, flags, at)"
    " VALUES (%s, %s, %s, %s, %s, %s, %s, %s) ON CONFLICT (job_id, made_at, end_at) DO UPDATE SET"
    " start_at = excluded.start_at, at = excluded.at WHERE t.start_at < excluded.start_at"
)
_CALENDARS = (
    "INSERT INTO calendars AS t (shard, team, name, version, updated_at, body)"
    " VALUES (%s, %s, %s, %s, %s, %s) ON CONFLICT (team, name) DO UPDATE SET shard = excluded.shard,"
    " version = excluded.version, updated_at = excluded.updated_at, body = excluded.body"
    " WHERE t.version < excluded.version"
)
_PAYLOADS = "INSERT INTO payloads (run_id, payload) VALUES (%s, %s) ON CONFLICT DO NOTHING"
_TRIGGERS = (
    "INSERT INTO triggers AS t (shard, job_id, hash, at)"
    " SELECT %s, j, h, a FROM unnest(%s::text[], %s::text[], %s::bigint[]) AS u(j, h, a)"
    " ON CONFLICT (job_id, hash) DO UPDATE SET shard = excluded.shard, at = excluded.at WHERE t.at < excluded.at"
)
_WATERMARKS = (
    "INSERT INTO watermarks AS t (shard, partition, ms)"
    " SELECT %s, p, m FROM unnest(%s::int[], %s::bigint[]) AS u(p, m)"
    " ON CONFLICT (shard, partition) DO UPDATE SET ms = excluded.ms WHERE t.ms < excluded.ms"
)
_WORKERS = (
    "INSERT INTO workers AS t (shard, worker, queues, seen_at) VALUES (%s, %s, %s, at_ms(%s))"
    " ON CONFLICT (shard, worker) DO UPDATE SET queues = excluded.queues, seen_at = excluded.seen_at"
    " WHERE t.seen_at < excluded.seen_at"
)


async def write_small_rows(connection: Connection, batch: Batch, *, shard: str) -> None:
    """Writes them in the order of their keys, so that two writers lock rows in one order."""
    async with connection.cursor() as cursor:
        if batch.skips:
            await cursor.executemany(_SKIPS, sorted(batch.skips))
        if batch.ranges:
            await cursor.executemany(_CATCH_UPS, [(shard, *r) for r in sorted(batch.ranges.values())])
        if batch.calendars:
            await cursor.executemany(_CALENDARS, [(shard, *c) for c in sorted(batch.calendars.values())])
        if batch.payloads:
            await cursor.executemany(_PAYLOADS, sorted(batch.payloads.items()))
        if batch.triggers:
            keyed = sorted(batch.triggers.items())
            columns = ([k[0] for k, _ in keyed], [k[1] for k, _ in keyed], [at for _, at in keyed])
            await cursor.execute(_TRIGGERS, (shard, *columns))
        if batch.watermarks:
            marks = sorted(batch.watermarks.items())
            await cursor.execute(_WATERMARKS, (shard, [p for p, _ in marks], [ms for _, ms in marks]))
        if batch.workers:
            await cursor.executemany(_WORKERS, [(shard, *w) for w in sorted(batch.workers.values())])
