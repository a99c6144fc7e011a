"""When jobs that come back from the ledger are due: the first occurrence that was not claimed, as far as the ledger knows."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence

from rsched.core import schedule as schedules
from rsched.core.errors import RschedError
from rsched.core.ids import JobId, partition_of, run_id_of
from rsched.core.model import decode_definition
from rsched.core.packed import JobHead, unpack_head
from rsched.core.schedule import Schedule
from rsched.core.states import JobState
from rsched.ledger import Ledger
from rsched.ledger.rebuild import LedgerJob
from rsched.runtime.log import get_logger

_log = get_logger("rsched.recorder")
# The longest look-ahead that a scheduler may have: nothing that is due later than this from now is claimed.
CLAIMED_AHEAD_MS = 60_000

Calendars = Mapping[str, schedules.Calendars]  # by team
Item = tuple[JobId, int | None, bytes]


class Nexts:
    """next_after of one schedule, for very many instants that lie close together."""

    def __init__(self, schedule: Schedule) -> None:
        self._schedule = schedule
        # For an instant from starts[i] on and before ends[i] the next occurrence is ends[i].
        self._starts: list[int] = []
        self._ends: list[int] = []
        self._last: int | None = None

    def after(self, t_ms: int) -> int | None:
        i = bisect_right(self._ends, t_ms)
        if i < len(self._ends) and self._starts[i] <= t_ms:
            return self._ends[i]
        if self._last is not None and t_ms >= self._last:
            return None
        found = self._schedule.next_after(t_ms)
        if found is None:
            self._last = t_ms
        elif i < len(self._ends) and self._ends[i] == found:
            self._starts[i] = t_ms
        else:
            self._starts.insert(i, t_ms)
            self._ends.insert(i, found)
        return found


class DueTimes:
    """marks: by partition, before when (ms) all is claimed. calendars: the teams' exclusions. now: Redis' clock."""

    def __init__(self, ledger: Ledger, *, marks: Mapping[int, int], calendars: Calendars, now: int) -> None:
        self._ledger, self._marks, self._calendars = ledger, marks, calendars
        self._claimed = now + CLAIMED_AHEAD_MS
        self._nexts: dict[str, Nexts] = {}

    async def of(self, page: Sequence[LedgerJob]) -> list[Item]:
        """(job, due ms or None, value) of each that can be read. Unavailable."""
        found: list[Item] = []
        asked: dict[int, JobHead] = {}
        for job in page:
            try:
                head = unpack_head(job.value)
            except (ValueError, KeyError) as error:
                _log.error("a stored job can't be read", extra={"fields": {"job": job.job_id, "error": str(error)}})
                continue
            due = self._first(job, head)
            if due is not None and head.state is JobState.ACTIVE and due <= self._claimed:
                asked[len(found)] = head
            found.append((job.job_id, due, job.value))
        # An occurrence past the mark may have been claimed all the same, while another job's kept the mark back.
        while asked:
            dues = {i: run_id_of(found[i][0], found[i][1] or 0) for i in asked}
            known = await self._ledger.runs_known(list(dues.values()))
            for i, run in dues.items():
                job_id, due, value = found[i]
                head = asked[i]
                skipped, sv = known.get(run, (True, -1))
                if due is None or (skipped and sv < head.sv):
                    del asked[i]
                    continue
                following = None if head.kind == "o" else self._next(head, value, due)
                found[i] = job_id, following, value
                if following is None or following > self._claimed:
                    del asked[i]
        return found

    def _first(self, job: LedgerJob, head: JobHead) -> int | None:
        if head.state is not JobState.ACTIVE:
            return None
        mark = self._marks.get(partition_of(job.job_id), 0)
        # A job that was made, or changed, after the claim that set the mark: nothing of it was claimed by that one.
        # All before the mark is claimed; the occurrence at its very instant is not.
        after = head.sv_at if head.sv_at > mark - CLAIMED_AHEAD_MS else mark - 1
        try:
            return int(head.arg) if head.kind == "o" else self._next(head, job.value, after)
        except (RschedError, ValueError, KeyError, ArithmeticError) as error:
            # Due at once: the claim finds the same fault and parks the job with an alert.
            _log.error("a schedule can't be read", extra={"fields": {"job": job.job_id, "error": str(error)}})
            return max(mark, head.sv_at)

    def _next(self, head: JobHead, value: bytes, after: int) -> int | None:
        if head.kind == "e":
            anchor, _, every = head.arg.partition(",")
            return int(anchor) + ((after - int(anchor)) // int(every) + 1) * int(every)
        return self.nexts(head.arg, value).after(after)

    def nexts(self, arg: str, value: bytes) -> Nexts:
        """Of the schedule that a head calls arg; value: any job that has it. RschedError, ValueError, KeyError."""
        if (found := self._nexts.get(arg)) is None:
            definition = decode_definition(value.partition(b"\n")[2])
            calendars = self._calendars.get(definition.team)
            found = self._nexts[arg] = Nexts(schedules.load(definition, calendars=calendars))
        return found
