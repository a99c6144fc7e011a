"""The recorder of one shard: takes its lock, opens it, then records until the lock or the server is lost."""

from __future__ import annotations

from typing import Protocol

import anyio

from rsched.core.errors import Unavailable
from rsched.ledger import Ledger
from rsched.ledger.positions import Position
from rsched.ledger.recovery.generations import RecorderLock
from rsched.recorder.housekeeping import Housekeeping
from rsched.recorder.reconcile.reconciler import Reconciler, keep_reconciled
from rsched.recorder.reconcile.reconciler import RecorderSettingsPart as ReconcilerSettings
from rsched.recorder.recovery.background import BackgroundRestore
from rsched.recorder.recovery.progress import Progress
from rsched.recorder.recovery.recovery import STREAMS, Recovered, Recovery
from rsched.recorder.resync.resync import Resync
from rsched.recorder.stream import StreamRecorder
from rsched.runtime.clock import Clock
from rsched.runtime.log import get_logger
from rsched.runtime.loop import Outage, Wake, run_steps
from rsched.store.store import Store

_log = get_logger("rsched.recorder")
_STANDBY_MS = 500
# How soon a restarted Redis, and a lost lock, are noticed.
_WATCH_MS = 250
# One transaction takes about 1 ms however small; durable creates wait for theirs, run events don't. What a run went
# through meanwhile is merged to one row, so that a burst costs less of the machine that its starts need.
_JOURNAL_LINGER_MS = 100.0
# For those who wait on a connection to see that it was cut; shorter than any pause before a next try.
_CUT_MS = 20
_DAY_MS = 86_400_000.0


class RecorderSettingsPart(ReconcilerSettings, Protocol):
    """What of RecorderSettings is used here."""

    @property
    def batch(self) -> int:
        """The most events of one transaction."""

    @property
    def block_ms(self) -> int:
        """How long a read waits for events (ms)."""

    @property
    def keep_ms(self) -> int:
        """How much of the journal stays behind the position (ms)."""

    @property
    def lease_ms(self) -> int:
        """The longest lease of any worker (ms)."""

    @property
    def forget_after_s(self) -> float:
        """When completed jobs leave Redis, after they were recorded (s)."""


