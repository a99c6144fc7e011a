"""Closes in the ledger what ended in a gap.

A ledger that lost its last writes has it as unfinished, and Redis has it no more. Left unfinished, it would be restored one day
and run again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from rsched.core.ids import JobId, RunId
from rsched.core.jobs.packed import Event, JobEvent, RangeEvent, RunEvent, RunRecord, unpack_head
from rsched.core.states import JobState, RunState
from rsched.ledger import Ledger
from rsched.recorder.resync.observation import Look, Part
from rsched.runtime.log import get_logger
from rsched.store.store import Store

_log = get_logger("rsched.recorder")
OUTCOME_UNKNOWN = "the run ended while its record was lost: its outcome is unknown"
_PAGE = 500
# An invalid one does no harm if it comes back.
_ENDS = (JobState.ACTIVE, JobState.PAUSED)

RangeKey = tuple[str, int, int]


class Ended:
    """A part goes through one kind in bounded pieces; begun again, it finds what is left. count: what was closed, by kind."""

    def __init__(self, store: Store, ledger: Ledger, *, shard: str) -> None:
        self._store, self._ledger, self._shard = store, ledger, shard
        self.count: Counter[str] = Counter()
        # Jobs may be very many: an interrupted look at them goes on where it was.
        self._job = ""

    @property
    def parts(self) -> list[Callable[[], Part]]:
        """The parts in their order: runs, catch-up ranges, jobs."""
        return [self.runs, self.ranges, self.jobs]

    async def runs(self) -> Part:
        """Recorded as cancelled, with an error that says what is known; a record that is truly later still wins."""
        async for page in self._ledger.recovery.unfinished.pages(self._shard, limit=_PAGE):
            since = min((r.claimed_at for _, r in page), default=0)
            look, sure = self._look(), False
            while not sure:
                async for _ in look.begin():
                    yield
                gone = await self._absent_runs(run for run, _ in page)
                if not gone:
                    break
                async for _ in look.recorded(settled=True):
                    yield
                known = await self._ledger.recovery.compare.runs(gone, since=since)
                unfinished = {run: r for run, r in known.items() if not r.state.final}
                now = await self._store.clock.read()
                ended = [_unknown(r, unfinished[r], at=now) for r in await self._absent_runs(unfinished)]
                if sure := await look.holds():
                    await self._close("runs", ended)
            yield

    async def ranges(self) -> Part:
        """Catch-up ranges that were paid out, or dropped, in the gap: after a loss of Redis they would be paid out again."""
        look, sure = self._look(), False
        while not sure:
            async for _ in look.begin():
                yield
            before = set(await self._gone_ranges())
            if not before:
                break
            async for _ in look.recorded(settled=True):
                yield
            gone = await self._gone_ranges()
            if sure := await look.holds():
                await self._close("ranges", [gone[key] for key in sorted(before & gone.keys())])
        yield

    async def jobs(self) -> Part:
        """Records jobs that Redis has forgotten as completed, in the version that the ledger has.

        Only completed and deleted jobs are ever forgotten.
        """
        while page := await self._ledger.recovery.pages.jobs_after(self._shard, after=self._job, limit=_PAGE):
            look, sure = self._look(), False
            while not sure:
                async for _ in look.begin():
                    yield
                gone = await self._absent_jobs(job.job_id for job in page)
                if not gone:
                    break
                async for _ in look.recorded(settled=True):
                    yield
                known = await self._ledger.recovery.compare.jobs(gone)
                unfinished = {JobId(j): k.value for j, k in known.items() if k.state in _ENDS and not k.forgotten}
                ended = [e for j in await self._absent_jobs(unfinished) if (e := _completed(j, unfinished[j]))]
                if sure := await look.holds():
                    await self._close("jobs", ended)
            self._job = page[-1].job_id
            yield

    def _look(self) -> Look:
        """Returns a new observation of the shard.

        Each kind is observed twice: what is absent may be so because Redis is not whole, or because it ended only now. A second
        observation under another generation than the first tells nothing.
        """
        return Look(self._store, self._ledger, shard=self._shard)

    async def _close(self, kind: str, events: Sequence[Event]) -> None:
        if events:
            await self._ledger.write.resync(self._shard, events)
            self.count[kind] += len(events)

    async def _absent_runs(self, runs: Iterable[RunId]) -> list[RunId]:
        asked = list(runs)
        found = await self._store.runs.read_packed(asked)
        return [run for run, record in zip(asked, found, strict=True) if record is None]

    async def _absent_jobs(self, jobs: Iterable[JobId]) -> list[JobId]:
        asked = list(jobs)
        found = await self._store.jobs.read_packed(asked)
        return [job for job, value in zip(asked, found, strict=True) if value is None]

    async def _gone_ranges(self) -> dict[RangeKey, RangeEvent]:
        """Those of the ledger that Redis has not, as they are once nothing is left of them."""
        unfinished = await self._ledger.recovery.pages.pending_ranges(self._shard)
        here = {(r.job, r.made_at, r.end) for r in await self._store.catchup.list_all()} if unfinished else set()
        now = self._store.clock.now_ms()
        return {
            (job, made_at, end): RangeEvent(job, made_at, end, end + 1, schedule_version, flags, now)
            for job, _, end, schedule_version, flags, made_at in unfinished
            if (job, made_at, end) not in here
        }


def _unknown(run: RunId, record: RunRecord, *, at: int) -> RunEvent:
    return RunEvent(run, record._replace(state=RunState.CANCELLED, revision=record.revision + 1), at, OUTCOME_UNKNOWN)


def _completed(job: JobId, value: bytes) -> JobEvent | None:
    try:
        head = unpack_head(value)._replace(state=JobState.COMPLETED)
    except (ValueError, KeyError) as error:
        _log.error("a stored job can't be read", extra={"fields": {"job": job, "error": str(error)}})
        return None
    return JobEvent(job, head.pack().encode() + b"\n" + value.partition(b"\n")[2])
