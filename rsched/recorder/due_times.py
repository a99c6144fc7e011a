"""When jobs that come back from the ledger are due: the first occurrence that was not claimed, as far as the ledger knows."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence

from rsched.core.errors import RschedError
from rsched.core.ids import JobId, partition_of, run_id_of
from rsched.core.jobs.model import decode_definition
from rsched.core.jobs.packed import JobHead, unpack_head
from rsched.core.schedule import schedule as schedules
from rsched.core.schedule.schedule import Schedule
from rsched.core.states import JobState
from rsched.ledger import Ledger
from rsched.ledger.recovery.pages import DecidedRange, LedgerJob
from rsched.runtime.log import get_logger

_log = get_logger("rsched.recorder")
# The longest look-ahead that a scheduler may have: nothing that is due later than this from now is claimed.
CLAIMED_AHEAD_MS = 60_000

Calendars = Mapping[str, schedules.Calendars]  # by team
Item = tuple[JobId, int | None, bytes]
Ranges = Sequence[DecidedRange]
# How many run keys the ledger is asked for at once: of one job, and of a page.
_MOST_AHEAD = 256
_MOST_ASKED = 20_000
# How much a due time must be behind the marks for them to count: at 5,800 runs a second that many are looked up in half a minute.
_BY_MARKS_MS = 60_000
_UNREADABLE = (RschedError, ValueError, KeyError, ArithmeticError)


def _head(job: LedgerJob) -> JobHead | None:
    try:
        return unpack_head(job.value)
    except (ValueError, KeyError) as error:
        _log.error("a stored job can't be read", extra={"fields": {"job": job.job_id, "error": str(error)}})
        return None


def _standing(ranges: Ranges, head: JobHead) -> Ranges:
    """Those that were decided under the schedule as it is now; another one owes its occurrences anew."""
    return [
        r
        for r in ranges
        if (
            r.at >= head.schedule_changed_at
            if r.schedule_version is None
            else r.schedule_version == head.schedule_version
        )
    ]


def _pending(known: tuple[bool, int] | None, head: JobHead) -> bool:
    return known is None or (known[0] and known[1] < head.schedule_version)


class Nexts:
    """next_after of one schedule, for very many instants that lie close together."""

    def __init__(self, schedule: Schedule) -> None:
        self._schedule = schedule
        # For an instant from starts[i] on and before ends[i] the next occurrence is ends[i].
        self._starts: list[int] = []
        self._ends: list[int] = []
        self._last: int | None = None

    def after(self, t_ms: int) -> int | None:
        """Returns the first occurrence after an instant (ms); None where there is none."""
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
        """(job, due ms or None, value) of each that can be read, where Redis has no due time of it. Unavailable."""
        found: list[Item] = []
        asked: dict[int, JobHead] = {}
        for job in page:
            if (head := _head(job)) is None:
                continue
            due = self._first(job, head)
            if due is not None and due <= self._claimed and self._readable(head, job, due):
                asked[len(found)] = head
            found.append((job.job_id, due, job.value))
        await self._walk(found, asked)
        return found

    async def onward(self, page: Sequence[tuple[LedgerJob, int]]) -> list[Item]:
        """Works out, as `of`, when active jobs are due that Redis has as due at a given instant.

        Args:
            page: The jobs, each with that instant (ms).

        Returns:
            For each job that instant, or the first after it about which the ledger knows nothing. Each occurrence that is passed
            over has a run, was skipped or belongs to a catch-up range; watermarks count only where Redis is so old that looking
            at each occurrence would take too long.
        """
        found: list[Item] = []
        asked: dict[int, JobHead] = {}
        for job, due in page:
            head = _head(job)
            if head is None or head.state is not JobState.ACTIVE:
                continue
            if due <= self._claimed and self._readable(head, job, due):
                asked[len(found)] = head
                due = self._marked(job, head, due)
            found.append((job.job_id, due, job.value))
        await self._walk(found, asked)
        return found

    async def _walk(self, found: list[Item], asked: dict[int, JobHead]) -> None:
        """Moves those of the jobs found that are asked for to the first occurrence that is pending."""
        if not asked:
            return
        dues = {i: found[i][1] or 0 for i in asked}
        settled = await self._ledger.recovery.pages.decided([(found[i][0], due) for i, due in dues.items()])
        ranges = {i: _standing(settled.get(found[i][0], ()), head) for i, head in asked.items()}
        since = min(dues.values()) - CLAIMED_AHEAD_MS
        ahead = 1
        while asked:
            # Few have any; those that do may have thousands, all that was claimed in a tail that was lost.
            upcoming = {i: self._upcoming(head, found[i], ranges[i], ahead) for i, head in asked.items()}
            runs = [run_id_of(found[i][0], t) for i, ts in upcoming.items() for t in ts if t <= self._claimed]
            known = await self._ledger.recovery.pages.runs_known(runs, since=since) if runs else {}
            for i, ts in upcoming.items():
                job_id, _, value = found[i]
                head = asked[i]
                pending = next(
                    (t for t in ts if t > self._claimed or _pending(known.get(run_id_of(job_id, t)), head)), None
                )
                if pending is None and ts:
                    pending = self._past(head, value, self._following(head, value, ts[-1]), ranges[i])
                    if pending is None or pending > self._claimed:
                        del asked[i]
                else:
                    del asked[i]
                found[i] = job_id, pending, value
            ahead = max(1, min(ahead * 4, _MOST_AHEAD, _MOST_ASKED // max(len(asked), 1)))

    def _upcoming(self, head: JobHead, item: Item, ranges: Ranges, most: int) -> list[int]:
        """Occurrences from the item's due time on that no range settles, until the first that nobody can have claimed."""
        found: list[int] = []
        due = self._past(head, item[2], item[1], ranges)
        while due is not None:
            found.append(due)
            if due > self._claimed or len(found) == most:
                break
            due = self._past(head, item[2], self._following(head, item[2], due), ranges)
        return found

    def _past(self, head: JobHead, value: bytes, due: int | None, ranges: Ranges) -> int | None:
        while due is not None:
            last = max((r.last for r in ranges if r.first <= due <= r.last), default=None)
            if last is None:
                break
            due = self._following(head, value, last)
        return due

    def _marked(self, job: LedgerJob, head: JobHead, due: int) -> int:
        mark = self._marks.get(partition_of(job.job_id), 0)
        if head.kind == "o" or mark <= due + _BY_MARKS_MS or head.schedule_changed_at > mark - CLAIMED_AHEAD_MS:
            return due
        return self._next(head, job.value, mark - 1) or due

    def _first(self, job: LedgerJob, head: JobHead) -> int | None:
        if head.state is not JobState.ACTIVE:
            return None
        mark = self._marks.get(partition_of(job.job_id), 0)
        # A job that was made, or changed, after the claim that set the mark: nothing of it was claimed by that one.
        # All before the mark is claimed; the occurrence at its very instant is not.
        after = head.schedule_changed_at if head.schedule_changed_at > mark - CLAIMED_AHEAD_MS else mark - 1
        try:
            return int(head.arg) if head.kind == "o" else self._next(head, job.value, after)
        except _UNREADABLE as error:
            # Due at once: the claim finds the same fault and marks the job as invalid, with an alert.
            _log.error("a schedule can't be read", extra={"fields": {"job": job.job_id, "error": str(error)}})
            return max(mark, head.schedule_changed_at)

    def _readable(self, head: JobHead, job: LedgerJob, due: int) -> bool:
        """Whether it can be told what follows; else it stays due, for the claim, which marks it as invalid."""
        try:
            self._following(head, job.value, due)
        except _UNREADABLE:
            return False
        return True

    def _following(self, head: JobHead, value: bytes, due: int) -> int | None:
        return None if head.kind == "o" else self._next(head, value, due)

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
