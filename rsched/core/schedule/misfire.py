"""What becomes of occurrences that were found too late, or that a pause held back."""

from __future__ import annotations

from typing import NamedTuple

from rsched.core.durations import parse_duration
from rsched.core.jobs.packed import JobHead
from rsched.core.jobs.policies import Misfire, MisfirePolicy
from rsched.core.schedule.schedule import Missed, Schedule
from rsched.core.states import JobState

_MOST_AHEAD = 100


class SkippedRange(NamedTuple):
    """Occurrences that make no run: total of them from first to last (ms, both included)."""

    total: int
    first: int
    last: int


class MisfireOutcome(NamedTuple):
    """What is done about missed occurrences.

    Attributes:
        skipped: Those that are skipped on record.
        run_at: The one (ms) that gets a run.
        catch_up: The range (ms, both ends included) whose occurrences all get runs.
        ahead: Of a job that is resumed, those (ms) that were claimed ahead for after the pause; unless they are wanted, they
            are withdrawn.
    """

    skipped: SkippedRange | None = None
    run_at: int | None = None
    catch_up: tuple[int, int] | None = None
    ahead: tuple[int, ...] = ()


NOTHING_MISSED = MisfireOutcome()


def apply_misfire_policy(
    schedule: Schedule, policy: MisfirePolicy, *, since: int, until: int, oldest: int = 0
) -> MisfireOutcome:
    """Decides about the occurrences in since < t <= until.

    run_once: one run, for the latest; those before are skipped. run_all: all are caught up. skip: all are skipped.

    Args:
        schedule: Whose occurrences they are.
        policy: Of the job, or of who resumes it.
        since: After this instant (ms) they were missed.
        until: Up to this instant (ms), included.
        oldest: What lies before this instant (ms) is skipped whatever the policy.
    """
    everything = schedule.missed(since, until)
    late = schedule.missed(max(since, oldest - 1), until)
    if policy == "skip" or late.first is None or late.last is None:
        return MisfireOutcome(_skipped(everything))
    if policy == "run_all":
        too_old = schedule.missed(since, late.first - 1)
        return MisfireOutcome(_skipped(too_old), catch_up=(late.first, late.last))
    before_the_latest = schedule.missed(since, late.last - 1)
    return MisfireOutcome(_skipped(before_the_latest), run_at=late.last)


def oldest_caught_up(misfire: Misfire, now: int) -> int:
    """Returns the earliest instant (ms) that is still caught up at `now` (ms)."""
    return 0 if misfire.catchup_window is None else now - parse_duration(misfire.catchup_window)


def resolve_resumed(
    head: JobHead, schedule: Schedule, policy: MisfirePolicy | None, *, now: int
) -> tuple[int | None, MisfireOutcome]:
    """Decides what a job that is resumed does next, and about what it missed.

    Args:
        head: Of the job, as it was paused.
        schedule: Of the job.
        policy: For what it missed; None: a recurring job skips it, a one-off is due at once and its misfire policy decides.
        now: The instant (ms) that it is resumed at.

    Returns:
        When it is next due (ms), None for never, and what is done about missed occurrences.
    """
    if head.kind == "o":
        return _resumed_once(head, int(head.arg), policy, now=now)
    following = schedule.next_after(now)
    if head.state is not JobState.PAUSED:
        return following, NOTHING_MISSED
    unclaimed = head.paused_from - 1 if head.paused_from else now
    ahead = _ahead(head, schedule, min(unclaimed, now))
    # What was claimed ahead for after the pause is withdrawn, each on record by itself, unless it is wanted now.
    since = min(unclaimed, head.schedule_changed_at)
    outcome = apply_misfire_policy(schedule, policy or "skip", since=since, until=now)
    last = now if outcome.run_at is None else outcome.run_at - 1
    skipped = None if outcome.catch_up else _skipped(schedule.missed(unclaimed, last))
    return following, outcome._replace(skipped=skipped, ahead=ahead)


def _ahead(head: JobHead, schedule: Schedule, until: int) -> tuple[int, ...]:
    """Those after the pause and up to `until` that were claimed before it: ahead by seconds, so they are few."""
    return tuple(t for t in schedule.upcoming(head.schedule_changed_at, _MOST_AHEAD) if t <= until)


def _resumed_once(
    head: JobHead, at: int, policy: MisfirePolicy | None, *, now: int
) -> tuple[int | None, MisfireOutcome]:
    if at <= head.schedule_changed_at and not head.paused_from:
        return None, NOTHING_MISSED  # claimed before the pause
    if at > now or policy is None:
        return at, NOTHING_MISSED
    if policy == "skip":
        return None, MisfireOutcome(SkippedRange(1, at, at))
    return None, MisfireOutcome(run_at=at)


def _skipped(missed: Missed) -> SkippedRange | None:
    if not missed.count or missed.first is None or missed.last is None:
        return None
    return SkippedRange(missed.count, missed.first, missed.last)
