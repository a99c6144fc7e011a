"""The runs of a shard against their sets, their queue streams and the ledger."""

from __future__ import annotations

from collections.abc import Sequence

from rsched.core.ids import RunId
from rsched.core.jobs.packed import FLAG_PAYLOAD, RunRecord, unpack_run
from rsched.recorder.reconcile.passes import LARGE_PAGE, PAGE, Part, Pass
from rsched.store.run_repair import SeenRun

# So many runs that only a queue stream can have are looked for there at once: each such look reads whole streams.
_GATHERED = 50_000


class RunParts:
    """The parts of a pass that look at runs; each part is a generator that yields after a bounded piece."""

    def __init__(self, p: Pass) -> None:
        self._pass = p

    async def records(self) -> Part:
        """Every run record of the shard."""
        p, cursor = self._pass, -1
        waiting: dict[RunId, SeenRun] = {}
        while cursor:
            cursor, found, seen = await p.store.run_repair.check_records(
                max(cursor, 0), count=PAGE, lease_ms=p.lease_ms, write=p.write
            )
            p.saw_all(found)
            waiting.update((s.run, s) for s in seen if s.place == "queue")
            await self._ended([s for s in seen if s.place != "unreadable"])
            await self._unreadable([s for s in seen if s.place == "unreadable"])
            yield
            if waiting and (not cursor or len(waiting) >= _GATHERED):
                async for _ in self._queued(waiting):
                    yield
                waiting = {}

    async def _queued(self, waiting: dict[RunId, SeenRun]) -> Part:
        p = self._pass
        queued: dict[RunId, SeenRun] = {}
        for queue_key in sorted({s.record.split(b"|")[3].decode() for s in waiting.values()}):
            # What left a stream meanwhile has moved, and what came to it is not in question.
            after = "-"
            while after:
                after, _, runs = await p.store.run_repair.check_queue(queue_key, after, count=PAGE, write=False)
                for run in runs:
                    if run in waiting:
                        queued[run] = waiting.pop(run)
                yield
        # Where nothing overlaps, one that is in its stream is all right.
        items = [(s, False) for s in waiting.values()] + [(s, True) for s in queued.values() if _flagged(s.record)]
        for i in range(0, len(items), PAGE):
            p.saw_all(await p.store.run_repair.check_queued(items[i : i + PAGE], write=p.write))
            yield

    async def _ended(self, seen: Sequence[SeenRun]) -> None:
        """Drops those that have ended by the ledger: it can only know from a later record than the one that is still here."""
        p = self._pass
        here_of = {s.run: unpack_run(s.record.decode()) for s in seen}
        since = min((here.claimed_at for here in here_of.values()), default=0)
        known = await p.ledger.recovery.compare.runs(list(here_of), since=since)
        ended = []
        for s in seen:
            there, here = known.get(s.run), here_of[s.run]
            if there and there.state.final and (there.fence, there.revision) >= (here.fence, here.revision):
                ended.append((s.run, s.record))
        if ended:
            kind = "run_ended_by_ledger"
            p.saw(kind, len(await p.store.run_repair.drop(ended) if p.write else await self._still(ended)))

    async def _unreadable(self, seen: Sequence[SeenRun]) -> None:
        p = self._pass
        if not seen:
            return
        if not await p.recorded(await p.mark()):
            p.unsure += len(seen)
            return
        known = await p.ledger.recovery.compare.runs([s.run for s in seen if s.run.isascii()])
        over = await p.ledger.quarantine.refused_ends([(run, r) for run, r in known.items() if not r.state.final])
        unfinished = {run: r for run, r in known.items() if not r.state.final and run not in over}
        if not p.write:
            p.saw("unreadable_run", len(seen))
            return
        back = await self._restore([(s.run, s.record, unfinished[s.run]) for s in seen if s.run in unfinished])
        gone = await p.store.run_repair.drop(
            [(s.run, s.record) for s in seen if s.run not in unfinished], quarantine=True
        )
        p.saw("unreadable_run", back + len(gone))

    async def missing(self) -> Part:
        """Runs that the ledger has open and Redis has not."""
        p = self._pass
        async for page in p.ledger.recovery.unfinished.pages(p.shard, limit=LARGE_PAGE):
            runs = [run for run, _ in page]
            gone = [
                run for run, record in zip(runs, await p.store.runs.read_packed(runs), strict=True) if record is None
            ]
            lost = await self._open_still(gone, since=min(r.claimed_at for _, r in page))
            if lost is not None:
                if p.write:
                    p.saw("run_missing", await self._restore(lost))
                else:
                    absent = await self._absent(lost)
                    p.saw("run_missing", len(absent))
                    p.would_be_back.update(absent)
            else:
                p.unsure += len(gone)
            yield

    async def _open_still(self, gone: Sequence[RunId], *, since: int) -> list[tuple[RunId, bytes, RunRecord]] | None:
        """Of runs that Redis has not those that the ledger has open; most have just ended. None where it can't be believed."""
        p = self._pass
        if not gone:
            return []
        mark = await p.mark()
        if not await p.recorded(mark):
            return None
        known = await p.ledger.recovery.compare.runs(gone, since=since)
        unfinished = [(run, r) for run, r in known.items() if not r.state.final]
        over = await p.ledger.quarantine.refused_ends(unfinished)
        # Another Postgres, without its tail, may have answered by now.
        if not await p.recorded(mark):
            return None
        return [(run, b"", r) for run, r in unfinished if run not in over]

    async def _restore(self, items: Sequence[tuple[RunId, bytes, RunRecord]]) -> int:
        p, count = self._pass, 0
        payloads = await p.ledger.recovery.pages.payloads_of([run for run, _, r in items if FLAG_PAYLOAD in r.flags])
        group = [(run, seen, r.pack(), payloads.get(run, b"")) for run, seen, r in items]
        for i in range(0, len(group), PAGE):
            count += len(await p.store.run_repair.put_back(group[i : i + PAGE], lease_ms=p.lease_ms))
        return count

    async def _still(self, items: Sequence[tuple[RunId, bytes]]) -> list[RunId]:
        now = await self._pass.store.runs.read_packed([run for run, _ in items])
        return [run for (run, seen), found in zip(items, now, strict=True) if seen == found]

    async def _absent(self, items: Sequence[tuple[RunId, bytes, RunRecord]]) -> list[RunId]:
        now = await self._pass.store.runs.read_packed([run for run, _, _ in items])
        return [run for (run, _, _), found in zip(items, now, strict=True) if found is None]


def _flagged(record: bytes) -> bool:
    return any(c.islower() for c in record.rpartition(b"|")[2].decode())
