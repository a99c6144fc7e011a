"""What a Redis in an older state still has as due, though it was claimed, changed or deleted since, as the ledger knows.

Before the recovery: the first claim would make the same runs again. An occurrence about which the ledger knows nothing stays due.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from rsched.core.ids import PARTITIONS, JobId, is_job_id
from rsched.ledger import Ledger
from rsched.ledger.recovery.compare import KnownJob, head_or_none, order
from rsched.recorder.due_times import DueTimes, Item
from rsched.runtime import faults
from rsched.store.partitions import DueEntry
from rsched.store.store import Store

# Looked at at once: so many partitions, of each so many jobs.
_PARTITIONS = 64
_PAGE = 50
# Of one script: about 3 ms of Redis.
_CHUNK = 300
Restore = Callable[[Sequence[Item]], Awaitable[None]]


class Claimed:
    """until: nothing that is due later (ms) was claimed. restore: writes jobs back where Redis has an earlier version."""

    def __init__(self, store: Store, ledger: Ledger, *, dues: DueTimes, until: int, restore: Restore) -> None:
        self._store, self._ledger, self._dues = store, ledger, dues
        self._until, self._restore = until, restore
        self._back: set[str] = set()
        self.moved = 0

    async def pass_over(self) -> int:
        """Moves due times past what the ledger has as claimed, skipped or in a catch-up range.

        Jobs that are due, or whose pause ends, by then and that the ledger has in a later version are restored first.

        Returns:
            How many due times were moved.

        Raises:
            Unavailable: A server does not answer.
        """
        for first in range(0, PARTITIONS, _PARTITIONS):
            skips = dict.fromkeys(range(first, min(first + _PARTITIONS, PARTITIONS)), 0)
            while skips:
                pages = await self._store.partitions.read_due_entries(skips, until=self._until, count=_PAGE)
                moved = await self._settle([entry for page in pages.values() for entry in page])
                # What stays comes first when the set is read again: the others go behind it, or away.
                skips = {
                    p: skips[p] + sum(entry.job not in moved for entry in page)
                    for p, page in pages.items()
                    if len(page) == _PAGE
                }
                faults.point("recovery.in_dues")
        await self._pauses()
        return self.moved

    async def _settle(self, entries: Sequence[DueEntry]) -> set[str]:
        """The jobs whose due entry does not stay as it is."""
        heads = {e.job: head for e in entries if is_job_id(e.job) and (head := head_or_none(e.value)) is not None}
        known = await self._ledger.recovery.compare.jobs(list(heads))
        later = await self._bring_back([job for job in known if order(known[job]) > order(heads[JobId(job)])], known)
        same = [
            (known[e.job].job(e.job), e.due)
            for e in entries
            if e.job in known and order(known[e.job]) == order(heads[e.job])
        ]
        found = {job: due for job, due, _ in await self._dues.onward(same)}
        moves = [(j, heads[j].version, due, found[j]) for (j, _), due in same if found.get(j, due) != due]
        moved: set[str] = set()
        for i in range(0, len(moves), _CHUNK):
            moved.update(await self._store.restore.move_due_times(moves[i : i + _CHUNK]))
        self.moved += len(moved)
        return moved.union(later)

    async def _bring_back(self, later: Sequence[str], known: dict[str, KnownJob]) -> list[str]:
        """Those of the jobs that were not brought back before."""
        found = [job for job in later if job not in self._back]
        self._back.update(found)
        if forgotten := [JobId(job) for job in found if known[job].forgotten]:
            # They end in Redis once more; housekeeping forgets them again.
            await self._ledger.recovery.pages.remember(forgotten)
        if found:
            await self._restore(await self._dues.of([known[job].job(JobId(job)) for job in found]))
        return found

    async def _pauses(self) -> None:
        """A pause that ended meanwhile would end once more."""
        skip = 0
        while page := await self._store.pauses.list_ending(skip=skip, until=self._until, count=_PAGE):
            jobs = [job for job in page if is_job_id(job)]
            heads = {
                job: head_or_none(value)
                for job, value in zip(jobs, await self._store.jobs.read_packed(jobs), strict=True)
            }
            known = await self._ledger.recovery.compare.jobs(jobs)
            later = [job for job, k in known.items() if (h := heads[JobId(job)]) is None or order(k) > order(h)]
            skip += len(page) - len(await self._bring_back(later, known))
