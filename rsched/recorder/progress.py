"""Tells in Redis how far a rebuild is, so that anybody can watch it and the next recorder knows whether to go on with it."""

from __future__ import annotations

from rsched.recorder.rebuild import Rebuild
from rsched.runtime.log import get_logger
from rsched.store.store import Store

_log = get_logger("rsched.recorder")


class Progress:
    def __init__(self, store: Store, rebuild: Rebuild) -> None:
        self._store, self._rebuild = store, rebuild
        self._over = False

    async def step(self) -> bool:
        """One page of the rebuild; False when all is back. Unavailable."""
        if self._over:
            return False
        more = await self._rebuild.step()
        if not more:
            # Before it is told: were this to end between, all that is done again finds everything back.
            await self._rebuild.end()
        known = await self._store.repair()
        if known is not None:
            done = known.jobs_total if not more else min(self._rebuild.seen, known.jobs_total)
            # Refused once the shard is another generation's, whose restoration this says nothing about.
            told = known._replace(phase="jobs" if more else "done", jobs_done=done, generation=self._rebuild.generation)
            await self._store.set_repair(told)
        self._over = not more
        if not more:
            _log.warning("all definitions are back", extra={"fields": {"jobs": self._rebuild.seen}})
        return more
