"""What the recorder needs: the journal's streams, the shard's marker, recovery, restoring, forgetting; and server facts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from redis.exceptions import ResponseError

from rsched.core.ids import JobId, RunId
from rsched.store.dues import DueVerbs
from rsched.store.resync import ResyncReads
from rsched.store.ticks import CatchupRange

Entry = tuple[str, str, list[tuple[bytes, bytes]]]


class Marker(NamedTuple):
    """lost: its last recovery found writes missing. matches: the marker's server is the one that answers."""

    generation: int
    state: str
    run_id: str
    repl_id: str
    closed_at: int
    recovery_grace_until: int
    lost: bool
    matches: bool


class RestoreProgress(NamedTuple):
    """How far a restoration is. phase: runs (the shard is closed), jobs (it is open), done; started_at: ms, Redis' clock."""

    phase: str
    generation: int
    jobs_done: int
    jobs_total: int
    runs_done: int
    started_at: int


class RecoveryVerbs(ResyncReads, DueVerbs):
    def _stream(self, name: str) -> str:
        return self.keys.definitions if name == "definitions" else self.keys.journal

    async def marker(self) -> Marker | None:
        """None where the shard was never opened, or Redis was emptied."""
        found = await self._redis(self.client.hgetall(self.keys.marker))
        if not found:
            return None
        m = {k.decode(): v.decode() for k, v in found.items()}
        server = await self._redis(self.client.info("server"))
        replication = await self._redis(self.client.info("replication"))
        matches = m.get("run_id") == server["run_id"] and m.get("repl_id") == replication["master_replid"]
        return Marker(
            int(m.get("generation", 0)),
            m.get("state", "closed"),
            m.get("run_id", ""),
            m.get("repl_id", ""),
            int(m.get("closed_at", 0)),
            int(m.get("recovery_grace_until", 0)),
            m.get("lost") == "1",
            matches,
        )

    async def is_open(self) -> bool:
        marker = await self.marker()
        return marker is not None and marker.matches and marker.state == "open"

    async def fence(self) -> int:
        """The shard's fence counter."""
        return int(await self._redis(self.client.get(self.keys.fence)) or 0)

    async def close_shard(self) -> None:
        """Closes the shard before its server is stopped as planned. ShardClosed, Unavailable."""
        await self._call("close")

    async def begin_recovery(
        self, generation: int, *, fence: int, lost: bool = False, whole: bool = False, seen_after_ms: int = 120_000
    ) -> bool:
        """Begins a recovery. False where a newer generation has begun meanwhile.

        lost: Redis lost writes. Then, and wherever the server is another than at the last recovery, there may be workers that it
        does not know; what was due before is held one full lease. whole: it was closed as planned and never opened since, so that
        there are none.
        """
        self.generation = str(generation)
        reply = await self._call(
            "begin_recovery", fence=fence, seen_after_ms=seen_after_ms, lost=int(lost), whole=int(whole)
        )
        return bool(reply[0] == "ok")

    async def restage(self, cursor: int, *, lease_ms: int, count: int = 200) -> int:
        """One page of waiting runs back to staged or retries; the next cursor, 0 when done."""
        reply = await self._call("restage", cursor=str(cursor), count=count, lease_ms=lease_ms)
        return int(reply[2])

    async def finish_recovery(self, *, recovery_grace_ms: int) -> None:
        """Ends the recovery. recovery_grace_ms: a worker's lease, where Redis does not know theirs."""
        await self._call("finish_recovery", recovery_grace_ms=recovery_grace_ms)

    async def restore_jobs(
        self, items: Sequence[tuple[JobId, int | None, bytes]], *, generation: int | None = None
    ) -> int:
        """Writes (job, due ms or None, value) where Redis has none or an earlier version; how many were written. ShardClosed
        where it is open under another generation than the given one.
        """
        known = {} if generation is None else {"generation": str(generation)}
        reply = await self._call(
            "restore_jobs", [(j.encode(), b"" if d is None else b"%d" % d, v) for j, d, v in items], **known
        )
        return int(reply[2])

    async def restore_runs(
        self, items: Sequence[tuple[RunId, str]], *, lease_ms: int, payloads: Mapping[str, bytes] | None = None
    ) -> int:
        """Writes packed run records (final ones: drops the run) where Redis has an earlier revision; how many. payloads: of
        those that have one of their own.
        """
        group = [(run, record, (payloads or {}).get(run, b"")) for run, record in items]
        reply = await self._call("restore_runs", group, lease_ms=lease_ms)
        return int(reply[2])

    async def restore_calendars(self, items: Sequence[tuple[str, str, int, bytes]]) -> int:
        """Writes (team, name, version, body) where Redis has an earlier version; how many."""
        group = [(f"{team}/{name}", b"%d\n%s" % (version, body)) for team, name, version, body in items]
        return int((await self._call("restore_entries", group, kind="calendars"))[2])

    async def restore_ranges(self, ranges: Sequence[CatchupRange]) -> int:
        """Writes catch-up ranges where Redis has none, or has paid out less of them; how many. One that starts past its end
        is dropped.
        """
        if not ranges:
            return 0
        return int((await self._call("restore_entries", [(r.member, "") for r in ranges], kind="catchup"))[2])

    async def restore_triggers(self, items: Sequence[tuple[str, str, int]], *, generation: int) -> int:
        """Writes (job, hash, ms of the run) of keyed triggers that Redis has not got; how many were written. ShardClosed where it
        is open under another generation.
        """
        group = [(f"{job}|{key}", str(at)) for job, key, at in items]
        return int((await self._call("restore_entries", group, kind="triggers", generation=str(generation)))[2])

    async def set_load_level(self, step: int) -> None:
        """How far work is cut back for want of memory: 0 not at all, 1 no new jobs, 2 no claims and fetches either."""
        await self._call("set_load_level", step=str(step))

    async def tzdata(self) -> str | None:
        """The tzdata release that the stored schedules were computed with; None where that is not known."""
        found = await self._redis(self.client.hget(self.keys.marker, "tzdata"))
        return found.decode() if found else None

    async def set_tzdata(self, release: str) -> None:
        await self._redis(self.client.hset(self.keys.marker, "tzdata", release))

    async def page_of_jobs(
        self, partition: int, *, cursor: int, count: int = 500
    ) -> tuple[int, list[tuple[JobId, bytes]]]:
        """Some (job, head) of a partition and the next cursor, 0 at the end; a job may come twice."""
        following, page = await self._redis(self.client.hscan(self.keys.jobs(partition), cursor, count=count))
        return int(following), [(JobId(j.decode()), value.partition(b"\n")[0] + b"\n") for j, value in page.items()]

    async def forget(self, items: Sequence[tuple[JobId, int]]) -> int:
        """Drops completed and deleted jobs of exactly these versions; how many were there."""
        return int((await self._call("forget", items))[2])

    async def stream_last(self, stream: str) -> str:
        """The last id ever added to `definitions` or `journal`, "0-0" for none."""
        try:
            info = await self._redis(self.client.xinfo_stream(self._stream(stream)))
        except ResponseError as error:
            if "no such key" in str(error):
                return "0-0"
            raise
        return str(info["last-generated-id"].decode())

    async def read_journal(self, positions: dict[str, str], *, block_ms: int, count: int) -> list[Entry]:
        """Entries after the given ids, [(stream, id, [(kind, payload), ...])]; waits up to block_ms (0: not at all)."""
        names = {self._stream(s).encode(): s for s in positions}
        # Raw: the client would make a dict of an entry's fields, and events repeat field names.
        block = ("BLOCK", block_ms) if block_ms else ()
        reply = await self._redis(
            self.client.execute_command(  # type: ignore[no-untyped-call]
                "XREAD", "COUNT", count, *block, "STREAMS", *map(self._stream, positions), *positions.values()
            )
        )
        return [
            (names[key], entry_id.decode(), list(zip(fields[::2], fields[1::2], strict=True)))
            for key, entries in (reply or [])
            for entry_id, fields in entries
        ]

    async def trim(self, stream: str, min_id: str) -> int:
        """Drops entries before min_id; how many."""
        return int(await self._redis(self.client.xtrim(self._stream(stream), minid=min_id, approximate=True)))

    async def live(self) -> tuple[list[str], dict[str, int]]:
        """Schedulers with a lease, and workers with the instant (ms) they were last heard of."""
        now = await self.time()
        schedulers = await self._redis(self.client.zrange(self.keys.schedulers, f"({now}", "+inf", byscore=True))
        workers = await self._redis(self.client.hgetall(self.keys.workers))
        return (
            [s.decode() for s in schedulers],
            {w.decode(): int(v.split(b"|", 1)[0]) for w, v in workers.items()},
        )

    async def owned(self) -> int:
        """How many partitions are owned by a live scheduler."""
        schedulers, _ = await self.live()
        owners = await self._redis(self.client.hvals(self.keys.owners))
        alive = {s.encode() for s in schedulers}
        return sum(1 for o in owners if o.rsplit(b"|", 1)[0] in alive)

    async def restore_progress(self) -> RestoreProgress | None:
        """The present or last restoration; None where there was none on this server."""
        found = await self._redis(self.client.hgetall(self.keys.restore))
        if b"phase" not in found:
            return None
        f = {k.decode(): v.decode() for k, v in found.items()}
        return RestoreProgress(f["phase"], *(int(f.get(name, 0)) for name in RestoreProgress._fields[1:]))

    async def restore_in_progress(self) -> bool:
        """Whether what Redis had lost is still being restored."""
        repair = await self.restore_progress()
        return repair is not None and repair.phase != "done"

    async def set_restore_progress(self, repair: RestoreProgress) -> None:
        """ShardClosed where the shard is another generation's by now."""
        await self._call("report_restore", **{**repair._asdict(), "generation": str(repair.generation)})

    async def memory(self) -> tuple[int, int]:
        """Bytes in use, and the limit; 0 for none."""
        found = await self._redis(self.client.info("memory"))
        return int(found["used_memory"]), int(found["maxmemory"])

    async def load_level(self) -> int | None:
        """The step in force; None where the shard has no marker."""
        generation, step = await self._redis(self.client.hmget(self.keys.marker, ["generation", "load_level"]))
        return None if generation is None else int(step or 0)

    async def stream_first(self, stream: str) -> str | None:
        """The oldest entry that `definitions` or `journal` still has."""
        found = await self._redis(self.client.xrange(self._stream(stream), count=1))
        return found[0][0].decode() if found else None
