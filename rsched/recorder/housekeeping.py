"""Forgets jobs that ended long ago, keys of triggers past a day and workers that died, makes partitions ahead, moves the mark
behind which open runs are listed, and archives old history.
"""

from __future__ import annotations

from datetime import date
from pathlib import Path

from rsched.core.errors import Unavailable
from rsched.core.jobs.packed import KEYED_FOR_MS
from rsched.ledger import Ledger
from rsched.ledger.retention.parquet import check_archive
from rsched.ledger.recovery.unfinished_runs import FIRST
from rsched.ledger.recovery.unfinished_runs import FIRST_WIDTH_MS, next_width
from rsched.runtime import faults
from rsched.runtime.clock import Clock
from rsched.runtime.log import get_logger
from rsched.runtime.loop import Wake, run_steps
from rsched.store.store import Store

_log = get_logger("rsched.recorder")
_PAGE = 500
# A recovery looks through what was claimed since: at 5,800 a second some 150,000 runs, a few tenths of a second. Of those claimed
# before most have ended; each that has not costs a row more to write.
_LISTED_BEHIND_MS = 20_000
_UNFINISHED_RUNS = 2000
_TRIGGERS = 2000
# By this machine's clock, while what is repeated goes by Redis'.
_KEYS_KEPT_MS = KEYED_FOR_MS + 3_600_000
_INDEX_MS = 20_000
_RARELY_MS = 3_600_000
# Of history that is days old nothing is in a hurry.
_RETAIN_EVERY_MS = 60_000.0


class Housekeeping:
    def __init__(self, store: Store, ledger: Ledger, *, shard: str, clock: Clock, forget_after_s: float) -> None:
        self._store, self._ledger, self._shard, self._clock = store, ledger, shard, clock
        self._forget_after_ms = int(forget_after_s * 1000)
        self._rare_at = clock.boot_ms()
        self._indexed_at = self._rare_at
        self._width_ms, self._looked_to = FIRST_WIDTH_MS, FIRST

    async def step(self) -> bool:
        """The mark by a window; a page of unfinished_runs, old keys and jobs to forget. True when there may be more. Unavailable."""
        now = self._clock.boot_ms()
        if now - self._rare_at >= _RARELY_MS:
            await self._ledger.write.make_partitions_ahead()
            await self._store.processes.forget_silent_workers(silent_ms=_RARELY_MS)
            self._rare_at = now
        if now - self._indexed_at >= _INDEX_MS:
            await self._ledger.index_claims()
            self._indexed_at = now
        listing = await self._list()
        dropping = await self._drop_ended()
        keyed = await self._drop_triggers()
        return await self._forget() or listing or dropping or keyed

    async def _list(self) -> bool:
        """Not past what is recorded, as all that comes late is listed; nor past this clock, should Redis' have leapt ahead."""
        up_to = min(self._clock.wall_ms(), self._ledger.claimed_to(self._shard)) - _LISTED_BEHIND_MS
        if up_to <= 0:
            return False
        began = self._clock.perf_s()
        more = await self._ledger.index_unfinished_runs(self._shard, up_to=up_to, width_ms=self._width_ms)
        self._width_ms = next_width(self._width_ms, took_s=self._clock.perf_s() - began)
        return more

    async def _drop_ended(self) -> bool:
        found = await self._ledger.drop_ended(self._shard, after=self._looked_to, limit=_UNFINISHED_RUNS)
        self._looked_to = found.after
        # Where few have ended, the next round is soon enough.
        return found.dropped * 4 >= _UNFINISHED_RUNS

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
