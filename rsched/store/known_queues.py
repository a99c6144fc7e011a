"""Which queues and queue keys the gauges look at: those that workers serve or runs wait in, learnt from one read for the next."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rsched.core.jobs.packed import unpack_run

MAX_QUEUES = 40
MAX_QUEUE_KEYS = 300
_PRIORITIES = ("0", "1", "2")
# A queue that nothing was seen of in so many reads is forgotten.
_FORGET_READS = 720


class KnownQueues:
    """Keeps a bounded set of queues, and the queue keys to look at in the next read."""

    def __init__(self) -> None:
        """Begins without any."""
        self._seen: dict[str, int] = {}
        self._reads = 0
        self.queue_keys: tuple[str, ...] = ()

    @property
    def queues(self) -> list[str]:
        """The queues to look at in the next read."""
        return list(self._seen)

    def learn(self, workers: Mapping[bytes, bytes], sample: Any, *, now: int) -> int:
        """Notes the queues that are served or have runs.

        Args:
            workers: What the key `workers` has.
            sample: Some runs with their packed records.
            now: When both were read (ms by Redis' clock).

        Returns:
            How many workers are live.
        """
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
        for queue in [q for q, read in self._seen.items() if read < self._reads - _FORGET_READS]:
            del self._seen[queue]
        return live

    def _note(self, *queues: str) -> None:
        for queue in queues:
            if queue and (queue in self._seen or len(self._seen) < MAX_QUEUES):
                self._seen[queue] = self._reads

    def choose(self, ready: Mapping[str, Any], depth: Mapping[str, int]) -> None:
        """Chooses the queue keys of the next read: the longest known ones again, then what else is ready.

        Args:
            ready: Queue -> teams that have work in it, or the error that was had in place of them.
            depth: Queue key -> how many runs wait.
        """
        longest = sorted(depth, key=lambda queue_key: -depth[queue_key])[: MAX_QUEUE_KEYS // 2]
        queue_keys = dict.fromkeys(longest)
        for queue, teams in ready.items():
            if isinstance(teams, Exception):
                continue
            for team in teams:
                queue_keys.update(dict.fromkeys(f"{queue}:{team.decode()}:{p}" for p in _PRIORITIES))
        self.queue_keys = tuple(queue_keys)[:MAX_QUEUE_KEYS]
