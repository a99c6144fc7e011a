"""From events to the rows of one batch: merged, checked one by one, in key order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import date
from typing import Any, NamedTuple

from rsched.core.jobs.packed import (
    CalendarEvent,
    Event,
    JobEvent,
    PayloadEvent,
    QuarantineEvent,
    RangeEvent,
    RunEvent,
    SkipEvent,
    TriggerEvent,
    WatermarkEvent,
    WorkerEvent,
)
from rsched.core.states import FINAL, RunState
from rsched.ledger.failures import REFUSED
from rsched.ledger.keys import EPOCH_2000_MS, claimed_on, day_number, run_key, timestamp
from rsched.ledger.write.job_rows import JobRow, job_row

REQUEUED = "requeued"
_ENDINGS = frozenset({RunState.RETRYING, RunState.DEAD, RunState.CANCELLED, RunState.SKIPPED})
# Names of workers are as long as their hosts' names; an index takes no more than some 2,700 bytes.
_NAME_CHARACTERS = 500

Row = tuple[Any, ...]


def recordable(text: str) -> str:
    """Returns the text with what Postgres takes in no text (NUL, lone surrogates) written out."""
    if text.isascii() and "\0" not in text:
        return text
    return text.encode("utf-8", "backslashreplace").decode().replace("\0", "\\0")


def dictionary_name(text: str) -> str:
    """Returns a queue key or a worker's name as the dictionaries have it."""
    return recordable(text)[:_NAME_CHARACTERS]


class Refused(NamedTuple):
    """An event that can't be recorded, and why."""

    event: Event
    reason: str


class Ids(NamedTuple):
    """Ids in the dictionaries, by what events have."""

    queue_keys: Mapping[str, int]
    workers: Mapping[str, int]


class RunRows(NamedTuple):
    """Rows for the staging tables of runs, in the order of their keys."""

    unfinished: list[Row]
    finished: list[Row]


