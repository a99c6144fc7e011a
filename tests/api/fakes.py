"""A store and a ledger in memory, which keep the contracts that handlers rest on; the real ones have tests of their own."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from rsched.core.ids import RunId, split_run_id
from rsched.core.jobs.packed import JobHead, JobRecord, RunRecord, misfire_code, overlap_code, unpack_job
from rsched.core.schedule.misfire import NOTHING_MISSED, MisfireOutcome
from rsched.core.states import JobState, RunState
from rsched.ledger.stored import StoredCalendar, StoredRun, StoredSkip, with_attempts
from rsched.store.calendars import Exclusions
from rsched.store.jobs import PutReply, TriggerReply
from rsched.store.processes import LiveProcesses
from rsched.store.replies import VerbReply
from rsched.store.restore import RestoreProgress

NOW = 1_793_000_000_000


class FakeClock:
    def __init__(self) -> None:
        self.ms = NOW

    def wall_ms(self) -> int:
        return self.ms

    def boot_ms(self) -> int:
        return self.ms

    def perf_s(self) -> float:
        return self.ms / 1000

    async def sleep(self, ms: float) -> None:
        self.ms += int(ms)

    def sleep_sync(self, ms: float) -> None:
        self.ms += int(ms)


class _Part:
    """A part of the store: its verbs by the names that the fake has for them, looked up anew so that a test may replace one."""

    def __init__(self, fake: FakeStore, **verbs: str) -> None:
        self._fake, self._verbs = fake, verbs

    def __getattr__(self, verb: str) -> Any:
        return getattr(self._fake, self._verbs[verb])


@dataclass
class FakeStore:
    """What handlers are given is `parts`; what tests look at and change are the fields."""

    clock: FakeClock
    jobs: dict[str, JobRecord | JobHead] = field(default_factory=dict)
    due: dict[str, int | None] = field(default_factory=dict)
    runs: dict[str, RunRecord] = field(default_factory=dict)
    triggers: dict[tuple[str, str], str] = field(default_factory=dict)
    recorded_triggers: dict[tuple[str, str], int] = field(default_factory=dict)
    skips: list[Any] = field(default_factory=list)
    settled: list[MisfireOutcome] = field(default_factory=list)
    backfills: list[Any] = field(default_factory=list)
    payloads: dict[str, bytes] = field(default_factory=dict)
    calendars: dict[tuple[str, str], Exclusions] = field(default_factory=dict)
    full: bool = False
    bodies: dict[str, Any] = field(default_factory=dict)
    entries: int = 0
    opened: bool = True
    partitions: int = 1024
    workers: dict[str, int] = field(default_factory=lambda: {"w1": NOW})
    before_put: Any = None
    generation: str = "1"
    on_new_generation: Any = None
    restoration: RestoreProgress | None = None

    keys = SimpleNamespace(due=lambda p: p)

    @property
    def parts(self) -> Any:
        same = {verb: verb for verb in ("put", "pause", "resume", "backfill", "remove", "trigger")}
        return SimpleNamespace(
            connection=self, keys=self.keys, clock=_Part(self, now_ms="now_ms"),
            jobs=_Part(self, get="get_job", get_due_times="dues", **same),
            calendars=_Part(self, put="put_calendar", get_many="get_calendar"),
            runs=_Part(self, get="get_run", cancel="cancel"),
            restore=_Part(self, is_in_progress="restore_in_progress"),
            recovery=_Part(self, is_open="is_open"),
            journal=_Part(self, get_last_id="stream_last"),
            processes=_Part(self, list_live="live"),
            partitions=_Part(self, count_owned="owned"),
        )  # fmt: skip

    @property
    def client(self) -> Any:
        async def zscore(key: object, job: str) -> float | None:
            return self.due.get(job)

        return SimpleNamespace(zscore=zscore)

    async def ask(self, command: Any) -> Any:
        return await command

    def now_ms(self) -> int:
        return self.clock.ms

    def _entry(self) -> str:
        self.entries += 1
        return f"1-{self.entries - 1}"

    async def put(self, items: Any, *, atomic: bool) -> PutReply:
        if self.before_put is not None:
            hook, self.before_put = self.before_put, None
            await hook()
        (item,) = items
        old = self.jobs.get(item.job)
        head = old.head if isinstance(old, JobRecord) else old
        if head is not None and head.state is JobState.DELETED:
            tag = "deleted"
        elif item.expect == 0 and head is not None:
            tag = "exists"
        elif item.expect == 0 and self.full:
            tag = "full"
        elif item.expect and head is None:
            tag = "missing"
        elif item.expect and head is not None and head.version != item.expect:
            tag = "conflict"
        else:
            record = self.jobs[item.job] = unpack_job(item.value)
            self.bodies[item.job] = record.definition
            if item.due != "keep":
                self.due[item.job] = item.due
            return PutReply(True, self.clock.ms, self._entry(), ["ok"])
        return PutReply(False, self.clock.ms, None, [tag])

    async def get_job(self, job: str) -> Any:
        return self.jobs.get(job)

    async def restore_in_progress(self) -> bool:
        return self.restoration is not None and self.restoration.phase != "done"

    async def get_run(self, run: str) -> RunRecord | None:
        return self.runs.get(run)

    def _verb(self, job: str, expect: int, *, already: JobState | None, to: JobState) -> VerbReply:
        old = self.jobs.get(job)
        now = self.clock.ms
        if not isinstance(old, JobRecord):
            return VerbReply("missing", now, None, 0)
        if expect and old.head.version != expect:
            return VerbReply("conflict", now, None, 0)
        if old.head.state is already:
            return VerbReply("already", now, None, old.head.version)
        if old.head.state is JobState.COMPLETED and already is not None:
            return VerbReply("completed", now, None, 0)
        if old.head.state is JobState.COMPLETED and to is JobState.PAUSED:
            return VerbReply("completed", now, None, 0)
        head = old.head._replace(
            state=to,
            version=old.head.version + 1,
            schedule_version=old.head.schedule_version + 1,
            schedule_changed_at=now,
        )
        self.jobs[job] = head if to is JobState.DELETED else old._replace(head=head)
        return VerbReply("ok", now, self._entry(), head.version)

    async def pause(
        self, job: str, *, expect: int = 0, until: int | None = None, missed: Any = None, note: str = ""
    ) -> VerbReply:
        old = self.jobs.get(job)
        said = {"until": until or 0, "missed": misfire_code(missed) if missed else "", "note": note}
        if isinstance(old, JobRecord) and old.head.state is JobState.PAUSED and expect in (0, old.head.version):
            head = old.head._replace(**said)  # type: ignore[arg-type]
            if head == old.head:
                return VerbReply("already", self.clock.ms, None, head.version)
            head = head._replace(version=head.version + 1)
            self.jobs[job] = old._replace(head=head)
            return VerbReply("ok", self.clock.ms, self._entry(), head.version)
        reply = self._verb(job, expect, already=None, to=JobState.PAUSED)
        if reply.tag == "ok":
            now_paused, due = self.jobs[job], self.due[job]
            self.due[job] = None
            assert isinstance(now_paused, JobRecord)
            head = now_paused.head._replace(paused_from=due or 0, **said)  # type: ignore[arg-type]
            self.jobs[job] = now_paused._replace(head=head)
        return reply

    async def resume(
        self, job: str, *, expect: int, due: int | None, missed: MisfireOutcome = NOTHING_MISSED
    ) -> VerbReply:
        to = JobState.COMPLETED if due is None and missed == NOTHING_MISSED else JobState.ACTIVE
        reply = self._verb(job, expect, already=JobState.ACTIVE, to=to)
        if reply.tag == "ok":
            self.due[job] = due
            self.settled.append(missed)
            resumed = self.jobs[job]
            assert isinstance(resumed, JobRecord)
            self.jobs[job] = resumed._replace(head=resumed.head._replace(until=0, missed="", note=""))
            if missed.skipped is not None:
                self.skips.append(missed.skipped)
        return reply

    async def backfill(self, job: str, *, schedule_version: int, ranges: Any, counts: Any = ()) -> VerbReply:
        self.backfills.append((job, list(ranges), list(counts)))
        return VerbReply("ok", self.clock.ms, self._entry(), 0)

    async def dues(self, jobs: Any) -> dict[str, int]:
        return {job: due for job in jobs if (due := self.due.get(job)) is not None}

    async def get_calendar(self, team: str, names: Any) -> dict[str, Exclusions]:
        found = {name: self.calendars.get((team, name)) for name in names}
        return {name: c for name, c in found.items() if c is not None and c.entries is not None}

    async def put_calendar(self, team: str, name: str, *, expect: int, entries: Any) -> VerbReply:
        old = self.calendars.get((team, name))
        version = old.version if old is not None else 0
        there = old is not None and old.entries is not None
        if entries is None and not there:
            return VerbReply("missing", self.clock.ms, None, 0)
        if expect != (version if there else 0):
            return VerbReply("conflict", self.clock.ms, None, version)
        self.calendars[team, name] = Exclusions(version + 1, entries)
        return VerbReply("ok", self.clock.ms, self._entry(), version + 1)

    async def remove(self, job: str, *, expect: int = 0) -> VerbReply:
        return self._verb(job, expect, already=None, to=JobState.DELETED)

    async def trigger(
        self, job: str, *, suffix: str, repeat_key: str, overlap: Any = None, payload: bytes | None = None
    ) -> TriggerReply:
        old = self.jobs.get(job)
        now = self.clock.ms
        if not isinstance(old, JobRecord):
            return TriggerReply("missing", now, None, None)
        if old.head.state is JobState.COMPLETED:
            return TriggerReply("completed", now, None, None)
        if repeat_key and (job, repeat_key) in self.triggers:
            return TriggerReply("already", now, "1-0", self.triggers[job, repeat_key])  # type: ignore[arg-type]
        own = overlap_code(old.definition.overlap)
        if overlap not in (None, "allow") and not own:
            return TriggerReply("untracked", now, None, None)
        run = f"{job}:m-{now}-{suffix}"
        letter = (overlap_code(overlap) or "a") if own and overlap is not None else own
        flags = "M" + ("P" if payload is not None else "") + letter
        if payload is not None:
            self.payloads[run] = payload
        if repeat_key:
            self.triggers[job, repeat_key], self.recorded_triggers[job, repeat_key] = run, now
        self.runs[run] = RunRecord(RunState.QUEUED, 1, old.head.queue_key, 1, 0, 0, "", now, now, 0, flags)
        return TriggerReply("ok", now, self._entry(), run)  # type: ignore[arg-type]

    async def cancel(self, run: str) -> VerbReply:
        old = self.runs.get(run)
        if old is None or old.state.final:
            return VerbReply("missing", self.clock.ms, None, 0)
        if old.state is RunState.RUNNING:
            return VerbReply("cancelling", self.clock.ms, self._entry(), 0)
        self.runs[run] = old._replace(state=RunState.CANCELLED)
        return VerbReply("ok", self.clock.ms, self._entry(), 0)

    async def stream_last(self, stream: str) -> str:
        return "0-0"

    async def is_open(self) -> bool:
        return self.opened

    async def live(self) -> Any:
        return LiveProcesses(["sched"], self.workers)

    async def owned(self) -> int:
        return self.partitions


@dataclass
class FakeLedger:
    """Records at once what the store has; `forgotten` jobs are in the ledger alone, and those `ahead` are later there."""

    store: FakeStore
    forgotten: dict[str, JobRecord] = field(default_factory=dict)
    ahead: dict[str, JobRecord] = field(default_factory=dict)
    recorder: bool = True

    def _all(self) -> list[Any]:
        out = []
        for job, found in (self.forgotten | self.store.jobs | self.ahead).items():
            if isinstance(found, JobRecord):
                out.append(SimpleNamespace(job_id=job, head=found.head, definition=found.definition, deleted=False))
            else:
                out.append(SimpleNamespace(job_id=job, head=found, definition=self.store.bodies[job], deleted=True))
        return out

    async def job(self, job_id: str) -> Any:
        return next((j for j in self._all() if j.job_id == job_id), None)

    async def last_incarnation(self, team: str, handle: str) -> Any:
        found = [
            j for j in self._all() if j.definition.team == team and handle in (j.definition.name, j.definition.key)
        ]
        return max(found, key=lambda j: j.definition.incarnation, default=None)

    async def last_incarnations(self, handles: Any) -> Any:
        found = {owner: await self.last_incarnation(*owner) for owner in handles}
        return {owner: job for owner, job in found.items() if job is not None}

    async def jobs(self, *, team: Any, state: Any, limit: int, **_: Any) -> Any:
        found = [j for j in self._all() if not j.deleted and team in (None, j.definition.team)]
        return [j for j in found if state in (None, j.head.state)][:limit], None

    async def skipped(self, job_id: str) -> dict[str, int]:
        return {"paused": sum(s.total for s in self.store.skips)} if self.store.skips else {}

    async def skips_page(self, job_id: str, *, cursor: Any, limit: int) -> Any:
        now = self.store.clock.ms
        return [StoredSkip(s.first, s.last, s.total, "paused", now) for s in self.store.skips][:limit], None

    async def payload(self, run_id: str) -> bytes | None:
        return self.store.payloads.get(run_id)

    async def triggered_at(self, job_id: str, key_hash: str, *, since: int) -> int | None:
        at = self.store.recorded_triggers.get((job_id, key_hash))
        return at if at is not None and at >= since else None

    async def occurrences_run(self, job_id: str, *, since: int, until: int, schedule_version: int) -> set[int]:
        found = (split_run_id(r) for r in self.store.runs if r.startswith(job_id))
        return {s[1] for s in found if s is not None and not s[2] and since <= s[1] < until}

    async def open_catchups(self, job_id: str, *, schedule_version: int) -> list[tuple[int, int]]:
        return [r for job, ranges, _ in self.store.backfills if job == job_id for r in ranges]

    async def exclusions(self, names: Any) -> Any:
        found = {key: self.store.calendars[key] for key in names if key in self.store.calendars}
        return {key: StoredCalendar(*key, c.version, NOW, c.entries) for key, c in found.items()}

    async def calendars_page(self, team: str, *, cursor: Any, limit: int) -> Any:
        found = await self.exclusions(self.store.calendars)
        return [c for c in found.values() if c.team == team and c.entries is not None][:limit], None

    async def jobs_that_may_name(self, team: str, name: str) -> Any:
        return [j for j in self._all() if not j.deleted and j.definition.team == team]

    def _run(self, run_id: str) -> StoredRun:
        record = self.store.runs[run_id]
        ended = record.started_at + 250 if record.state.final and record.started_at else None
        return with_attempts(StoredRun(RunId(run_id), record, ended, None), [])

    async def run(self, run_id: str) -> Any:
        return self._run(run_id) if run_id in self.store.runs else None

    async def runs(self, job_id: str, *, cursor: Any, limit: int, status: Any = None) -> Any:
        found = [self._run(r) for r in self.store.runs if r.startswith(job_id)]
        return [r for r in found if status in (None, r.record.state)][:limit], None

    async def dead_letters(self, *, team: Any, cursor: Any, limit: int) -> Any:
        return [self._run(r) for r in self.store.runs if self.store.runs[r].state is RunState.DEAD], None

    async def ping(self) -> None:
        return None

    async def check_schema(self) -> None:
        return None

    async def recorder_alive(self, shard: str) -> bool:
        return self.recorder


@dataclass
class FakeWaiter:
    answers: bool = True
    waited: list[str] = field(default_factory=list)

    async def wait_recorded(self, shard: str, stream: str, journal_id: str, timeout_s: float) -> bool:
        self.waited.append(f"{shard} {stream} {journal_id}")
        return self.answers
