"""Forgets jobs that ended long ago and workers that died, makes partitions ahead, and archives old history."""

from __future__ import annotations

from datetime import date
from pathlib import Path

from rsched.core.errors import Unavailable
from rsched.ledger import Ledger
from rsched.ledger.archive import check_archive
from rsched.runtime import faults
from rsched.runtime.clock import Clock
from rsched.runtime.log import get_logger
from rsched.runtime.loop import Wake, run_steps
from rsched.store.store import Store

_log = get_logger("rsched.recorder")
_PAGE = 500
_RARELY_MS = 3_600_000
# Of history that is days old nothing is in a hurry.
_RETAIN_EVERY_MS = 60_000.0


class Housekeeping:
    def __init__(self, store: Store, ledger: Ledger, *, shard: str, clock: Clock, forget_after_s: float) -> None:
        self._store, self._ledger, self._shard, self._clock = store, ledger, shard, clock
        self._forget_after_ms = int(forget_after_s * 1000)
        self._rare_at = clock.boot_ms()

    async def step(self) -> bool:
        """One page of jobs to forget; True when there may be more. Unavailable."""
        now = self._clock.boot_ms()
        if now - self._rare_at >= _RARELY_MS:
            await self._ledger.make_partitions_ahead()
            await self._store.leave_silent(silent_ms=_RARELY_MS)
            self._rare_at = now
        before = self._clock.wall_ms() - self._forget_after_ms
        items = await self._ledger.forgettable(self._shard, before_ms=before, limit=_PAGE)
        if not items:
            return False
        # Redis first: what is marked here is never looked at again. It drops only these very versions.
        faults.point("housekeeping.before_forget")
        await self._store.forget(items)
        faults.point("housekeeping.before_mark")
        await self._ledger.mark_forgotten(items)
        faults.point("housekeeping.after_mark")
        return len(items) == _PAGE


class Retention:
    """A loop of its own, one a process: an export takes long, and neither recording nor forgetting waits for it."""

    def __init__(self, ledger: Ledger, *, archive_dir: str, retention_days: int, clock: Clock) -> None:
        """archive_dir "": nothing leaves Postgres. retention_days 0: history stays for ever. Misconfigured."""
        self._ledger, self._days, self._clock = ledger, retention_days, clock
        self.wake = Wake()
        self._folder: Path | None = None
        self._swept_on: date | None = None
        if retention_days and archive_dir:
            self._folder = check_archive(archive_dir)
        elif retention_days:
            _log.info(
                "history past its retention stays in Postgres: RSCHED_RECORDER_ARCHIVE_DIR names no folder to export it to",
                extra={"fields": {"retention_days": retention_days}},
            )

    async def run(self) -> None:
        """Until cancelled."""

        async def guarded() -> bool:
            try:
                return await self.step()
            except Unavailable:
                raise
            except Exception:  # noqa: BLE001 - whatever is found in old history must not end the recorder
                _log.exception("history can't be archived; nothing of it is dropped")
                return False

        await run_steps(
            guarded, name="retention", clock=self._clock, wake=self.wake, idle_ms=_RETAIN_EVERY_MS, log=_log
        )

    async def step(self) -> bool:
        """Moves or exports one day, or sweeps once a day what had been kept. True when there may be more. Unavailable."""
        if self._folder is None:
            return False
        done = await self._ledger.retain(self._folder, days=self._days, swept_on=self._swept_on)
        if done.kind == "archived":
            _log.info("history was archived", extra={"fields": {"name": done.name, "rows": done.rows}})
        elif done.kind == "pruned":
            self._swept_on = date.fromisoformat(done.name)
        return done.kind in ("left", "archived")
