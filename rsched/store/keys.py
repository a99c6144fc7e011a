"""Every key that rsched uses in Redis is built here (and, for scripts, by lua/lib/key.lua in the same shape).

A key is `<prefix>:{<shard>}:<kind>[:<part>...]`; the hash tag makes a shard the unit of atomicity. Parts are slugs and ids only.
Instants are ms since 1970 by Redis' clock.
"""

from __future__ import annotations

from typing import NamedTuple


class Keys(NamedTuple):
    """The keys of one shard.

    Attributes:
        prefix: What all keys of a deployment begin with.
        shard: The hash tag.
    """

    prefix: str
    shard: str

    def _key(self, *parts: str | int) -> str:
        return f"{self.prefix}:{{{self.shard}}}:{':'.join(map(str, parts))}"

    @property
    def marker(self) -> str:
        """The key `shard`: a HASH that says on which server, and under which generation, the shard is open.

        Its fields are generation, state (open, closed, recovering), run_id and repl_id of the server, closed_at (ms),
        recovery_grace_ms (a duration), recovery_grace_until (ms), lost (1 where writes were missing), fence_seen, load_level
        (0 to 2) and tzdata (the release that schedules were computed with).
        """
        return self._key("shard")

    def due(self, partition: int) -> str:
        """The key `due:<partition>:0`: a ZSET of jobs by when they are next due (ms). A partition has one slice at first."""
        return self._key("due", partition, 0)

    @property
    def heads(self) -> str:
        """The key `heads`: a ZSET of partitions by the earliest due time in each (ms)."""
        return self._key("heads")

    def jobs(self, partition: int) -> str:
        """The key `jobs:<partition>:0`: a HASH of jobs, each a head, a newline and the body. There is one bucket at first."""
        return self._key("jobs", partition, 0)

    def body(self, partition: int) -> str:
        """The key `body:<partition>`: a HASH of the bodies of jobs, for bodies over 1 KB."""
        return self._key("body", partition)

    def occurrences(self, schedule_id: str) -> str:
        """The key `occurrences:<schedule>`: a ZSET, the occurrence cache of a schedule.

        Members are upcoming occurrences by their own instant (ms), contiguous after the member `from`; a member `end` stands
        where there are no more.
        """
        return self._key("occurrences", schedule_id)

    @property
    def runs(self) -> str:
        """The key `runs`: a HASH of packed run records, of runs that are not final."""
        return self._key("runs")

    @property
    def staged(self) -> str:
        """The key `staged`: a ZSET of runs that wait for their instant, by when they are released (ms).

        Members are `run|queue_key`, with `|letter` of the overlap policy where the job has one.
        """
        return self._key("staged")

    @property
    def retries(self) -> str:
        """The key `retries`: a ZSET of runs in a backoff, as `run|queue_key`, by when they are released (ms)."""
        return self._key("retries")

    @property
    def catchup(self) -> str:
        """The key `catchup`: a ZSET of catch-up ranges by when runs may be made of them next (ms).

        Members are `job|start|end|schedule_version|flags|made_at`, instants in ms.
        """
        return self._key("catchup")

    def active(self, job: str) -> str:
        """The key `active:<job>`: a ZSET of the active runs of a job whose runs must not overlap.

        The score is 0, or the instant (ms) at which the run was due while it waits for its turn.
        """
        return self._key("active", job)

    @property
    def payloads(self) -> str:
        """The key `payloads`: a HASH of the payloads (msgpack) of runs with one of their own."""
        return self._key("payloads")

    @property
    def calendars(self) -> str:
        """The key `calendars`: a HASH of holiday calendars by `team/name`.

        A value is a version, a newline and a msgpack list of dates and date ranges; nothing after the newline means deleted.
        """
        return self._key("calendars")

    @property
    def pauses(self) -> str:
        """The key `pauses`: a ZSET of jobs by when their pause ends by itself (ms)."""
        return self._key("pauses")

    @property
    def paces(self) -> str:
        """The key `paces`: a HASH of jobs, each `ms|count`: how many catch-up runs it got since that instant.

        The key is gone a minute after the last.
        """
        return self._key("paces")

    @property
    def refreshes(self) -> str:
        """The key `refreshes`: a HASH of changed calendars whose jobs are to be refreshed: `team/name/version` to an instant."""
        return self._key("refreshes")

    def queue(self, queue_key: str) -> str:
        """The key `q:<queue>:<team>:<priority>`: a STREAM of the runnable runs of one queue key, each with the field `r`."""
        return self._key("q", queue_key)

    def ready(self, queue: str) -> str:
        """The key `ready:<queue>`: a ZSET of teams that have work now, by virtual time."""
        return self._key("ready", queue)

    def virtual(self, queue: str) -> str:
        """The key `virtual:<queue>`: a ZSET of teams by the virtual time at which they last left `ready`.

        A team stays in it while that is ahead of the queue's own virtual time, which is the member "".
        """
        return self._key("virtual", queue)

    @property
    def leases(self) -> str:
        """The key `leases`: a ZSET of runs by when their lease ends (ms); the only authority on who may work."""
        return self._key("leases")

    @property
    def owners(self) -> str:
        """The key `owners`: a HASH of partitions, each `scheduler|epoch`."""
        return self._key("owners")

    @property
    def schedulers(self) -> str:
        """The key `schedulers`: a ZSET of schedulers by when their lease ends (ms)."""
        return self._key("schedulers")

    @property
    def workers(self) -> str:
        """The key `workers`: a HASH of workers, each `ms at which it was last heard of|queues|lease in ms`."""
        return self._key("workers")

    @property
    def requests(self) -> str:
        """The key `requests`: a HASH of workers, each the number of its last fetch, then the runs that it was given."""
        return self._key("requests")

    @property
    def finishes(self) -> str:
        """The key `finishes`: a HASH of workers, each the number of its last finish, by which a repeat is answered."""
        return self._key("finishes")

    @property
    def triggers(self) -> str:
        """The key `triggers`: a ZSET of `job|hash of the idempotency key` by the instant of the manual run (ms), for a day."""
        return self._key("triggers")

    @property
    def unconfirmed(self) -> str:
        """The key `unconfirmed`: a SET of workers that have not adopted since the shard was opened."""
        return self._key("unconfirmed")

    @property
    def starts(self) -> str:
        """The key `starts`: a HASH of queues, each with how many attempts were ever handed out."""
        return self._key("starts")

    @property
    def quarantine(self) -> str:
        """The key `quarantine`: a HASH of bad entries that were taken out of the way, each with what it was."""
        return self._key("quarantine")

    @property
    def fence(self) -> str:
        """The key `fence`: an INT, the shard's fence counter."""
        return self._key("fence")

    @property
    def journal(self) -> str:
        """The key `journal`: a STREAM of run events, whose ids are `<generation>-<sequence>`."""
        return self._key("journal")

    @property
    def definitions(self) -> str:
        """The key `definitions`: a STREAM of definition events and of those of manual verbs, with ids as `journal` has."""
        return self._key("definitions")

    @property
    def restore(self) -> str:
        """The key `restore`: a HASH of how far a restore is.

        Its fields are phase (runs, jobs, done), generation, jobs_done, jobs_total, runs_done, started_at (ms), and resync
        where one is wanted.
        """
        return self._key("restore")

    @property
    def reconcile(self) -> str:
        """The key `reconcile`: a HASH of how far the recorder's passes of the reconciler are.

        Its fields are passes, phase, found, started_at and ended_at (both ms).
        """
        return self._key("reconcile")

    @property
    def signals(self) -> str:
        """The Pub/Sub channel `signals`, with the messages `due <ms>`, `work <queue>`, `cancel <run>` and `journal`."""
        return self._key("signals")