class Batch:
    """Rows by their key. Of a run the greatest (fence, revision) stays, of a job the greatest (version, state rank)."""

    def __init__(self, shard: str, *, now_ms: int) -> None:
        self._shard, self._now = shard, now_ms
        self.runs: dict[str, RunEvent] = {}
        self.attempts: dict[tuple[date, str, int], RunEvent] = {}
        self.jobs: dict[str, JobRow] = {}
        self.skips: set[SkipEvent] = set()
        self.ranges: dict[tuple[str, int, int], RangeEvent] = {}
        self.calendars: dict[tuple[str, str], CalendarEvent] = {}
        self.payloads: dict[str, bytes] = {}
        self.triggers: dict[tuple[str, str], int] = {}
        self.watermarks: dict[int, int] = {}
        self.workers: dict[str, WorkerEvent] = {}
        self.unreadable: list[QuarantineEvent] = []
        self.refused: list[Refused] = []

    def add(self, events: Iterable[Event]) -> None:
        """Adds events; those that make no row go to `refused`."""
        runs = self.runs
        for event in events:
            try:
                # Nearly all events are runs' events: these come first and are kept short.
                if type(event) is RunEvent:
                    run, record, _, detail, _ = event
                    before = runs.get(run)
                    if before is None or (record.fence, record.revision) >= (
                        before.record.fence,
                        before.record.revision,
                    ):
                        runs[run] = event
                    state = record.state
                    if (
                        (state is RunState.RETRYING or state is RunState.DEAD)
                        and record.attempt > 0
                        and detail
                        and detail != REQUEUED
                    ):
                        self._attempt(event)
                else:
                    self._other(event)
            except REFUSED as error:
                self.refused.append(Refused(event, f"{type(error).__name__}: {error}"))

    def _attempt(self, event: RunEvent) -> None:
        key = (claimed_on(event.record.claimed_at), event.run, event.record.attempt)
        before = self.attempts.get(key)
        if before is None or event.record.fence > before.record.fence:
            self.attempts[key] = event

    def _other(self, event: Event) -> None:
        if isinstance(event, JobEvent):
            row = job_row(event, shard=self._shard, now_ms=self._now, before=self.jobs.get(event.job))
            if row is not None:
                self.jobs[event.job] = row
        elif isinstance(event, SkipEvent):
            self.skips.add(event)
        elif isinstance(event, RangeEvent):
            key = (event.job, event.made_at, event.end)
            if key not in self.ranges or self.ranges[key].start < event.start:
                self.ranges[key] = event
        elif isinstance(event, CalendarEvent):
            calendar = (event.team, event.name)
            if calendar not in self.calendars or self.calendars[calendar].version < event.version:
                self.calendars[calendar] = event
        elif isinstance(event, PayloadEvent):
            self.payloads[event.run] = event.payload
        elif isinstance(event, TriggerEvent):
            keyed = (event.job, event.hash)
            self.triggers[keyed] = max(event.at, self.triggers.get(keyed, 0))
        elif isinstance(event, WatermarkEvent):
            self.watermarks[event.partition] = max(event.ms, self.watermarks.get(event.partition, 0))
        elif isinstance(event, WorkerEvent):
            self.workers[event.worker] = event
        elif isinstance(event, QuarantineEvent):
            self.unreadable.append(event)

    def names(self) -> tuple[set[str], set[str]]:
        """Returns the queue keys and the workers that the rows name."""
        records = [e.record for e in self.runs.values()] + [e.record for e in self.attempts.values()]
        queue_keys, workers = {r.queue_key for r in records}, {r.worker for r in records}
        return queue_keys, workers

    def run_rows(self, ids: Ids) -> RunRows:
        """Returns the rows of the runs for COPY; a run that makes none goes to `refused`."""
        unfinished, finished = list[Row](), list[Row]()
        queue_keys, workers = ids
        for run, r, at, detail, _ in self.runs.values():
            try:
                job_id, scheduled_at, manual = run_key(run)
                day = day_number(claimed_on(r.claimed_at))
            except REFUSED as error:
                self.refused.append(Refused(self.runs[run], str(error)))
                continue
            state, due_at, started_at, flags = r.state, r.due_at, r.started_at, r.flags
            # Instants as keys.timestamp has them, written out as this is done for each of a million rows.
            row = (
                job_id, (scheduled_at - EPOCH_2000_MS) * 1000, manual, day, state.value, r.revision,
                queue_keys[r.queue_key], r.schedule_version, r.attempt, r.fence, workers[r.worker],
                (r.claimed_at - EPOCH_2000_MS) * 1000,
                (due_at - EPOCH_2000_MS) * 1000 if due_at else None,
                (started_at - EPOCH_2000_MS) * 1000 if started_at else None,
                recordable(flags) if flags else "",
                recordable(detail) if detail and state in _ENDINGS and detail != REQUEUED else "",
            )  # fmt: skip
            if state in FINAL:
                finished.append((*row, timestamp(at)))
            else:
                unfinished.append(row)
        # Their keys come first, and differ.
        unfinished.sort()
        finished.sort()
        return RunRows(unfinished, finished)

    def attempt_rows(self, ids: Ids) -> list[Row]:
        """Returns the rows of failed attempts for COPY."""
        rows = []
        for (day, run, attempt), event in self.attempts.items():
            _, r, at, detail, was_due = event
            try:
                job_id, scheduled_at, manual = run_key(run)
            except ValueError:
                continue  # its run is refused, and the event with it
            due = was_due or r.due_at
            rows.append(
                (job_id, timestamp(scheduled_at), manual, day_number(day), attempt, r.fence, r.state.value,
                 ids.workers[r.worker], timestamp(due) if due else None,
                 timestamp(r.started_at) if r.started_at else None, timestamp(at), recordable(detail))
            )  # fmt: skip
        rows.sort(key=lambda row: (*row[:3], row[4], row[3]))
        return rows

    def job_rows(self) -> list[JobRow]:
        """Returns the rows of jobs for COPY."""
        return sorted(self.jobs.values(), key=lambda row: row.job_id)
