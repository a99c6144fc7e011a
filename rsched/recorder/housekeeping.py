"""Forgets jobs that ended long ago, drops old keys of triggers, and keeps the ledger's tables and next runs up to date."""

from __future__ import annotations

from datetime import date
from pathlib import Path

from rsched.core.errors import Unavailable
from rsched.core.jobs.packed import KEYED_FOR_MS
from rsched.ledger import Ledger
from rsched.ledger.recovery.unfinished_runs import FIRST
from rsched.ledger.retention.parquet import check_archive
from rsched.ledger.write.next_runs import BEGIN, Place
from rsched.runtime import faults
from rsched.runtime.clock import Clock
from rsched.runtime.log import get_logger
from rsched.runtime.loop import Wake, run_steps
from rsched.store.store import Store

_log = get_logger("rsched.recorder")
_PAGE = 500
_SUPERSEDED = 1000
_NEXT_RUNS = 1000
# What people read as next_run_at is a minute old at most.
_REFRESH_MS = 40_000
# A table of as many dead rows is read in milliseconds.
_VACUUM_MOVES = 20_000
_TRIGGERS = 2000
# By this machine's clock, while what is repeated goes by Redis'.
_KEYS_KEPT_MS = KEYED_FOR_MS + 3_600_000
_RARELY_MS = 3_600_000
# Of history that is days old nothing is in a hurry.
_RETAIN_EVERY_MS = 60_000.0


class Housekeeping:
    """Does what a shard needs now and then; each step() is one bounded piece of each kind of work that is due."""

    def __init__(self, store: Store, ledger: Ledger, *, shard: str, clock: Clock, forget_after_s: float) -> None:
        self._store, self._ledger, self._shard, self._clock = store, ledger, shard, clock
        self._forget_after_ms = int(forget_after_s * 1000)
        self._rare_at = clock.boot_ms()
        self._refreshed_at: float = self._rare_at
        self._vacuumed_at_move = 0
        self._superseded_to = FIRST
        self._next_runs_at: Place | None = None

    async def step(self) -> bool:
        """Does a little of everything: unfinished runs, next runs, old keys and jobs to forget.

        Returns:
            Whether there may be more to do at once.

        Raises:
            Unavailable: A server is away.
        """
        now = self._clock.boot_ms()
        if now - self._rare_at >= _RARELY_MS:
            await self._ledger.write.make_partitions_ahead()
            await self._store.processes.forget_silent_workers(silent_ms=_RARELY_MS)
            self._rare_at = now
        moves = self._ledger.write.moves(self._shard)
        if moves - self._vacuumed_at_move >= _VACUUM_MOVES:
            await self._ledger.recovery.unfinished.vacuum()
            self._vacuumed_at_move = moves
        superseded = await self._drop_superseded()
        refreshing = await self._refresh_next_runs(now)
        keyed = await self._drop_triggers()
        return await self._forget() or superseded or refreshing or keyed

    async def _drop_superseded(self) -> bool:
        page = await self._ledger.recovery.unfinished.drop_superseded(
            self._shard, after=self._superseded_to, limit=_SUPERSEDED
        )
        self._superseded_to = page.after
        # There are hardly any: the next round is soon enough.
        return False

    async def _refresh_next_runs(self, now: float) -> bool:
        """Writes when recurring jobs that came due since the last round are due next; a page of them, at most."""
        if self._next_runs_at is None:
            if now - self._refreshed_at < _REFRESH_MS:
                return False
            self._next_runs_at, self._refreshed_at = BEGIN, now
        page = await self._ledger.next_runs.stale(
            self._shard, now_ms=self._clock.wall_ms(), after=self._next_runs_at, limit=_NEXT_RUNS
        )
        if page.jobs:
            dues = await self._store.jobs.get_due_times(page.jobs)
            await self._ledger.next_runs.write(list(dues.items()))
        self._next_runs_at = page.after
        return self._next_runs_at is not None

    async def _drop_triggers(self) -> bool:
        before = self._clock.wall_ms() - _KEYS_KEPT_MS
        return await self._ledger.recovery.triggers.drop(self._shard, before=before, limit=_TRIGGERS) == _TRIGGERS

    async def _forget(self) -> bool:
        before = self._clock.wall_ms() - self._forget_after_ms
        items = await self._ledger.recovery.unfinished.forgettable(self._shard, before_ms=before, limit=_PAGE)
        if not items:
            return False
        if await self._store.restore.is_in_progress():
            # What an older state has of them is not all ended there yet.
            return False
        # Redis first: what is marked here is never looked at again. It drops only these very versions.
        faults.point("housekeeping.before_forget")
        await self._store.jobs.forget(items)
        faults.point("housekeeping.before_mark")
        await self._ledger.recovery.unfinished.mark_forgotten(items)
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
        self._waits = False
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
        done = await self._ledger.retention.retain(self._folder, days=self._days, swept_on=self._swept_on)
        if done.kind == "archived":
            _log.info("history was archived", extra={"fields": {"name": done.name, "rows": done.rows}})
        elif done.kind == "pruned":
            self._swept_on = date.fromisoformat(done.name)
        elif done.kind == "waits" and not self._waits:
            _log.warning(
                "a day of history can't leave, as sessions hold its tables: end transactions that are open for long",
                extra={"fields": {"day": done.name}},
            )
        self._waits = done.kind == "waits"
        return done.kind in ("left", "archived")
