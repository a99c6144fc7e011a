"""New time-zone data, or another content of a calendar: the jobs whose schedule that changes get their due times anew."""

from __future__ import annotations

import logging
from collections import Counter

import msgspec

from rsched.core.ids import PARTITIONS, JobId
from rsched.core.jobs.packed import JobHead, JobRecord, unpack_head
from rsched.core.schedule import zones
from rsched.core.schedule.schedule import Schedule, calendar_names
from rsched.core.states import JobState
from rsched.scheduler.ports import RefreshStore
from rsched.scheduler.schedules import Schedules
from rsched.store.jobs import PutItem

_STATES = (JobState.ACTIVE, JobState.PAUSED)


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """What a refresh found and did.

    Attributes:
        looked_at: Jobs whose schedule is computed.
        changed: Those whose schedule means another thing now.
        moved: Of the changed ones, those that are next due at another instant.
        completed: Those that have no occurrence left.
        invalid: Those that cannot be computed any more, and were marked as invalid.
        late: Those that have late occurrences, to which the misfire policy comes first; they were left alone.
        zones: The changed ones by their time zone.
    """

    looked_at: int
    changed: int
    moved: int
    completed: int
    invalid: int
    late: int
    zones: dict[str, int]


class Refresher:
    """Goes through all jobs, page by page. Safe beside everything else: a job that changes meanwhile is looked at again."""

    def __init__(self, store: RefreshStore, *, log: logging.Logger) -> None:
        self._store = store
        self._schedules = Schedules(store, log=log)

    async def refresh(self, *, team: str | None = None, calendar: str | None = None) -> Report:
        """All jobs, or those of a team that name a calendar."""
        before = self._schedules.quarantined
        counts: Counter[str] = Counter()
        by_zone: Counter[str] = Counter()
        for partition in range(PARTITIONS):
            cursor = -1
            while cursor:
                cursor, page = await self._store.jobs.read_heads(partition, cursor=max(cursor, 0))
                wanted = [job for job, value in page if _may_change(value, team)]
                if wanted:
                    await self._page(wanted, calendar, counts, by_zone)
        return Report(
            looked_at=counts["looked_at"],
            changed=counts["changed"],
            moved=counts["moved"],
            completed=counts["completed"],
            invalid=self._schedules.quarantined - before,
            late=counts["late"],
            zones=dict(sorted(by_zone.items())),
        )

    async def _page(self, jobs: list[JobId], calendar: str | None, counts: Counter[str], by_zone: Counter[str]) -> None:
        first = True
        while jobs:
            found: dict[JobId, tuple[JobRecord, Schedule]] = {}
            for state in _STATES:
                found |= await self._schedules.of_all(jobs, state=state)
            if calendar is not None:
                found = {j: f for j, f in found.items() if calendar in calendar_names(f[0].definition)}
            if first:
                counts["looked_at"] += len(found)
                first = False
            changed = {j: f for j, f in found.items() if f[0].head.arg != f[1].arg}
            jobs = await self._write(changed, counts, by_zone)

    async def _write(
        self, changed: dict[JobId, tuple[JobRecord, Schedule]], counts: Counter[str], by_zone: Counter[str]
    ) -> list[JobId]:
        """The jobs that were changed by others meanwhile."""
        now, dues = await self._store.clock.read(), await self._store.jobs.get_due_times(list(changed))
        items = []
        for job, (record, schedule) in changed.items():
            if record.head.state is JobState.ACTIVE and dues.get(job, now + 1) <= now:
                # What it missed is settled first, by its misfire policy.
                counts["late"] += 1
                continue
            due = schedule.next_after(now)
            put_due = due if record.head.state is JobState.ACTIVE else None
            items.append(
                PutItem(job, record.head.version, put_due, _renewed(record, schedule, now=now, due=due).pack())
            )
        if not items:
            return []
        reply = await self._store.jobs.put(items, atomic=False)
        for item, tag in zip(items, reply.tags, strict=True):
            if tag == "ok":
                record, schedule = changed[item.job]
                counts["changed"] += 1
                counts["moved"] += item.due != dues.get(item.job) and record.head.state is JobState.ACTIVE
                counts["completed"] += item.due is None and record.head.state is JobState.ACTIVE
                by_zone[str(schedule.zone)] += 1
        return [item.job for item, tag in zip(items, reply.tags, strict=True) if tag == "conflict"]


def _may_change(value: bytes, team: str | None) -> bool:
    try:
        head = unpack_head(value)
    except (ValueError, KeyError):
        return False
    return head.kind == "c" and head.state in _STATES and (team is None or head.queue_key.split(":")[1] == team)


def _renewed(record: JobRecord, schedule: Schedule, *, now: int, due: int | None) -> JobRecord:
    head: JobHead = record.head
    head = head._replace(
        version=head.version + 1,
        kind=schedule.kind,
        arg=schedule.arg,
        end_ms=schedule.end_ms or 0 if head.window_ms else 0,
    )
    # Nothing of a paused job is staged, and what it missed is still to be settled.
    if head.state is JobState.ACTIVE:
        state = JobState.ACTIVE if due is not None else JobState.COMPLETED
        # What is staged is claimed anew; what is being caught up goes on.
        head = head._replace(
            state=state,
            schedule_version=head.schedule_version + 1,
            schedule_changed_at=now,
            keeps=head.keeps or head.schedule_version,
        )
    return record._replace(head=head)


class RefreshLoop:
    """Refreshes jobs when this process brings newer time-zone data than was used before, and when a calendar changed."""

    def __init__(self, store: RefreshStore, *, log: logging.Logger) -> None:
        self._store, self._log = store, log
        self._refresher = Refresher(store, log=log)
        self._told: str | None = None
        self.waits = False

    async def step(self) -> bool:
        """waits: after it, some jobs have to settle what they missed, or to come back, first."""
        self.waits = False
        generation = await self._all_there()
        if generation is None:
            self.waits = True
            return False
        own, stored = zones.tzdata_version(), await self._store.refreshes.get_tzdata()
        if stored is None or stored < own:
            report = await self._refresher.refresh()
            self.waits = report.late > 0 or await self._all_there() != generation
            if not self.waits:
                await self._store.refreshes.set_tzdata(own)
                _tell(self._log, f"schedules go by tzdata {own} now", report, before=stored or "")
            return False
        if stored > own and self._told != stored:
            self._told = stored
            self._log.warning("this process has tzdata %s, others have %s: upgrade it", own, stored)
        for team, name, version in await self._store.refreshes.list_pending():
            report = await self._refresher.refresh(team=team, calendar=name)
            waits = report.late > 0 or await self._all_there() != generation
            self.waits |= waits
            if not waits:
                await self._store.refreshes.finish(team, name, version)
                _tell(self._log, "a calendar changed", report, calendar=f"{team}/{name}")
        return False

    async def _all_there(self) -> int | None:
        """The generation in force; None while definitions are being restored: going through all jobs would miss some."""
        marker = await self._store.recovery.get_marker()
        return None if marker is None or await self._store.restore.is_in_progress() else marker.generation


def _tell(log: logging.Logger, text: str, report: Report, **fields: object) -> None:
    if report.changed:
        log.info(text, extra={"fields": {**fields, **msgspec.structs.asdict(report)}})