class ShardRecorder:
    """Takes the recorder's lock of a shard, opens the shard, and records until the lock or a server is lost; then again."""

    def __init__(
        self, store: Store, ledger: Ledger, *, shard: str, settings: RecorderSettingsPart, clock: Clock
    ) -> None:
        self._store, self._ledger, self._shard = store, ledger, shard
        self._settings, self._clock = settings, clock
        self._resync, self._gap_found = Resync(store, ledger, shard=shard), Wake()
        self._recovery = Recovery(store, ledger, shard=shard, clock=clock, lease_ms=settings.lease_ms)

    async def run(self) -> None:
        """Until cancelled. A stand-by tries for the lock twice a second."""
        outage, waited = Outage(f"recorder of {self._shard}", _log), False
        while True:
            try:
                async with self._ledger.recovery.generations.acquire_recorder(self._shard) as lock:
                    if lock is not None:
                        waited = False
                        await self._ledger.write.make_partitions_ahead()
                        outage.over()
                        await self._keep_recording(lock)
                        continue
                if not waited:
                    _log.info("another recorder is at work, standing by", extra={"fields": {"shard": self._shard}})
                    waited = True
                await self._clock.sleep(_STANDBY_MS)
            except Unavailable as error:
                await self._clock.sleep(outage.failed(error))

    async def _keep_recording(self, lock: RecorderLock) -> None:
        """Opens and records again and again, while the lock is held. Unavailable when the lock is lost."""
        outage = Outage(f"recovery of {self._shard}", _log)
        # Another recorder may have recorded meanwhile, and found a gap that this one knows nothing of.
        self._resync = Resync(self._store, self._ledger, shard=self._shard)
        while True:
            await lock.check()
            recorders = self._recorders()
            try:
                recovered = await self._recovery.ensure_open(list(recorders.values()))
            except Unavailable as error:
                await self._clock.sleep(outage.failed(error))
                continue
            outage.over()
            await self._record(lock, recovered, recorders)

    def _recorders(self) -> dict[str, StreamRecorder]:
        return {
            stream: StreamRecorder(
                self._store,
                self._ledger,
                shard=self._shard,
                stream=stream,
                clock=self._clock,
                batch=self._settings.batch,
                keep_ms=self._settings.keep_ms,
                linger_ms=_JOURNAL_LINGER_MS if stream == "journal" else 0,
                gap=self._found_gap,
            )
            for stream in STREAMS
        }

    async def _record(self, lock: RecorderLock, recovered: Recovered, recorders: dict[str, StreamRecorder]) -> None:
        """Returns when the shard has to be opened again. Unavailable when the lock is lost."""
        house = Housekeeping(self._store, self._ledger, shard=self._shard, clock=self._clock,
                             forget_after_s=self._settings.forget_after_s)  # fmt: skip
        lost: Unavailable | None = None
        async with anyio.create_task_group() as group:
            for stream, recorder in recorders.items():
                group.start_soon(self._loop, stream, recorder)
            group.start_soon(self._housekeeping, house)
            group.start_soon(self._run_resync)
            group.start_soon(keep_reconciled, self._store, self._ledger, self._shard, self._settings, self._clock)
            if recovered.background_restore is not None:
                group.start_soon(self._restore_rest, recovered.background_restore)
            try:
                await self._watch(lock, recovered.generation)
            except Unavailable as error:
                lost = error
                # Cancelled first, the driver would ask a server that hangs to cancel, and wait for that.
                self._ledger.database.cut_off()
                await self._clock.sleep(_CUT_MS)
            group.cancel_scope.cancel()
        if lost is not None:
            raise lost

    async def _loop(self, stream: str, recorder: StreamRecorder) -> None:
        async def step() -> bool:
            # The read itself waits, so there is always more.
            await recorder.step(block_ms=self._settings.block_ms)
            return True

        await run_steps(step, name=f"recorder of {self._shard} {stream}", clock=self._clock, wake=Wake(), idle_ms=0,
                        log=_log)  # fmt: skip

    async def _housekeeping(self, house: Housekeeping) -> None:
        await run_steps(house.step, name=f"housekeeping of {self._shard}", clock=self._clock, wake=Wake(),
                        idle_ms=5000, log=_log)  # fmt: skip

    async def _found_gap(self, stream: str, before: Position, found: Position) -> None:
        await self._resync.found_gap(stream, before, found)
        self._gap_found.set()

    async def _run_resync(self) -> None:
        await run_steps(self._resync.step, name=f"resync of {self._shard}", clock=self._clock,
                        wake=self._gap_found, idle_ms=_DAY_MS, log=_log)  # fmt: skip

    async def _restore_rest(self, background_restore: BackgroundRestore) -> None:
        """Restores all definitions, then compares everything once, and sleeps, as the other loops never end either.

        The compare finds what a Redis in an older state has that a background restore does not look at.
        """
        progress = Progress(self._store, background_restore)
        compare = Reconciler(
            self._store, self._ledger, shard=self._shard, clock=self._clock, lease_ms=self._settings.lease_ms,
            count=self._store.connection.metrics.repaired,
        )  # fmt: skip

        async def step() -> bool:
            return await progress.step() or await compare.step()

        await run_steps(step, name=f"background_restore of {self._shard}", clock=self._clock, wake=Wake(),
                        idle_ms=_DAY_MS, log=_log)  # fmt: skip

    async def _watch(self, lock: RecorderLock, generation: int) -> None:
        """Returns when Redis is another server, or the marker is another's."""
        while True:
            await self._clock.sleep(_WATCH_MS)
            await lock.check()
            try:
                marker = await self._store.recovery.get_marker()
            except Unavailable:
                continue  # the loops say so
            if marker is None or not marker.matches or marker.state != "open" or marker.generation != generation:
                return
