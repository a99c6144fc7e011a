"""Claiming: a partition is touched when its head is within two seconds, then everything in the look-ahead is taken."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping

from rsched.core.ids import JobId
from rsched.core.jobs.packed import JobRecord
from rsched.core.schedule.misfire import SkippedRange, apply_misfire_policy, oldest_caught_up
from rsched.core.schedule.schedule import Schedule
from rsched.runtime.clock import Clock
from rsched.runtime.metrics import CLAIMED, MISFIRES
from rsched.scheduler.ports import ClaimStore
from rsched.scheduler.schedules import Schedules
from rsched.store.run_values import MisfireItem, MissingOccurrences

WITHIN_MS = 2000
CALENDAR_LENGTH = 128
_SCRIPT_BUDGET_S = 0.003


class Claimer:
    """`epochs`: the partitions to claim from, by number; None: all, with ownership unchecked."""

    def __init__(
        self,
        store: ClaimStore,
        scheduler: str,
        *,
        epochs: Mapping[int, int] | None,
        lookahead_ms: int,
        batch: int,
        lost: Callable[[list[int]], None],
        claimed: Callable[[], None],
        clock: Clock,
        log: logging.Logger,
    ) -> None:
        self._store, self._scheduler, self._epochs = store, scheduler, epochs
        self._lookahead_ms, self._largest, self._batch = lookahead_ms, batch, batch
        self._lost, self._claimed, self._clock = lost, claimed, clock
        self._schedules = Schedules(store, log=log)
        self.next_head: int | None = None

    async def step(self) -> bool:
        """Claims one batch; more: some partition still has something due."""
        within = min(WITHIN_MS, self._lookahead_ms)
        due, self.next_head = await self._store.partitions.list_due(within_ms=within)
        epochs = self._epochs
        partitions = [(p, 0) for p in due] if epochs is None else [(p, epochs[p]) for p in due if p in epochs]
        if not partitions:
            return False
        began = self._clock.perf_s()
        reply = await self._store.runs.claim(
            self._scheduler, horizon_ms=self._lookahead_ms, limit=self._batch, partitions=partitions
        )
        self._adapt(self._clock.perf_s() - began, reply.total)
        if reply.stale:
            self._lost(reply.stale)
        if reply.total:
            self._store.connection.metrics.add(CLAIMED, by=reply.total)
            self._claimed()
        if reply.needs:
            await self._fill(reply.needs)
        if reply.late and self._store.clock.stepped_recently:
            # They stay due: what a clock that stepped makes too late may be on time once it is set right.
            return bool(reply.total or reply.needs)
        if reply.late:
            await self._settle([job for job, _ in reply.late], dict(reply.late), now=reply.now)
        return bool(reply.more or reply.total or reply.needs or reply.late)

    def _adapt(self, took_s: float, claimed: int) -> None:
        """Keeps the time of a script, which stops everybody else, near its budget."""
        if claimed and took_s > 2 * _SCRIPT_BUDGET_S:
            self._batch = max(50, int(self._batch * 0.8))
        elif took_s < _SCRIPT_BUDGET_S:
            self._batch = min(self._largest, int(self._batch * 1.2) + 1)

    async def _fill(self, needs: list[MissingOccurrences]) -> None:
        """Computes the calendars that claim asked for: each distinct schedule once, whatever the number of its jobs."""
        found = await self._schedules.of_all([need.job for need in needs])
        for need in needs:
            if need.job not in found:
                continue
            _, schedule = found[need.job]
            try:
                occurrences = schedule.upcoming(need.after, CALENDAR_LENGTH)
            except Exception as error:  # noqa: BLE001 - whatever is wrong with one job must not stop the others
                await self._schedules.invalidate(need.job, error)
                continue
            await self._store.partitions.cache_occurrences(
                need.schedule, after=need.after, occurrences=occurrences, ended=len(occurrences) < CALENDAR_LENGTH
            )

    async def _settle(self, jobs: list[JobId], due: dict[JobId, int], *, now: int) -> None:
        items = []
        for job, (record, schedule) in (await self._schedules.of_all(jobs)).items():
            try:
                items.append(misfire_item(record, schedule, due=due[job], now=now, job=job))
            except Exception as error:  # noqa: BLE001 - as above
                await self._schedules.invalidate(job, error)
        if items:
            await self._store.runs.resolve_misfires(items)
            self._store.connection.metrics.add(MISFIRES, by=len(items))
            self._claimed()


def misfire_item(record: JobRecord, schedule: Schedule, *, due: int, now: int, job: JobId) -> MisfireItem:
    """What the job's misfire policy makes of the occurrences from `due` on that were missed by `now` (ms).

    run_once looks at all up to now; the others at those later than the grace, so that what lies within it is claimed as
    ever. With a window, an occurrence is late only once that has passed, too.
    """
    definition, head = record.definition, record.head
    policy = definition.misfire_policy
    limit = now if policy == "run_once" else now - head.grace_ms - head.window_ms
    found = apply_misfire_policy(
        schedule, policy, since=due - 1, until=limit, oldest=oldest_caught_up(definition.misfire, now)
    )
    skipped = found.skipped or SkippedRange(0, 0, 0)
    return MisfireItem(
        job,
        head.schedule_version,
        due,
        following=schedule.next_after(limit),
        run_at=found.run_at,
        first=skipped.first,
        last=skipped.last,
        skipped=skipped.total,
        catch_up=found.catch_up,
    )
