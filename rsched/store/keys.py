"""Every key that rsched uses in Redis is built here (and, for scripts, by lua/lib/key.lua in the same shape).

`<prefix>:{<shard>}:<kind>[:<part>...]`; the hash tag makes a shard the unit of atomicity. Parts are slugs and ids only.
"""

from __future__ import annotations

from typing import NamedTuple


class Keys(NamedTuple):
    prefix: str
    shard: str

    def _key(self, *parts: str | int) -> str:
        return f"{self.prefix}:{{{self.shard}}}:{':'.join(map(str, parts))}"

    @property
    def marker(self) -> str:
        """HASH generation, state, run_id, repl_id, closed_at, recovery_grace_ms, recovery_grace_until, lost, fence_seen, load_level, tzdata."""
        return self._key("shard")

    def due(self, partition: int) -> str:
        """ZSET job -> due ms. One slice at first."""
        return self._key("due", partition, 0)

    @property
    def heads(self) -> str:
        """ZSET partition -> earliest due ms."""
        return self._key("heads")

    def jobs(self, partition: int) -> str:
        """HASH job -> head, newline, body. One bucket at first."""
        return self._key("jobs", partition, 0)

    def body(self, partition: int) -> str:
        """HASH job -> body, for bodies over 1 KB."""
        return self._key("body", partition)

    def occurrences(self, schedule_id: str) -> str:
        """ZSET ms -> ms of upcoming occurrences, contiguous after the member `from`; `end` where there are no more."""
        return self._key("occurrences", schedule_id)

    @property
    def runs(self) -> str:
        """HASH run -> packed run record; runs that are not final."""
        return self._key("runs")

    @property
    def staged(self) -> str:
        """ZSET run|queue_key[|letter of the overlap policy] -> release ms."""
        return self._key("staged")

    @property
    def retries(self) -> str:
        """ZSET run|queue_key -> release ms."""
        return self._key("retries")

    @property
    def catchup(self) -> str:
        """ZSET job|from|to|schedule_version|flags|made_at -> next catch_up ms."""
        return self._key("catchup")

    def active(self, job: str) -> str:
        """ZSET run -> 0, or the instant (ms) it was due while it waits for its turn; of jobs whose runs must not overlap."""
        return self._key("active", job)

    @property
    def payloads(self) -> str:
        """HASH run -> msgpack, of runs with a payload of their own."""
        return self._key("payloads")

    @property
    def calendars(self) -> str:
        """HASH team/name -> version, newline, msgpack list of dates and date ranges; none after the newline: deleted."""
        return self._key("calendars")

    @property
    def pauses(self) -> str:
        """ZSET job -> ms at which its pause ends by itself."""
        return self._key("pauses")

    @property
    def paces(self) -> str:
        """HASH job -> `ms|count` of what catching up gave it since then; gone a minute after the last."""
        return self._key("paces")

    @property
    def refreshes(self) -> str:
        """HASH team/name/version -> ms, of calendars that changed and whose jobs are still to be refreshed."""
        return self._key("refreshes")

    def queue(self, queue_key: str) -> str:
        """STREAM of runnable runs of one queue_key (queue:team:priority)."""
        return self._key("q", queue_key)

    def ready(self, queue: str) -> str:
        """ZSET team -> virtual time; teams that have work now."""
        return self._key("ready", queue)

    def virtual(self, queue: str) -> str:
        """ZSET team -> virtual time when it last left `ready`, while ahead of the queue's own, which is member ""."""
        return self._key("virtual", queue)

    @property
    def leases(self) -> str:
        """ZSET run -> lease end ms; the only authority on who may work."""
        return self._key("leases")

    @property
    def owners(self) -> str:
        """HASH partition -> scheduler|epoch."""
        return self._key("owners")

    @property
    def schedulers(self) -> str:
        """ZSET scheduler -> lease end ms."""
        return self._key("schedulers")

    @property
    def workers(self) -> str:
        """HASH worker -> ms it was last heard of|queues|lease ms."""
        return self._key("workers")

    @property
    def requests(self) -> str:
        """HASH worker -> number of its last fetch, then the runs it was given."""
        return self._key("requests")

    @property
    def finishes(self) -> str:
        """HASH worker -> number of its last finish, which a repeat is answered by."""
        return self._key("finishes")

    @property
    def triggers(self) -> str:
        """ZSET job|idempotency hash -> ms of the manual run, kept for a day."""
        return self._key("triggers")

    @property
    def unconfirmed(self) -> str:
        """SET of workers that have not adopted since the shard was opened."""
        return self._key("unconfirmed")

    @property
    def starts(self) -> str:
        """HASH queue -> how many attempts were ever handed out."""
        return self._key("starts")

    @property
    def quarantine(self) -> str:
        """HASH of bad entries quarantined, with what was found."""
        return self._key("quarantine")

    @property
    def fence(self) -> str:
        """INT, the shard's fence counter."""
        return self._key("fence")

    @property
    def journal(self) -> str:
        """STREAM of run events, ids `<generation>-<n>`."""
        return self._key("journal")

    @property
    def definitions(self) -> str:
        """STREAM of definition events and of manual verbs' events, ids `<generation>-<n>`."""
        return self._key("definitions")

    @property
    def restore(self) -> str:
        """HASH phase, generation, jobs_done, jobs_total, runs_done, started_at (ms): how far a restoration is."""
        return self._key("restore")

    @property
    def reconcile(self) -> str:
        """HASH passes, phase, found, started_at, ended_at (ms): how far the recorder's passes of the reconciler are."""
        return self._key("reconcile")

    @property
    def signals(self) -> str:
        """Pub/sub channel: `due <ms>`, `work <queue>`, `cancel <run>`, `journal`."""
        return self._key("signals")
