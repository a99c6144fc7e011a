"""A shard's state: on which server and under which generation it is open, and how a recovery opens it again.

Authority: the marker, which every script reads first: a shard is open on exactly one server process under one generation. Only
the recorder writes it; the generation and the fence that it brings come from Postgres. Errors: ShardClosed where a newer
recovery has begun meanwhile, Unavailable.
"""

from __future__ import annotations

from typing import NamedTuple

from rsched.store.connection import Part


class Marker(NamedTuple):
    """The marker of a shard.

    Attributes:
        generation: The generation under which it was opened last.
        state: open, closed or recovering.
        run_id: The server process that it was opened on.
        repl_id: That server's replication id.
        closed_at: When (ms) it was closed, 0 for never.
        recovery_grace_until: When (ms) the recovery grace period ends.
        lost: Whether its last recovery found writes missing.
        matches: Whether the marker's server is the one that answers.
    """

    generation: int
    state: str
    run_id: str
    repl_id: str
    closed_at: int
    recovery_grace_until: int
    lost: bool
    matches: bool


class Recovery(Part):
    """Reads the marker, closes a shard and opens it again."""

    async def get_marker(self) -> Marker | None:
        """Returns the marker, None where the shard was never opened or Redis was emptied."""
        fields = await self._redis.ask(self._redis.client.hgetall(self._redis.keys.marker))
        if not fields:
            return None
        marker = {name.decode(): value.decode() for name, value in fields.items()}
        server = await self._redis.ask(self._redis.client.info("server"))
        replication = await self._redis.ask(self._redis.client.info("replication"))
        matches = marker.get("run_id") == server["run_id"] and marker.get("repl_id") == replication["master_replid"]
        return Marker(
            int(marker.get("generation", 0)),
            marker.get("state", "closed"),
            marker.get("run_id", ""),
            marker.get("repl_id", ""),
            int(marker.get("closed_at", 0)),
            int(marker.get("recovery_grace_until", 0)),
            marker.get("lost") == "1",
            matches,
        )

    async def is_open(self) -> bool:
        """Returns whether the shard is open on the server that answers."""
        marker = await self.get_marker()
        return marker is not None and marker.matches and marker.state == "open"

    async def get_fence(self) -> int:
        """Returns the shard's fence counter."""
        return int(await self._redis.ask(self._redis.client.get(self._redis.keys.fence)) or 0)

    async def close(self) -> None:
        """Closes the shard before its server is stopped as planned."""
        await self._redis.call("close")

    async def begin(
        self,
        generation: int,
        *,
        fence: int,
        lost: bool = False,
        whole: bool = False,
        seen_after_ms: int = 120_000,
    ) -> bool:
        """Begins a recovery.

        Args:
            generation: The new generation.
            fence: What the fence counter must be at least.
            lost: Whether Redis lost writes. Then, and wherever the server is another than at the last recovery, there may be
                workers that it does not know: what was due before waits one full lease.
            whole: Whether it was closed as planned and never opened since, so that there are no such workers.
            seen_after_ms: A worker not heard of for so long before the close is not waited for.

        Returns:
            False where a newer generation has begun meanwhile.
        """
        self._redis.generation = str(generation)
        reply = await self._redis.call(
            "begin_recovery", fence=fence, seen_after_ms=seen_after_ms, lost=int(lost), whole=int(whole)
        )
        return bool(reply[0] == "ok")

    async def restage(self, cursor: int, *, lease_ms: int, count: int = 200) -> int:
        """Puts one page of waiting runs back to staged or retries.

        Args:
            cursor: 0 at first, then what the page before returned.
            lease_ms: A worker's lease.
            count: About how many.

        Returns:
            The next cursor, 0 at the end.
        """
        reply = await self._redis.call("restage", cursor=str(cursor), count=count, lease_ms=lease_ms)
        return int(reply[2])

    async def finish(self, *, recovery_grace_ms: int) -> None:
        """Ends the recovery: the shard is open.

        Args:
            recovery_grace_ms: A worker's lease, where Redis does not know theirs.
        """
        await self._redis.call("finish_recovery", recovery_grace_ms=recovery_grace_ms)

    async def get_load_level(self) -> int | None:
        """Returns the load-shedding level in force, None where the shard has no marker."""
        generation, level = await self._redis.ask(
            self._redis.client.hmget(self._redis.keys.marker, ["generation", "load_level"])
        )
        return None if generation is None else int(level or 0)

    async def set_load_level(self, level: int) -> None:
        """Sets how far work is cut back for want of memory: 0 not at all, 1 no new jobs, 2 no claims and fetches either."""
        await self._redis.call("set_load_level", step=str(level))
