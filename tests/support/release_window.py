"""Where in its window a run starts: a fixed point per job and occurrence, spread evenly, the same on every node.

scheduled_at stays nominal; only the release comes later. The scripts compute the same with redis.sha1hex.
"""

from __future__ import annotations

import hashlib


def offset_ms(run_id: str, span_ms: int) -> int:
    """0 <= offset < span_ms, from the run id alone; 0 where there is no span."""
    if span_ms <= 0:
        return 0
    return int(hashlib.sha1(run_id.encode(), usedforsecurity=False).hexdigest()[:8], 16) % span_ms


def release_at(run_id: str, due: int, *, window_ms: int, following: int | None, end_ms: int | None) -> int:
    """The instant (ms) at which the run of the occurrence `due` is released.

    Before `following`, the job's next occurrence, and before end_ms, however long the window.
    """
    limits = (limit - due for limit in (following, end_ms) if limit is not None)
    return due + offset_ms(run_id, min([window_ms, *limits]))
