"""What the reconciler reads of a shard, page by page, and how far its passes are.

Authority: none; what it reads may have changed by the time that a verb of `run_repair` or `job_repair` looks again. Keys that
other hands wrote may hold anything, and nothing here stops at that. Errors: ShardClosed, Unavailable.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

from rsched.core.ids import JobId
from rsched.store.connection import Part
from rsched.store.failures import DamagedKey

KeyKind = Literal["occurrences", "active", "queue", "ready"]
_PATTERNS = {"occurrences": "occurrences:*", "active": "active:*", "queue": "q:*", "ready": "ready:*"}


class ReconcileProgress(NamedTuple):
    """How far the recorder's own passes are.

    Attributes:
        passes: How many have ended.
        phase: What the present one looks at, "" between passes.
        found: What the present one has found.
        started_at: When the present or last one began (ms by Redis' clock), 0 for none.
        ended_at: When the last one ended (ms by Redis' clock), 0 for none.
    """

    passes: int = 0
    phase: str = ""
    found: int = 0
    started_at: int = 0
    ended_at: int = 0


class Reconciliation(Part):
    """Reads what the reconciler compares, and keeps its progress."""

    async def read_names(self, kind: KeyKind, *, cursor: int, count: int = 1000) -> tuple[int, list[str]]:
        """Reads a page of the keys of a kind.

        Args:
            kind: occurrences, active, queue or ready.
            cursor: 0 at first, then what the page before returned.
            count: How many keys of the server to look at.

        Returns:
            The next cursor, 0 at the end, and what follows the kind in each key.
        """
        stem = self._redis.keys.marker.removesuffix("shard")
        pattern = stem + _PATTERNS[kind]
        for special in "[]?\\":
            pattern = pattern.replace(special, "\\" + special)
        following, page = await self._redis.ask(self._redis.client.scan(cursor, match=pattern, count=count))
        start = len(stem) + len(_PATTERNS[kind]) - 1
        return int(following), sorted(key.decode(errors="replace")[start:] for key in page)

    async def read_values(self, partition: int, *, cursor: int, count: int) -> tuple[int, list[tuple[bytes, bytes]]]:
        """Reads a page of a partition's jobs.

        Args:
            partition: Which one.
            cursor: 0 at first, then what the page before returned.
            count: About how many.

        Returns:
            The next cursor, 0 at the end, and (job, packed value, a body over 1 KB left out) of each.
        """
        following, page = await self._redis.ask(
            self._redis.client.hscan(self._redis.keys.jobs(partition), cursor, count=count)
        )
        return int(following), list(page.items())

    async def have_due_times(self, partition: int, jobs: Sequence[JobId]) -> list[bool]:
        """Returns whether each of a partition's jobs has a due time."""
        return await self._have_scores(self._redis.keys.due(partition), jobs)

    async def have_pause_ends(self, jobs: Sequence[JobId]) -> list[bool]:
        """Returns whether each of the jobs has an end of its pause."""
        return await self._have_scores(self._redis.keys.pauses, jobs)

    async def _have_scores(self, key: str, jobs: Sequence[JobId]) -> list[bool]:
        scores = await self._redis.ask(self._redis.client.zmscore(key, list[str](jobs))) if jobs else []
        return [score is not None for score in scores]

    async def inspect_occurrences(self, schedule: str) -> tuple[list[tuple[str, int]], str]:
        """Reads an occurrence cache.

        Args:
            schedule: The schedule's id.

        Returns:
            Its (member, score) in order, and the digest that `JobRepair.drop_occurrences` asks for.
        """
        flat = (await self._redis.call("inspect_occurrences", schedule=schedule))[2]
        entries = [
            (member.decode(errors="replace"), int(float(score)))
            for member, score in zip(flat[::2], flat[1::2], strict=True)
        ]
        return entries, hashlib.sha1(b" ".join(flat), usedforsecurity=False).hexdigest()

    async def get_progress(self) -> ReconcileProgress:
        """Returns how far the recorder's own passes are."""
        try:
            fields: Any = await self._redis.ask(self._redis.client.hgetall(self._redis.keys.reconcile))
        except DamagedKey:
            return ReconcileProgress()
        told = {name.decode(): value.decode() for name, value in fields.items()}
        numbers = (int(told.get(name, 0)) for name in ReconcileProgress._fields[2:])
        return ReconcileProgress(int(told.get("passes", 0)), told.get("phase", ""), *numbers)

    async def set_progress(self, progress: ReconcileProgress) -> None:
        """Notes how far the recorder's own passes are."""
        told: dict[Any, Any] = {name: str(value) for name, value in progress._asdict().items()}
        await self._redis.ask(self._redis.client.hset(self._redis.keys.reconcile, mapping=told))
