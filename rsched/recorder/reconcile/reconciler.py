"""The reconciler of one shard: finds and repairs what old faults or hands have left, while everything goes on.

A pass looks at all that the shard holds, page by page, and compares it with the ledger. Each repair looks again, inside its
script, at what it rests on, so that work which goes on meanwhile is never disturbed. What a healthy shard does is never found.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Protocol

from rsched.core.errors import Unavailable
from rsched.ledger import Ledger
from rsched.recorder.reconcile.jobs import JobParts
from rsched.recorder.reconcile.passes import Count, Part, Pass
from rsched.recorder.reconcile.runs import RunParts
from rsched.recorder.reconcile.sets import SetParts
from rsched.runtime.clock import Clock
from rsched.runtime.log import get_logger
from rsched.runtime.loop import Wake, run_steps
from rsched.store.failures import DamagedKey
from rsched.store.reconciliation import ReconcileProgress
from rsched.store.store import Store

_log = get_logger("rsched.recorder")
_TELL_MS = 1000


class RecorderSettingsPart(Protocol):
    """What of RecorderSettings is used here."""

    @property
    def lease_ms(self) -> int:
        """The longest lease of any worker (ms)."""

    @property
    def reconcile_every_s(self) -> float:
        """The rest between two passes (s); 0 for no passes."""

    @property
    def reconcile_pace_ms(self) -> int:
        """The pause after each page (ms)."""


class Reconciler:
    """step() does one bounded piece and then sleeps for pace_ms; a pass that a server interrupts goes on where it was."""

    def __init__(
        self, store: Store, ledger: Ledger, *, shard: str, clock: Clock, lease_ms: int, pace_ms: float = 0,
        count: Count = lambda kind, n: None, write: bool = True,
    ) -> None:  # fmt: skip
        """lease_ms: a full lease. count: is told of everything that was found, by kind. write False: only finds."""
        self._store, self._ledger, self._shard, self._clock = store, ledger, shard, clock
        self._lease_ms, self._pace_ms, self._count, self._write = lease_ms, pace_ms, count, write
        self._parts: list[tuple[str, Callable[[], Part]]] = []
        self._part: Part | None = None
        self._pass = self._new()
        self._progress = ReconcileProgress()
        self._told_at = 0

    def _new(self) -> Pass:
        return Pass(
            self._store, self._ledger, shard=self._shard, clock=self._clock, lease_ms=self._lease_ms,
            count=self._count, write=self._write,
        )  # fmt: skip

    @property
    def found(self) -> Counter[str]:
        """How many of each kind the present or last pass has found, and repaired if it may write."""
        return self._pass.found

    @property
    def unsure(self) -> int:
        """How many things could not be judged, because the ledger was too far behind; the next pass looks again."""
        return self._pass.unsure

    @property
    def phase(self) -> str:
        """The name of the part that is next; empty when the pass is over."""
        return self._parts[0][0] if self._parts else ""

    async def run_pass(self) -> Counter[str] | None:
        """One whole pass from the beginning; None while a restoration is at work. Unavailable."""
        self._parts, self._part = [], None
        if not await self._begin():
            return None
        while await self.step():
            pass
        return self.found

    async def step(self) -> bool:
        """True while the pass has more. Unavailable: the next step goes on with the part that was interrupted."""
        if not self._parts and not await self._begin():
            return False
        if self._part is None:
            self._part = self._parts[0][1]()
        part = self._part
        # An interrupted part begins anew.
        self._part = None
        ended = True
        try:
            async for _ in part:
                ended = False
                break
        except Exception as error:
            if isinstance(error, Unavailable) and not isinstance(error, DamagedKey):
                raise
            self._pass.unsure += 1
            fields = {"shard": self._shard, "part": self.phase, "error": str(error)}
            _log.error("a part of the reconciliation failed", extra={"fields": fields})
        if ended:
            self._parts.pop(0)
        else:
            self._part = part
        await self._tell(last=not self._parts)
        if self._pace_ms:
            await self._clock.sleep(self._pace_ms)
        return bool(self._parts)

    async def _begin(self) -> bool:
        """False while a restoration is at work: what is still missing is not an inconsistency."""
        if await self._store.restore.is_in_progress():
            return False
        self._pass = self._new()
        jobs, runs, sets = JobParts(self._pass), RunParts(self._pass), SetParts(self._pass)
        # What the ledger can bring back comes before what is dropped for want of it.
        self._parts = [
            ("due sets and definitions", jobs.partitions),
            ("definitions of the ledger", jobs.missing),
            ("runs of the ledger", runs.missing),
            ("entries", sets.entries),
            ("queues", sets.queues),
            ("runs", runs.records),
            ("open runs", sets.open),
            ("catch-up ranges", sets.ranges),
            ("workers and repeats", sets.kept),
            ("calendars", sets.calendars),
        ]
        before = await self._store.reconciliation.get_progress()
        self._progress = before._replace(phase=self.phase, found=0, started_at=await self._store.clock.read())
        return True

    async def _tell(self, *, last: bool) -> None:
        now = self._clock.boot_ms()
        if not self._write or (not last and now - self._told_at < _TELL_MS):
            return
        self._told_at = now
        self._progress = self._progress._replace(phase=self.phase, found=self.found.total())
        if last:
            self._progress = self._progress._replace(
                passes=self._progress.passes + 1, ended_at=await self._store.clock.read()
            )
            if self.found:
                _log.warning("inconsistencies were repaired", extra={"fields": {"shard": self._shard, **self.found}})
        await self._store.reconciliation.set_progress(self._progress)


async def keep_reconciled(
    store: Store, ledger: Ledger, shard: str, settings: RecorderSettingsPart, clock: Clock
) -> None:
    """Passes with a rest before each, until cancelled. Returns at once where the rest is 0."""
    rest_ms = settings.reconcile_every_s * 1000
    if not rest_ms:
        return
    reconciler = Reconciler(
        store, ledger, shard=shard, clock=clock, lease_ms=settings.lease_ms, pace_ms=settings.reconcile_pace_ms,
        count=store.connection.metrics.repaired,
    )  # fmt: skip
    await clock.sleep(rest_ms)
    await run_steps(reconciler.step, name=f"reconciler of {shard}", clock=clock, wake=Wake(), idle_ms=rest_ms, log=_log)
