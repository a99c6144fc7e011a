"""What a shard has, read for its metrics: one pipeline, of at most 423 commands, each of which takes Redis microseconds.

Authority: none; the numbers are of one moment, but for the count of due jobs, which takes sixteen reads. Errors: Unavailable,
also where a key that is read whole is damaged; a damaged queue, queue key or due set only counts as empty.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from redis.asyncio.client import Pipeline
from redis.exceptions import RedisError

from rsched.core.ids import PARTITIONS
from rsched.store.connection import Connection, Part
from rsched.store.failures import translate
from rsched.store.keys import Keys
from rsched.store.known_queues import KnownQueues

_TEAMS = 100
# The due sets are counted in turns, all of them in sixteen reads: the client needs 50 us a command.
TURN = PARTITIONS // 16
# Waiting runs looked at to find queues that no worker serves, which nothing else in Redis names.
_SAMPLE = 32

Values = Mapping[str, Any]


class ShardGauges(NamedTuple):
    """What a shard has. Instants are ms by Redis' clock; ages are ms, 0 where nothing is late.

    Attributes:
        now: When it was read.
        open: Whether the shard is open on the server that answers.
        generation: Its generation.
        load_level: The load-shedding level.
        in_recovery_grace: Runs that release passes over until workers have adopted.
        unconfirmed: Workers that have not adopted since the shard was opened.
        due: Jobs with a due time, None until all partitions were counted once.
        claim_lag_ms: How late the earliest due time is.
        staged: Runs that wait for their instant.
        retries: Runs that wait for the end of a backoff.
        unfinished_runs: Runs that are not final.
        leases: Attempts under a lease.
        catchup: Catch-up ranges.
        catchup_lag_ms: How late the first of them is.
        quarantine: Quarantined entries.
        workers: Live workers.
        schedulers: Live schedulers.
        owned: Partitions that a live scheduler owns.
        restore_left: Jobs that a restore has still to write.
        depth: Queue key -> runs that wait, for the longest queue keys.
        memory: Bytes in use.
        memory_max: The limit, 0 for none.
        scripts_s: Seconds that the server has spent on scripts.
        last: Stream -> the last id ever added, "0-0" for none.
    """

    now: int
    open: bool
    generation: int
    load_level: int
    in_recovery_grace: int
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


class Row(NamedTuple):
    """One value of a shard.

    Attributes:
        name: A field of ShardGauges, or what rows below and the reader use.
        command: Puts the command that reads it into the pipeline; None where it follows from rows above.
        decode: Makes the value of the reply (None without a command) and of the values of the rows above.
        takes_errors: Whether `decode` is given an error of the command, too, instead of its being raised.
    """

    name: str
    command: Callable[[Pipeline, Keys], object] | None
    decode: Callable[[Any, Values], Any]
    takes_errors: bool = False


def _number(reply: Any, _: Values) -> int:
    return int(reply)


def _as_it_is(reply: Any, _: Values) -> Any:
    return reply


def _lag(reply: Any, values: Values) -> int:
    """Of the first member of a sorted set whose scores are instants."""
    return max(0, values["now"] - int(reply[0][1])) if reply else 0


def _is_open(_: Any, values: Values) -> bool:
    marker, info = values["marker"], values["info"]
    return bool(
        marker.get("state") == "open"
        and marker.get("run_id") == info["run_id"]
        and marker.get("repl_id") == info["master_replid"]
    )


def _scripts_s(_: Any, values: Values) -> float:
    return sum(float(values["info"].get(f"cmdstat_{c}", {}).get("usec", 0)) for c in ("evalsha", "eval")) / 1e6


def _restore_left(reply: Any, _: Values) -> int:
    phase, total, done = reply
    return max(0, int(total or 0) - int(done or 0)) if phase != b"done" else 0


def _last(info: Any, _: Values) -> str:
    if isinstance(info, RedisError) and "no such key" in str(info):
        return "0-0"  # nothing was added yet
    if isinstance(info, Exception):
        raise translate(info if isinstance(info, RedisError) else RedisError(str(info)))
    return str(info["last-generated-id"].decode())


ROWS = (
    Row("now", lambda pipe, _: pipe.time(), lambda time, _: int(time[0]) * 1000 + int(time[1]) // 1000),
    Row("marker", lambda pipe, keys: pipe.hgetall(keys.marker),
        lambda fields, _: {name.decode(): value.decode() for name, value in fields.items()}),
    Row("info", lambda pipe, _: pipe.info("server", "replication", "memory", "commandstats"), _as_it_is),
    Row("open", None, _is_open),
    Row("generation", None, lambda _, values: int(values["marker"].get("generation", 0))),
    Row("load_level", None, lambda _, values: int(values["marker"].get("load_level") or 0)),
    Row("memory", None, lambda _, values: int(values["info"]["used_memory"])),
    Row("memory_max", None, lambda _, values: int(values["info"].get("maxmemory", 0))),
    Row("scripts_s", None, _scripts_s),
    Row("staged", lambda pipe, keys: pipe.zcard(keys.staged), _number),
    Row("retries", lambda pipe, keys: pipe.zcard(keys.retries), _number),
    Row("leases", lambda pipe, keys: pipe.zcard(keys.leases), _number),
    Row("catchup", lambda pipe, keys: pipe.zcard(keys.catchup), _number),
    Row("claim_lag_ms", lambda pipe, keys: pipe.zrange(keys.heads, 0, 0, withscores=True), _lag),
    Row("catchup_lag_ms", lambda pipe, keys: pipe.zrange(keys.catchup, 0, 0, withscores=True), _lag),
    Row("quarantine", lambda pipe, keys: pipe.hlen(keys.quarantine), _number),
    Row("unfinished_runs", lambda pipe, keys: pipe.hlen(keys.runs), _number),
    Row("unconfirmed", lambda pipe, keys: pipe.scard(keys.unconfirmed), _number),
    Row("live_schedulers", lambda pipe, keys: pipe.zrange(keys.schedulers, 0, -1, withscores=True),
        lambda leases, values: {name for name, end in leases if end > values["now"]}),
    Row("schedulers", None, lambda _, values: len(values["live_schedulers"])),
    Row("owned", lambda pipe, keys: pipe.hvals(keys.owners),
        lambda owners, values: sum(1 for o in owners if o.rsplit(b"|", 1)[0] in values["live_schedulers"])),
    Row("restore_left", lambda pipe, keys: pipe.hmget(keys.restore, "phase", "jobs_total", "jobs_done"), _restore_left),
    Row("definitions", lambda pipe, keys: pipe.xinfo_stream(keys.definitions), _last, takes_errors=True),
    Row("journal", lambda pipe, keys: pipe.xinfo_stream(keys.journal), _last, takes_errors=True),
    Row("last", None, lambda _, values: {stream: values[stream] for stream in ("definitions", "journal")}),
    Row("known_workers", lambda pipe, keys: pipe.hgetall(keys.workers), _as_it_is),
    Row("sample", lambda pipe, keys: pipe.hrandfield(keys.runs, _SAMPLE, withvalues=True), _as_it_is),
)  # fmt: skip
COMMANDS = sum(row.command is not None for row in ROWS)


def decode_rows(replies: list[Any], *, marker: str) -> dict[str, Any]:
    """Returns the value of each row.

    Args:
        replies: The replies to the rows' commands, in their order; an error in place of a reply that there is not.
        marker: The key of the shard's marker, for the text of errors.

    Raises:
        Unavailable: A command failed.
    """
    rows = [row for row in ROWS if row.command is not None]
    by_name = dict(zip((row.name for row in rows), replies, strict=True))
    for row in rows:
        error = by_name[row.name]
        if isinstance(error, Exception) and not row.takes_errors:
            raise translate(error if isinstance(error, RedisError) else RedisError(str(error)), marker=marker)
    values: dict[str, Any] = {}
    for row in ROWS:
        values[row.name] = row.decode(by_name.get(row.name), values)
    return values


class Gauges(Part):
    """Reads the gauges, and keeps what one read learns for the next: queue keys that have work, and the count of due jobs."""

    def __init__(self, redis: Connection) -> None:
        """Takes the connection of the shard."""
        super().__init__(redis)
        self._known = KnownQueues()
        self._due: dict[int, int] = {}
        self._turn = 0

    async def read(self) -> ShardGauges:
        """Reads all gauges once.

        Raises:
            Unavailable: Redis does not answer, or a key is damaged.
        """
        keys, pipe = self._redis.keys, self._redis.pipeline()
        queues, queue_keys = self._known.queues, self._known.queue_keys
        turn = range(self._turn, self._turn + TURN)
        for row in ROWS:
            if row.command is not None:
                row.command(pipe, keys)
        for queue in queues:
            pipe.zrange(keys.ready(queue), 0, _TEAMS - 1)
        for queue_key in queue_keys:
            pipe.xlen(keys.queue(queue_key))
        for partition in turn:
            pipe.zcard(keys.due(partition))
        try:
            replies = await self._redis.ask(pipe.execute(raise_on_error=False))
        except RedisError as error:
            raise translate(error) from error
        values = decode_rows(replies[:COMMANDS], marker=keys.marker)
        ready, lengths, counts = _split(replies[COMMANDS:], len(queues), len(queue_keys))
        self._count_due(turn, counts)
        depth = {
            queue_key: int(length)
            for queue_key, length in zip(queue_keys, lengths, strict=True)
            if not isinstance(length, Exception) and length
        }
        workers = self._known.learn(values["known_workers"], values["sample"], now=values["now"])
        self._known.choose(dict(zip(queues, ready, strict=True)), depth)
        return ShardGauges(
            **{name: values[name] for name in ShardGauges._fields if name in values},
            in_recovery_grace=await self._in_recovery_grace(values),
            due=sum(self._due.values()) if len(self._due) == PARTITIONS else None,
            workers=workers,
            depth=depth,
        )

    async def _in_recovery_grace(self, values: Values) -> int:
        """Asks for it while there is a grace period only."""
        marker = values["marker"]
        if not values["unconfirmed"] or int(marker.get("recovery_grace_until") or 0) <= values["now"]:
            return 0
        pipe = self._redis.pipeline()
        for key in (self._redis.keys.staged, self._redis.keys.retries):
            pipe.zcount(key, "-inf", marker.get("closed_at", "0"))
        return sum(await self._redis.ask(pipe.execute()))

    def _count_due(self, turn: range, counts: list[Any]) -> None:
        for partition, count in zip(turn, counts, strict=True):
            self._due[partition] = 0 if isinstance(count, Exception) else int(count)
        self._turn = turn.stop % PARTITIONS


def _split(replies: list[Any], first: int, second: int) -> tuple[list[Any], list[Any], list[Any]]:
    return replies[:first], replies[first : first + second], replies[first + second :]
