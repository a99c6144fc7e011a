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
    """total occurrences from first to last (ms, both included)."""

    total: int
    first: int
    last: int


class MisfireOutcome(NamedTuple):
    """How missed occurrences are settled: skipped on record, one run at run_at, a range caught up (ms, both ends included).

    ahead: of a job that is resumed, those that were claimed ahead for after the pause; unless they are wanted, withdrawn.
    """

    skipped: SkippedRange | None = None
    run_at: int | None = None
    catch_up: tuple[int, int] | None = None
    ahead: tuple[int, ...] = ()


NOTHING_MISSED = MisfireOutcome()


def apply_misfire_policy(
    schedule: Schedule, policy: MisfirePolicy, *, since: int, until: int, oldest: int = 0
) -> MisfireOutcome:
    """How the occurrences in since < t <= until (ms) are settled.

    run_once: one run, for the latest; those before are skipped. run_all: all are caught up. skip: all are skipped. What lies
    before `oldest` is skipped whatever the policy.
    """
    everything = schedule.missed(since, until)
    late = schedule.missed(max(since, oldest - 1), until)
    if policy == "skip" or late.first is None or late.last is None:
        return MisfireOutcome(_range(everything))
    if policy == "run_all":
        return MisfireOutcome(_range(schedule.missed(since, late.first - 1)), catch_up=(late.first, late.last))
    return MisfireOutcome(_range(schedule.missed(since, late.last - 1)), run_at=late.last)


def oldest_caught_up(misfire: Misfire, now: int) -> int:
    """The earliest instant (ms) that is still caught up."""
    return 0 if misfire.catchup_window is None else now - parse_duration(misfire.catchup_window)


def resolve_resumed(
    head: JobHead, schedule: Schedule, policy: MisfirePolicy | None, *, now: int
) -> tuple[int | None, MisfireOutcome]:
    """(when it is next due, how what it missed is settled) of a job that is resumed at `now` (ms).

    policy None: a recurring job skips what it missed, a one-off is due at once and its misfire policy decides.
    """
    if head.kind == "o":
        return _resumed_once(head, int(head.arg), policy, now)
    following = schedule.next_after(now)
    if head.state is not JobState.PAUSED:
        return following, NOTHING_MISSED
    unclaimed = head.paused_from - 1 if head.paused_from else now
    ahead = _ahead(head, schedule, min(unclaimed, now))
    # What was claimed ahead for after the pause is withdrawn, each on record by itself, unless it is wanted now.
    found = apply_misfire_policy(schedule, policy or "skip", since=min(unclaimed, head.schedule_changed_at), until=now)
    last = now if found.run_at is None else found.run_at - 1
    skipped = None if found.catch_up else _range(schedule.missed(unclaimed, last))
    return following, found._replace(skipped=skipped, ahead=ahead)


def _ahead(head: JobHead, schedule: Schedule, until: int) -> tuple[int, ...]:
    """Those after the pause and up to `until` that were claimed before it: ahead by seconds, so they are few."""
    return tuple(t for t in schedule.upcoming(head.schedule_changed_at, _MOST_AHEAD) if t <= until)


def _resumed_once(head: JobHead, at: int, policy: MisfirePolicy | None, now: int) -> tuple[int | None, MisfireOutcome]:
    if at <= head.schedule_changed_at and not head.paused_from:
        return None, NOTHING_MISSED  # claimed before the pause
    if at > now or policy is None:
        return at, NOTHING_MISSED
    if policy == "skip":
        return None, MisfireOutcome(SkippedRange(1, at, at))
    return None, MisfireOutcome(run_at=at)


def _range(found: Missed) -> SkippedRange | None:
    if not found.count or found.first is None or found.last is None:
        return None
    return SkippedRange(found.count, found.first, found.last)
