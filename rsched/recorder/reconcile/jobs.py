"""The jobs of a shard against its due sets and against the ledger.

What the ledger says is asked only once it has everything that the journal had when Redis was looked at: a difference that is
there then is not lag.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from rsched.core.ids import PARTITIONS, JobId, is_job_id, partition_of
from rsched.core.jobs.packed import JobHead, JobRecord
from rsched.core.states import JobState
from rsched.ledger.recovery.compare import KnownJob, head_or_none, order
from rsched.ledger.recovery.pages import LedgerJob
from rsched.recorder.reconcile.passes import LARGE_PAGE, PAGE, Part, Pass

_GATHERED = 500
_SCHEDULES = 20_000
_WANTED = (JobState.ACTIVE, JobState.PAUSED, JobState.INVALID)


class _Doubtful(NamedTuple):
    """value: the job's as it was seen, b"" for none. due: of a due entry, None where there is none."""

    partition: int
    job: bytes
    value: bytes
    due: int | None = None


class JobParts:
    """The parts of a pass that look at jobs; each part is a generator that yields after a bounded piece."""

    def __init__(self, p: Pass) -> None:
        self._pass = p
        self._clear()

    def _clear(self) -> None:
        self._unreadable: list[_Doubtful] = []
        self._undue: list[tuple[JobId, bytes]] = []
        self._newer: list[tuple[JobId, JobHead]] = []
        self._older: list[JobId] = []

    async def partitions(self) -> Part:
        """Due entries and definitions of every partition."""
        p = self._pass
        self._clear()
        for partition in range(PARTITIONS):
            cursor = -1
            while cursor:
                cursor, found, lost = await p.store.job_repair.check_due_times(
                    partition, max(cursor, 0), count=PAGE, write=p.write
                )
                p.saw_all(found)
                # One with a value is found among the definitions.
                self._unreadable += [
                    _Doubtful(partition, e.job.encode(errors="surrogateescape"), b"", e.due)
                    for e in lost
                    if not e.value
                ]
                yield
            cursor = -1
            while cursor:
                cursor, page = await p.store.reconciliation.read_values(
                    partition, cursor=max(cursor, 0), count=LARGE_PAGE
                )
                if page:
                    await self._look(partition, page)
                    yield
                if len(self._unreadable) + len(self._undue) + len(self._newer) + len(self._older) > _GATHERED:
                    await self._settle()
                    yield
        await self._settle()

    async def _look(self, partition: int, page: Sequence[tuple[bytes, bytes]]) -> None:
        p = self._pass
        heads: dict[JobId, tuple[JobHead, bytes]] = {}
        for raw, value in page:
            job = JobId(raw.decode(errors="replace"))
            head = head_or_none(value)
            if head is None:
                self._unreadable.append(_Doubtful(partition, raw, value))
            elif is_job_id(job) and partition_of(job) == partition:
                heads[job] = head, value.partition(b"\n")[0]
                if head.kind == "c" and len(p.schedules) < _SCHEDULES:
                    p.schedules.setdefault(head.arg, job)
        jobs = list(heads)
        active = [job for job in jobs if heads[job][0].state is JobState.ACTIVE]
        paused = [job for job in jobs if heads[job][0].state is JobState.PAUSED and heads[job][0].until]
        dues = zip(active, await p.store.reconciliation.have_due_times(partition, active), strict=True)
        ends = zip(paused, await p.store.reconciliation.have_pause_ends(paused), strict=True)
        self._undue += [(job, heads[job][1]) for job, there in (*dues, *ends) if not there]
        known = await p.ledger.recovery.compare.jobs(jobs)
        for job, (head, _) in heads.items():
            there = known.get(job)
            if there is None or order(there) < order(head):
                self._newer.append((job, head))
            elif order(there) > order(head):
                self._older.append(job)

    async def missing(self) -> Part:
        """Definitions that the ledger has and Redis has not."""
        p, after = self._pass, ""
        while page := await p.ledger.recovery.pages.jobs_after(p.shard, after=after, limit=LARGE_PAGE):
            after = page[-1].job_id
            values = await p.store.jobs.read_packed([job.job_id for job in page])
            found = zip(page, values, strict=True)
            gone = [job.job_id for job, value in found if value is None and job.job_id not in p.would_be_back]
            if gone and await p.recorded(await p.mark()):
                # A completed or deleted one may just have been forgotten.
                known = await p.ledger.recovery.compare.jobs(gone)
                wanted = {JobId(j): k for j, k in known.items() if k.state in _WANTED and not k.forgotten}
                p.would_be_back.update(() if p.write else wanted)
                p.saw("job_missing", await self._restore(wanted))
            yield

    async def _settle(self) -> None:
        p = self._pass
        unreadable, undue, newer, older = self._unreadable, self._undue, self._newer, self._older
        self._clear()
        total = len(unreadable) + len(undue) + len(newer) + len(older)
        if not total:
            return
        if not await p.recorded(await p.mark()):
            p.unsure += total
            return
        if unreadable:
            await self._settle_unreadable(unreadable)
        if undue:
            await self._settle_undue(undue)
        if newer:
            known = await p.ledger.recovery.compare.jobs([job for job, _ in newer])
            behind = [
                (job, head.version) for job, head in newer if (k := known.get(job)) is None or order(k) < order(head)
            ]
            if behind:
                p.saw("ledger_behind", len(await p.store.job_repair.journal_again(behind)) if p.write else len(behind))
        if older:
            known = await p.ledger.recovery.compare.jobs(older)
            if p.write and (forgotten := [JobId(j) for j, k in known.items() if k.forgotten]):
                # They end in Redis once more; housekeeping forgets them again.
                await p.ledger.recovery.pages.remember(forgotten)
            p.saw("job_older", await self._restore({JobId(j): k for j, k in known.items()}))

    async def _settle_unreadable(self, items: Sequence[_Doubtful]) -> None:
        p = self._pass
        readable = {i.job: JobId(i.job.decode()) for i in items if is_job_id(i.job.decode(errors="replace"))}
        known = await p.ledger.recovery.compare.jobs(list(readable.values()))
        dues = await p.store.jobs.get_due_times(list(readable.values()))
        restored: dict[JobId, KnownJob] = {}
        dropped = []
        for item in items:
            kind = "unreadable_job" if item.value else "due_without_job"
            job = readable.get(item.job)
            there = known.get(job) if job and partition_of(job) == item.partition else None
            if job and there and not there.forgotten and there.state in _WANTED:
                restored[job] = there
                p.saw(kind)
                p.would_be_back.update(() if p.write else (job,))
            elif not p.write:
                p.saw(kind)
            else:
                dropped.append(item)
        if p.write:
            await self._restore(restored, dues=dues)
            gone = set(await p.store.job_repair.quarantine([(i.partition, i.job, i.value) for i in dropped]))
            for item in dropped:
                if item.job in gone:
                    p.saw("unreadable_job" if item.value else "due_without_job")

    async def _settle_undue(self, items: Sequence[tuple[JobId, bytes]]) -> None:
        p = self._pass
        ends = [
            (job, head, ended.until) for job, head in items if (ended := head_or_none(head + b"\n")) and ended.until
        ]
        p.saw(
            "pause_lost", len(await p.store.job_repair.set_missing_due_times(ends)) if p.write and ends else len(ends)
        )
        late = await p.store.catchup.list_jobs()
        asleep = {job for job, _, _ in ends}
        heads = {job: head for job, head in items if job not in late and job not in asleep}
        jobs = await p.store.jobs.get_many(list(heads))
        page = [LedgerJob(job, record.pack()) for job, record in jobs.items() if isinstance(record, JobRecord)]
        found = await (await p.due_times()).of(page)
        back = [(job, heads[job], due) for job, due, _ in found if due is not None]
        p.saw(
            "job_without_due",
            len(await p.store.job_repair.set_missing_due_times(back)) if p.write and back else len(back),
        )

    async def _restore(self, known: dict[JobId, KnownJob], *, dues: dict[JobId, int] | None = None) -> int:
        """How many were written (or would be). dues: those that are in the due set as they should be."""
        p = self._pass
        if not known:
            return 0
        values = dict(zip(known, await p.store.jobs.read_packed(list(known)), strict=True))
        if not p.write:
            heads = {job: head_or_none(value) for job, value in values.items()}
            return sum(1 for job, k in known.items() if (h := heads[job]) is None or order(h) < order(k))
        items = await (await p.due_times()).of([k.job(job) for job, k in known.items()])
        active = {job for job, k in known.items() if k.state is JobState.ACTIVE}
        kept = [(job, (dues or {}).get(job, due) if job in active else due, value) for job, due, value in items]
        written = 0
        for i in range(0, len(kept), PAGE):
            written += await p.store.restore.put_jobs(kept[i : i + PAGE])
        return written
