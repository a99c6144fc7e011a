"""From events to the rows of one batch: merged, checked one by one, in key order."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date, timedelta
from functools import lru_cache
from typing import Any, NamedTuple

from rsched.core.ids import split_run_id
from rsched.core.jobs.model import decode_definition
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
    unpack_head,
)
from rsched.core.states import JobState, RunState
from rsched.ledger.failures import REFUSED

GIVEN_BACK = "requeued"
DAY_MS = 86_400_000
_EPOCH = date(1970, 1, 1)
_ENDINGS = frozenset({RunState.RETRYING, RunState.DEAD, RunState.CANCELLED, RunState.SKIPPED})

Row = tuple[Any, ...]


@lru_cache(maxsize=64)
def _day(number: int) -> date:
    return _EPOCH + timedelta(days=number)


def claimed_on(claimed_at: int) -> date:
    """The day (UTC) whose partition a run is in. OverflowError outside of years 1 to 9999."""
    return _day(claimed_at // DAY_MS)


def day_starts_at(day: date) -> int:
    """ms."""
    return (day - _EPOCH).days * DAY_MS


def recordable(text: str) -> str:
    """The text, with what Postgres takes in none (NUL, lone surrogates) written out."""
    if text.isascii() and "\0" not in text:
        return text
    return text.encode("utf-8", "backslashreplace").decode().replace("\0", "\\0")


class Refused(NamedTuple):
    """An event that can't be recorded, and why."""

    event: Event
    reason: str


class Batch:
    """Rows by their key. Of a run the greatest (fence, revision) stays, of a job the greatest (version, state rank)."""

    def __init__(self, shard: str, *, now_ms: int) -> None:
        self._shard, self._now = shard, now_ms
        self.runs: dict[str, RunEvent] = {}
        self.attempts: dict[tuple[date, str, int], RunEvent] = {}
        self.jobs: dict[str, Row] = {}
        self.skips: set[SkipEvent] = set()
        self.ranges: dict[tuple[str, int, int], RangeEvent] = {}
        self.exclusions: dict[tuple[str, str], CalendarEvent] = {}
        self.payloads: dict[str, bytes] = {}
        self.triggers: dict[tuple[str, str], int] = {}
        self.watermarks: dict[int, int] = {}
        self.workers: dict[str, WorkerEvent] = {}
        self.quarantine: list[QuarantineEvent] = []
        self.refused: list[Refused] = []

    def add(self, events: Iterable[Event]) -> None:
        """Events that make no row go to `refused`."""
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
                        and detail != GIVEN_BACK
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
            self._job(event)
        elif isinstance(event, SkipEvent):
            self.skips.add(event)
        elif isinstance(event, RangeEvent):
            key = (event.job, event.made_at, event.end)
            if key not in self.ranges or self.ranges[key].start < event.start:
                self.ranges[key] = event
        elif isinstance(event, CalendarEvent):
            calendar = (event.team, event.name)
            if calendar not in self.exclusions or self.exclusions[calendar].version < event.version:
                self.exclusions[calendar] = event
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
            self.quarantine.append(event)

    def _job(self, event: JobEvent) -> None:
        head = unpack_head(event.value)
        before = self.jobs.get(event.job)
        rank = (head.version, head.state.rank)
        if before is not None and (before[7], before[8]) > rank:
            return
        ended = head.state in (JobState.COMPLETED, JobState.DELETED)
        body = event.value.partition(b"\n")[2]
        if not body:
            # A tombstone: the row's own definition stays, be it in this batch or in the table (team NULL tells).
            if before is None or before[2] is None:
                known: Row = (None, None, "", 0, [], 0, 0)
            else:
                known = (before[2], before[3], before[4], before[5], before[9], before[10], before[11])
                event = JobEvent(event.job, event.value + before[13].partition(b"\n")[2])
        else:
            d = decode_definition(body)
            handle = d.name if d.name is not None else d.key if d.key is not None else event.job
            known = (d.team, d.name, handle, d.incarnation, d.tags, d.created_at, d.updated_at)
        team, name, handle_, incarnation, tags, created, updated = known
        self.jobs[event.job] = (
            event.job, self._shard, team, name, handle_, incarnation, head.state.value, head.version,
            head.state.rank, tags, created, updated, self._now if ended else None, event.value,
        )  # fmt: skip

    def run_rows(self) -> list[Row]:
        """In the order of the key, for COPY."""
        rows = []
        for event in self.runs.values():
            run, r, at, detail, _ = event
            try:
                if split_run_id(run) is None:
                    raise ValueError(f"no run id: {run[:80]!r}")
                day = claimed_on(r.claimed_at)
            except REFUSED as error:
                self.refused.append(Refused(event, str(error)))
                continue
            state = r.state
            error_text = recordable(detail) if detail and state in _ENDINGS and detail != GIVEN_BACK else None
            rows.append(
                (day, run, state.value, r.revision, recordable(r.queue_key), r.schedule_version, r.attempt, r.fence, recordable(r.worker),
                 r.claimed_at, r.due_at, r.started_at, recordable(r.flags), at if state.final else None, error_text)
            )  # fmt: skip
        rows.sort(key=_run_key)
        return rows

    def attempt_rows(self) -> list[Row]:
        rows = []
        for (day, run, attempt), (_, r, at, detail, was_due) in sorted(self.attempts.items(), key=lambda item: item[0]):
            rows.append(
                (day, run, attempt, r.fence, r.state.value, recordable(r.worker), was_due or r.due_at, r.started_at, at,
                 recordable(detail))
            )  # fmt: skip
        return rows

    def job_rows(self) -> list[Row]:
        return sorted(self.jobs.values(), key=lambda row: row[0])


def _run_key(row: Row) -> Row:
    return row[:2]
