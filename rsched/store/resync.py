"""What a resync reads, after Postgres lost its tail: everything that it should have of a shard, page by page.

Authority: none; a page is as old as its reply, an item may come twice, and what cannot be read is left out, as it is the
reconciler's business. Whether a resync is wanted stands in Redis, so that it goes on after a crash. Errors: Unavailable.
"""

from __future__ import annotations

from rsched.core.ids import JobId, RunId
from rsched.core.jobs.packed import RunRecord, unpack_run
from rsched.store.connection import Part


class Resync(Part):
    """Reads all that a shard has, in pages.

    Each page takes a cursor, 0 at first and then what the page before returned, and about how many items are wanted; it returns
    the next cursor, 0 at the end, and the items.
    """

    async def is_requested(self) -> bool:
        """Returns whether what Redis has is to be written into Postgres once more."""
        return bool(await self._redis.ask(self._redis.client.hexists(self._redis.keys.restore, "resync")))

    async def request(self) -> None:
        """Notes that what Redis has is to be written into Postgres once more."""
        await self._redis.ask(self._redis.client.hset(self._redis.keys.restore, "resync", "1"))

    async def finish(self) -> None:
        """Notes that it was written."""
        await self._redis.ask(self._redis.client.hdel(self._redis.keys.restore, "resync"))

    async def read_jobs(self, partition: int, *, cursor: int, count: int) -> tuple[int, list[tuple[JobId, bytes]]]:
        """Reads (job, whole packed value) of a partition."""
        keys, client = self._redis.keys, self._redis.client
        following, page = await self._redis.ask(client.hscan(keys.jobs(partition), cursor, count=count))
        apart = [job for job, value in page.items() if value.endswith(b"\n")]
        if apart:
            bodies = await self._redis.ask(client.hmget(keys.body(partition), apart))
            page |= {job: page[job] + (body or b"") for job, body in zip(apart, bodies, strict=True)}
        return int(following), [(JobId(job.decode(errors="replace")), value) for job, value in page.items()]

    async def read_runs(self, *, cursor: int, count: int) -> tuple[int, list[tuple[RunId, RunRecord]]]:
        """Reads runs that are not final."""
        following, page = await self._redis.ask(self._redis.client.hscan(self._redis.keys.runs, cursor, count=count))
        runs = []
        for run, record in page.items():
            try:
                runs.append((RunId(run.decode()), unpack_run(record.decode())))
            except (ValueError, KeyError):
                continue
        return int(following), runs

    async def read_payloads(self, *, cursor: int, count: int) -> tuple[int, list[tuple[RunId, bytes]]]:
        """Reads the payloads (msgpack) that runs have of their own."""
        following, page = await self._redis.ask(
            self._redis.client.hscan(self._redis.keys.payloads, cursor, count=count)
        )
        return int(following), [(RunId(run.decode(errors="replace")), payload) for run, payload in page.items()]

    async def read_triggers(self, *, cursor: int, count: int) -> tuple[int, list[tuple[str, str, int]]]:
        """Reads triggers that came with an idempotency key: (job, hash of the key, instant of the run in ms)."""
        following, page = await self._redis.ask(
            self._redis.client.zscan(self._redis.keys.triggers, cursor, count=count)
        )
        triggers = [(*member.decode(errors="replace").partition("|"), int(at)) for member, at in page]
        return int(following), [(job, key_hash, at) for job, _, key_hash, at in triggers if key_hash]

    async def read_calendars(self, *, cursor: int, count: int) -> tuple[int, list[tuple[str, str, int, bytes]]]:
        """Reads (team, calendar, version, body); an empty body stands for a deleted calendar."""
        following, page = await self._redis.ask(
            self._redis.client.hscan(self._redis.keys.calendars, cursor, count=count)
        )
        calendars = []
        for field, value in page.items():
            team, slash, name = field.decode(errors="replace").partition("/")
            version, line, body = value.partition(b"\n")
            if slash and line and version.isdigit():
                calendars.append((team, name, int(version), body))
        return int(following), calendars
