"""Keeps in Redis how far a background restore is, for whoever watches it and for the recorder that goes on after a crash."""

from __future__ import annotations

from rsched.recorder.recovery.background import BackgroundRestore
from rsched.runtime.log import get_logger
from rsched.store.store import Store

_log = get_logger("rsched.recorder")


class Progress:
    """Steps a background restore and writes its progress into the shard."""

    def __init__(self, store: Store, background_restore: BackgroundRestore) -> None:
        self._store, self._restore_rest = store, background_restore
        self._over = False

    async def step(self) -> bool:
        """One page of the background restore; False when all is back. Unavailable."""
        if self._over:
            return False
        more = await self._restore_rest.step()
        if not more:
            # Before it is told: were this to end between, all that is done again finds everything back.
            await self._restore_rest.end()
        known = await self._store.restore.get_progress()
        if known is not None:
            done = known.jobs_total if not more else min(self._restore_rest.seen, known.jobs_total)
            # Refused once the shard is another generation's, whose restoration this says nothing about.
            told = known._replace(
                phase="jobs" if more else "done", jobs_done=done, generation=self._restore_rest.generation
            )
            await self._store.restore.set_progress(told)
        self._over = not more
        if not more:
            _log.warning("all definitions are back", extra={"fields": {"jobs": self._restore_rest.seen}})
        return more
