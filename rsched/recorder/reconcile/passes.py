"""What the parts of one pass of the reconciler share: the servers, the counts, and when the ledger can be believed."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable

from rsched.core.ids import JobId
from rsched.core.schedule import schedule as schedules
from rsched.ledger import Ledger
from rsched.ledger.recovery.pages import entries_of
from rsched.recorder.due_times import DueTimes
from rsched.recorder.ledger_trust import LOOK_MS, Mark, behind, mark_of
from rsched.runtime.clock import Clock
from rsched.store.findings import Finding
from rsched.store.store import Store

Count = Callable[[str, int], None]
# A part yields after each bounded piece of work.
Part = AsyncIterator[None]
# How many items a page asks for: under 2 ms of Redis.
PAGE = 100
# Of what is only read, and of the ledger.
LARGE_PAGE = 500
_PATIENCE_MS = 10_000


class Pass:
    """lease_ms: a full lease. write False: only finds. found: how many of each kind in this pass.

    schedules: of each calendar that a job was seen with, one such job.
    """

    def __init__(
        self, store: Store, ledger: Ledger, *, shard: str, clock: Clock, lease_ms: int, count: Count, write: bool
    ) -> None:
        self.store, self.ledger, self.shard, self.clock = store, ledger, shard, clock
        self.lease_ms, self.write = lease_ms, write
        self._count = count
        self.found: Counter[str] = Counter()
        self.unsure = 0
        self.schedules: dict[str, JobId] = {}
        # What a pass that may write would have brought back from the ledger before it looks for what depends on it.
        self.would_be_back: set[str] = set()

    def saw(self, kind: str, n: int = 1) -> None:
        """Counts n findings of a kind."""
        if n:
            self.found[kind] += n
            self._count(kind, n)

    def saw_all(self, found: Iterable[Finding]) -> None:
        """Counts findings as the scripts return them, except those that a pass which may write would have repaired before."""
        known = (kind for kind, name in found if name.partition("|")[0] not in self.would_be_back)
        for kind, n in Counter(known).items():
            self.saw(kind, n)

    async def mark(self) -> Mark:
        """The last entries of the journal: what Redis holds now is in the ledger once these are."""
        return await mark_of(self.store)

    async def recorded(self, mark: Mark) -> bool:
        """Waits a while until the ledger has the journal up to the mark.

        Returns:
            False where the ledger does not come to it in time, or came to it past a gap whose resync is not over: what ended in
            the gap is still unfinished in the ledger.
        """
        began = self.clock.boot_ms()
        while await behind(self.ledger, shard=self.shard, mark=mark):
            if self.clock.boot_ms() - began > _PATIENCE_MS:
                return False
            await self.clock.sleep(LOOK_MS)
        # Last: the recorder sets it before it records past a gap.
        return not await self.store.resync.is_requested()

    async def calendars(self) -> dict[str, schedules.Calendars]:
        """The teams' calendars of exclusions."""
        found: dict[str, dict[str, list[str]]] = {}
        for team, name, _, body in await self.ledger.recovery.pages.calendars(self.shard):
            found.setdefault(team, {})[name] = entries_of(body)
        return dict(found)

    async def due_times(self) -> DueTimes:
        """Returns what works out when jobs are due, as of now."""
        return DueTimes(
            self.ledger,
            marks=await self.ledger.recovery.generations.watermarks(self.shard),
            calendars=await self.calendars(),
            now=await self.store.clock.read(),
        )
