"""The dictionaries of queue keys and workers, as a session knows them.

Authority: the tables queue_keys and worker_names, of which rows are never changed or deleted. What was looked up is
remembered for as long as the connection is: a server that was put back from a backup has other ids, and no connection from
before.
"""

from __future__ import annotations

from collections.abc import Iterable
from weakref import WeakKeyDictionary

from rsched.core.jobs.model import PRIORITY_CODE
from rsched.ledger.base import Connection
from rsched.ledger.write.batch import Batch, Ids, dictionary_name

_PRIORITY = {code: name for name, code in PRIORITY_CODE.items()}
# Names of workers change with each start of theirs.
_MOST = 100_000
_QUEUE_KEYS = (
    "INSERT INTO queue_keys (shard, key, queue, team, priority)"
    " SELECT %s, u.* FROM unnest(%s::text[], %s::text[], %s::text[], %s::text[]) AS u ON CONFLICT DO NOTHING"
)
_WORKERS = "INSERT INTO worker_names (name) SELECT unnest(%s::text[]) ON CONFLICT DO NOTHING"


class Names:
    """Looks ids up, and gives new names theirs."""

    def __init__(self) -> None:
        self._known: WeakKeyDictionary[Connection, tuple[dict[tuple[str, str], int], dict[str, int]]] = (
            WeakKeyDictionary()
        )

    async def ids_of(self, connection: Connection, batch: Batch, *, shard: str) -> Ids:
        """Returns the ids of all names in the batch; new ones are committed first."""
        queue_keys, workers = self._known.setdefault(connection, ({}, {}))
        # As events have them, and as the dictionaries do: the same but for names that Postgres would not take.
        named_keys, named_workers = ({name: dictionary_name(name) for name in names} for names in batch.names())
        if len(workers) > _MOST:
            workers.clear()
        if new_keys := sorted(k for k in set(named_keys.values()) if (shard, k) not in queue_keys):
            queue_keys.update(await self._queue_keys(connection, shard, new_keys))
        if new_workers := sorted(set(named_workers.values()) - workers.keys()):
            workers.update(await self._workers(connection, new_workers))
        return Ids(
            {name: queue_keys[shard, k] for name, k in named_keys.items()},
            {name: workers[w] for name, w in named_workers.items()},
        )

    async def _queue_keys(
        self, connection: Connection, shard: str, keys: list[str]
    ) -> Iterable[tuple[tuple[str, str], int]]:
        query = "SELECT key, id FROM queue_keys WHERE shard = %s AND key = ANY(%s)"
        async with connection.transaction():
            rows = await (await connection.execute(query, (shard, keys))).fetchall()
            missing = sorted(set(keys) - {row[0] for row in rows})
            if missing:
                parts = [_parts(key) for key in missing]
                await connection.execute(_QUEUE_KEYS, (shard, missing, *(list(p) for p in zip(*parts, strict=True))))
                rows = await (await connection.execute(query, (shard, keys))).fetchall()
        return [((shard, row[0]), row[1]) for row in rows]

    async def _workers(self, connection: Connection, names: list[str]) -> Iterable[tuple[str, int]]:
        query = "SELECT name, id FROM worker_names WHERE name = ANY(%s)"
        async with connection.transaction():
            rows = await (await connection.execute(query, (names,))).fetchall()
            missing = sorted(set(names) - {row[0] for row in rows})
            if missing:
                await connection.execute(_WORKERS, (missing,))
                rows = await (await connection.execute(query, (names,))).fetchall()
        return [(row[0], row[1]) for row in rows]


def _parts(key: str) -> tuple[str, str, str]:
    """Returns (queue, team, priority) of a queue key."""
    queue, _, rest = key.partition(":")
    team, _, code = rest.partition(":")
    return queue, team, _PRIORITY.get(code, code)
