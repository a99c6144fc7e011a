"""Writes a shard's definitions back from the ledger: what is due soonest before the shard opens, the rest while it works."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

import anyio

from rsched.core.errors import RschedError, Unavailable
from rsched.ledger import Ledger
from rsched.ledger.recovery.pages import LedgerJob, entries_of
from rsched.recorder.due_times import CLAIMED_AHEAD_MS, DueTimes, Item
from rsched.recorder.recovery.stale_dues import Claimed
from rsched.recorder.recovery.triggers import KeyedTriggers
from rsched.runtime import faults
from rsched.runtime.log import get_logger
from rsched.store.store import Store

_log = get_logger("rsched.recorder")
# What is due by then is back before the first claim.
SOON_MS = 10_000
_NEXT_MS = 600_000
_PAGE = 2000
# Of one script: about 3 ms of Redis, which claims wait for.
_CHUNK = 300
# So that Redis has the next one when it is done with one, while this process reads.
_AT_ONCE = 2
# Past every job id.
_LAST = "k"


class BackgroundRestore:
    """Restores definitions page by page, those due soonest first.

    The version that Redis has decides, so that a page too many changes nothing. Nothing is written once the shard was opened
    under a later generation, since what is due is not the same any more.
    """

    def __init__(self, store: Store, ledger: Ledger, *, shard: str, generation: int) -> None:
        self._store, self._ledger, self._shard = store, ledger, shard
        self.generation = generation
        self._dues: DueTimes | None = None
        self._now = 0
        self._sooner: AsyncIterator[list[LedgerJob]] | None = None
        self._after = ""
        self._read: list[LedgerJob] = []
        self._ahead: list[Item] = []
        self._keyed = KeyedTriggers(store, ledger, shard=shard, generation=generation)
        # Only keyed triggers are left.
        self._last = False
        self.done = False
        self.restored = self.seen = 0

    async def claimed(self) -> int:
        """Moves due times that are older than what the ledger has as claimed; how many. Before soon(). Unavailable."""
        dues = await self._prepared()
        until = self._now + CLAIMED_AHEAD_MS
        return await Claimed(self._store, self._ledger, dues=dues, until=until, restore=self._restore).pass_over()

    async def soon(self) -> int:
        """Restores the jobs of open runs, which fetch and reap look at, and what is due within seconds; how many. Unavailable."""
        dues = await self._prepared()
        async for runs in self._ledger.recovery.unfinished.pages(self._shard, limit=_PAGE):
            page = await self._ledger.recovery.pages.jobs_by_id(self._shard, sorted({run[:15] for run, _ in runs}))
            await self._restore(await dues.of(page))
        async for page in self._soonest(dues, since=None, until=self._now + SOON_MS):
            await self._restore(await dues.of(page))
            faults.point("recovery.in_jobs")
        return self.restored

    async def step(self) -> bool:
        """Restores a page; meanwhile works out when the jobs of the next one are due, and reads the one after it.

        Returns:
            False when all definitions, and last the keys of triggers, have been restored.

        Raises:
            Unavailable: A server does not answer; the next step goes on with the same page.
        """
        if self.done:
            return False
        if self._last:
            self.done = not await self._keyed.step()
            return not self.done
        dues = await self._prepared()
        read: list[LedgerJob] = []
        ahead: list[Item] = []
        failed: Unavailable | None = None

        async def reading() -> None:
            read.extend(await self._next_page(dues))

        async def judging() -> None:
            ahead.extend(await dues.of(self._read))

        try:
            async with anyio.create_task_group() as group:
                # In this order: both servers are at it while this process is.
                group.start_soon(reading)
                group.start_soon(self._restore, self._ahead)
                group.start_soon(judging)
        except* Unavailable as errors:
            failed = _first(errors)
        if failed is not None:
            # Pages that were read and not written come again.
            self._sooner, self._after, self._read, self._ahead = None, "", [], []
            raise failed
        faults.point("recovery.in_later_jobs")
        self._read, self._ahead = read, ahead
        self._last = not read and not ahead
        return True

    async def end(self) -> None:
        """All is back. Unavailable."""
        await self._ledger.recovery.pages.drop_watermarks(self._shard, generation=self.generation)

    async def _next_page(self, dues: DueTimes) -> list[LedgerJob]:
        """None at the end."""
        if not self._after:
            if self._sooner is None:
                self._sooner = self._soonest(dues, since=self._now + SOON_MS, until=self._now + _NEXT_MS)
            async for page in self._sooner:
                return page
        page = await self._ledger.recovery.pages.jobs_after(self._shard, after=self._after, limit=_PAGE)
        self._after = page[-1].job_id if page else self._after
        return page

    async def _restore(self, items: Sequence[Item]) -> None:
        room = anyio.Semaphore(_AT_ONCE)

        async def write(some: Sequence[Item]) -> None:
            async with room:
                self.restored += await self._store.restore.put_jobs(some, generation=self.generation)

        failed: Unavailable | None = None
        try:
            async with anyio.create_task_group() as group:
                for i in range(0, len(items), _CHUNK):
                    group.start_soon(write, items[i : i + _CHUNK])
        except* Unavailable as errors:
            failed = _first(errors)
        if failed is not None:
            raise failed
        self.seen += len(items)

    async def _prepared(self) -> DueTimes:
        if self._dues is None:
            self._now = await self._store.clock.read()
            calendars: dict[str, dict[str, list[str]]] = {}
            for team, name, _, body in await self._ledger.recovery.pages.calendars(self._shard):
                calendars.setdefault(team, {})[name] = entries_of(body)
            await self._ledger.recovery.pages.keep_watermarks(self._shard, generation=self.generation)
            marks = await self._ledger.recovery.pages.kept_watermarks(self._shard)
            self._dues = DueTimes(self._ledger, marks=marks, calendars=calendars, now=self._now)
        return self._dues

    async def _soonest(self, dues: DueTimes, *, since: int | None, until: int) -> AsyncIterator[list[LedgerJob]]:
        """Pages of active jobs that are due after since (None: however long ago) and up to until."""
        once = (0, "") if since is None else (since, _LAST)
        while page := await self._ledger.recovery.pages.once_until(self._shard, until=until, after=once, limit=_PAGE):
            yield page
            if len(page) < _PAGE:
                break
            once = int(page[-1].value.split(b"|", 7)[6]), page[-1].job_id
        # What came due while the shard was closed, too; longer ago it is for the misfire policy, and can wait.
        begins = self._now - CLAIMED_AHEAD_MS if since is None else since
        for arg in await self._schedules_due(dues, begins=begins, until=until):
            after = ""
            while page := await self._ledger.recovery.pages.jobs_of_schedule(
                self._shard, arg, after=after, limit=_PAGE
            ):
                yield page
                if len(page) < _PAGE:
                    break
                after = page[-1].job_id
        for every in await self._ledger.recovery.pages.intervals(self._shard):
            for phases in _phases(begins, until, every=every):
                key = (-1, "")
                while page := await self._ledger.recovery.pages.jobs_of_interval(
                    self._shard, every=every, phases=phases, after=key, limit=_PAGE
                ):
                    yield page
                    if len(page) < _PAGE:
                        break
                    key = _phase_of(page[-1]), page[-1].job_id

    async def _schedules_due(self, dues: DueTimes, *, begins: int, until: int) -> list[str]:
        found = []
        for arg, value in await self._ledger.recovery.pages.schedules(self._shard):
            try:
                due = dues.nexts(arg, value).after(begins)
            except (RschedError, ValueError, KeyError, ArithmeticError):
                continue  # its jobs come with the rest, and are marked invalid there
            if due is not None and due <= until:
                found.append((due, arg))
        return [arg for _, arg in sorted(found)]


def _phases(begins: int, until: int, *, every: int) -> list[tuple[int, int]]:
    """The remainders by `every` of the instants after begins up to until, as ranges."""
    if until - begins >= every:
        return [(0, every - 1)]
    first, last = (begins + 1) % every, until % every
    return [(first, last)] if first <= last else [(first, every - 1), (0, last)]


def _phase_of(job: LedgerJob) -> int:
    anchor, _, every = job.value.split(b"|", 7)[6].partition(b",")
    return int(anchor) % int(every)


def _first(group: BaseExceptionGroup[BaseException]) -> Unavailable:
    return next(e for e in _flat(group) if isinstance(e, Unavailable))


def _flat(group: BaseExceptionGroup[BaseException]) -> list[BaseException]:
    return [e for one in group.exceptions for e in (_flat(one) if isinstance(one, BaseExceptionGroup) else [one])]
