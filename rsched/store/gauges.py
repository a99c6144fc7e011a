"""What a shard holds, read for its metrics: one pipeline, of at most 423 commands, each of which takes Redis microseconds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from redis.exceptions import RedisError

from rsched.core.ids import PARTITIONS
from rsched.core.jobs.packed import unpack_run
from rsched.store.failures import translate
from rsched.store.store import Store

MAX_QUEUES = 40
MAX_LANES = 300
_TEAMS = 100
_PRIORITIES = ("0", "1", "2")
# The due sets are counted in turns, all of them in sixteen reads: the client needs 50 us a command.
TURN = PARTITIONS // 16
# Waiting runs looked at to find queues that no worker serves, which nothing else in Redis names.
_SAMPLE = 32
_FORGET_READS = 720


class ShardGauges(NamedTuple):
    """Instants in ms of Redis' clock; ages in ms, 0 where nothing is late. depth: queue_key -> runs waiting.

    due: None until all partitions were counted once. last: stream -> last id ever added, "0-0" for none.
    """

    now: int
    open: bool
    generation: int
    load_level: int
    held: int
    unconfirmed: int
    due: int | None
    claim_lag_ms: int
    staged: int
    retries: int
    unfinished_runs: int
    leases: int
    catchup: int
    catchup_lag_ms: int
    quarantine: int
    workers: int
    schedulers: int
    owned: int
    restore_left: int
    depth: dict[str, int]
    memory: int
    memory_max: int
    scripts_s: float
    last: dict[str, str]


class GaugeReader:
    """Keeps what one read learns for the next: queue_keys that have work, and how far the count of the due sets is."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._queues: dict[str, int] = {}
        self._queue_keys: tuple[str, ...] = ()
        self._due: dict[int, int] = {}
        self._turn = 0
        self._reads = 0

    async def read(self) -> ShardGauges:
        """Unavailable."""
        k, pipe = self._store.keys, self._store.client.pipeline(transaction=False)
        queues, queue_keys = list(self._queues), self._queue_keys
        turn = range(self._turn, self._turn + TURN)
        pipe.time()
        pipe.hgetall(k.marker)
        pipe.info("server", "replication", "memory", "commandstats")
        for key in (k.staged, k.retries, k.leases, k.catchup):
            pipe.zcard(key)
        for key in (k.heads, k.catchup):
            pipe.zrange(key, 0, 0, withscores=True)
        pipe.hlen(k.quarantine)
        pipe.hlen(k.runs)
        pipe.zrange(k.schedulers, 0, -1, withscores=True)
        pipe.hgetall(k.workers)
        pipe.hvals(k.owners)
        pipe.smembers(k.unconfirmed)
        pipe.hmget(k.restore, "phase", "jobs_total", "jobs_done")
        pipe.xinfo_stream(k.definitions)
        pipe.xinfo_stream(k.journal)
        pipe.hrandfield(k.runs, _SAMPLE, withvalues=True)
        for queue in queues:
            pipe.zrange(k.ready(queue), 0, _TEAMS - 1)
        for queue_key in queue_keys:
            pipe.xlen(k.queue(queue_key))
        for partition in turn:
            pipe.zcard(k.due(partition))
        try:
            found = await self._store._redis(pipe.execute(raise_on_error=False))
        except RedisError as error:
            raise translate(error) from error
        fixed, found = found[:19], found[19:]
        for reply in (*fixed[:16], *fixed[18:]):
            if isinstance(reply, Exception):
                known = reply if isinstance(reply, RedisError) else RedisError(str(reply))
                raise translate(known, marker=k.marker)
        (time, marker, info, staged, retries, leases, catchup, head, catch_up, quarantine, runs, schedulers, workers, owners,
         unconfirmed, repair, definitions, journal, sample) = fixed  # fmt: skip
        now = int(time[0]) * 1000 + int(time[1]) // 1000
        m = {name.decode(): value.decode() for name, value in marker.items()}
        self._count_due(turn, found[len(queues) + len(queue_keys) :])
        depth = {
            queue_key: int(n)
            for queue_key, n in zip(queue_keys, found[len(queues) : len(queues) + len(queue_keys)], strict=True)
            if not isinstance(n, Exception) and n
        }
        live = self._learn(workers, sample, now)
        self._next_queue_keys(dict(zip(queues, found[: len(queues)], strict=True)), depth)
        alive = {name for name, end in schedulers if end > now}
        held = await self._held(m, now, unconfirmed)
        return ShardGauges(
            now=now,
            open=m.get("state") == "open"
            and m.get("run_id") == info["run_id"]
            and m.get("repl_id") == info["master_replid"],
            generation=int(m.get("generation", 0)),
            load_level=int(m.get("load_level") or 0),
            held=held,
            unconfirmed=len(unconfirmed),
            due=sum(self._due.values()) if len(self._due) == PARTITIONS else None,
            claim_lag_ms=max(0, now - int(head[0][1])) if head else 0,
            staged=staged,
            retries=retries,
            unfinished_runs=runs,
            leases=leases,
            catchup=catchup,
            catchup_lag_ms=max(0, now - int(catch_up[0][1])) if catch_up else 0,
            quarantine=quarantine,
            workers=live,
            schedulers=len(alive),
            owned=sum(1 for o in owners if o.rsplit(b"|", 1)[0] in alive),
            restore_left=max(0, int(repair[1] or 0) - int(repair[2] or 0)) if repair[0] != b"done" else 0,
            depth=depth,
            memory=int(info["used_memory"]),
            memory_max=int(info.get("maxmemory", 0)),
            scripts_s=sum(float(info.get(f"cmdstat_{c}", {}).get("usec", 0)) for c in ("evalsha", "eval")) / 1e6,
            last={"definitions": _last(definitions), "journal": _last(journal)},
        )

    async def _held(self, marker: Mapping[str, str], now: int, unconfirmed: Any) -> int:
        """Runs that release passes over until workers have adopted; asked for while there is a hold only."""
        if not unconfirmed or int(marker.get("recovery_grace_until") or 0) <= now:
            return 0
        pipe = self._store.client.pipeline(transaction=False)
        for key in (self._store.keys.staged, self._store.keys.retries):
            pipe.zcount(key, "-inf", marker.get("closed_at", "0"))
        return sum(await self._store._redis(pipe.execute()))

    def _count_due(self, turn: range, counts: list[Any]) -> None:
        for partition, count in zip(turn, counts, strict=True):
            self._due[partition] = 0 if isinstance(count, Exception) else int(count)
        self._turn = turn.stop % PARTITIONS

    def _learn(self, workers: Mapping[bytes, bytes], sample: Any, now: int) -> int:
        """Notes the queues that are served or have runs; how many workers are live."""
        self._reads += 1
        live = 0
        for value in workers.values():
            seen, _, rest = value.decode().partition("|")
            queues, _, lease = rest.rpartition("|")
            if seen.isdigit() and int(seen) > now - (int(lease) if lease.isdigit() else 60_000):
                live += 1
                self._note(*queues.split(","))
        # Pairs, or one flat list, by the protocol's version.
        flat = [v for pair in sample or [] for v in (pair if isinstance(pair, list | tuple) else (pair,))]
        for packed in flat[1::2]:
            try:
                self._note(unpack_run(packed.decode()).queue_key.partition(":")[0])
            except (ValueError, KeyError):
                continue  # the reconciler's business
        for queue in [q for q, read in self._queues.items() if read < self._reads - _FORGET_READS]:
            del self._queues[queue]
        return live

    def _note(self, *queues: str) -> None:
        for queue in queues:
            if queue and (queue in self._queues or len(self._queues) < MAX_QUEUES):
                self._queues[queue] = self._reads

    def _next_queue_keys(self, ready: Mapping[str, Any], depth: Mapping[str, int]) -> None:
        """The longest known queue_keys are looked at again, then what else is ready."""
        queue_keys = dict.fromkeys(sorted(depth, key=lambda queue_key: -depth[queue_key])[: MAX_LANES // 2])
        for queue, teams in ready.items():
            if isinstance(teams, Exception):
                continue
            for team in teams:
                queue_keys.update(dict.fromkeys(f"{queue}:{team.decode()}:{p}" for p in _PRIORITIES))
        self._queue_keys = tuple(queue_keys)[:MAX_LANES]


def _last(info: Any) -> str:
    if isinstance(info, RedisError) and "no such key" in str(info):
        return "0-0"  # nothing was added yet
    if isinstance(info, Exception):
        raise translate(info if isinstance(info, RedisError) else RedisError(str(info)))
    return str(info["last-generated-id"].decode())
