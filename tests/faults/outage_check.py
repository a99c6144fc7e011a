"""What each job of an outage owes by its policy, by plain arithmetic, held against what is on record."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from tests.faults.outage import Form, Outcome, Plan, RunRow, SkipRow

# From the start, or the wake-up, of the scheduler to its first look at what it missed: the lease of its forerunner ends first.
FOUND_WITHIN_MS = 8000
FRESH_P99_MS = 1000


class Expected(NamedTuple):
    """Scheduled instants (ms). ahead: claimed before the outage. paid: those of `run` that a catch-up range pays out."""

    ahead: set[int]
    run: set[int]
    skipped: set[int]
    paid: set[int]


class Figures(NamedTuple):
    """Instants after the scheduler was back, and durations; ms."""

    found_ms: tuple[int, int]
    ran: int
    skipped: int
    caught_up: int
    last_paid_ms: int
    most_in_a_second: int
    fresh: int
    fresh_beside: int
    fresh_p99_ms: int


def expected(plan: Plan, form: Form, *, created: int, ahead: int, found_at: int, over_at: int) -> Expected:
    """created: what comes later is expected. ahead: the last instant claimed before the outage.

    found_at: when it was found late.
    """
    early = set(plan.within(created, ahead))
    missed = plan.within(max(ahead, created), found_at)
    slack = form.grace_ms + plan.window_ms
    late = [t for t in missed if t < found_at - slack]
    after = plan.within(max(ahead, created), over_at)
    if not late or (plan.grid[1] == 0 and plan.policy != "skip" and not plan.cut):
        return Expected(early, set(after), set(), set())
    caught = [t for t in late if not plan.cut or t >= found_at - form.cut_ms]
    if plan.policy == "skip":
        skipped, paid = set(late), set[int]()
    elif plan.policy == "run_all":
        skipped, paid = set(late) - set(caught), set(caught)
    else:
        # The latest of all that was missed, the grace apart; unless it, too, lies before the catch-up window.
        kept = {missed[-1]} if not plan.cut or missed[-1] >= found_at - form.cut_ms else set()
        skipped, paid = set(missed) - kept, set()
    return Expected(early, set(after) - skipped, skipped, paid)


def expanded(plan: Plan, rows: Sequence[SkipRow]) -> tuple[set[int], list[str]]:
    """The occurrences that the rows skip, and what is wrong with the rows."""
    found: Counter[int] = Counter()
    wrong = []
    for row in rows:
        within = plan.within(row.first - 1, row.last)
        if not within or (within[0], within[-1], len(within)) != (row.first, row.last, row.total):
            wrong.append(f"{row} is not {len(within)} occurrences")
        found.update(within)
    wrong += [f"{t} is skipped {n} times" for t, n in found.items() if n > 1]
    return set(found), wrong


def problems(o: Outcome) -> tuple[list[str], Figures]:
    """Everything that is not as the policies say; and the figures of the run."""
    runs: dict[str, list[RunRow]] = defaultdict(list)
    skips: dict[str, list[SkipRow]] = defaultdict(list)
    for run in o.runs:
        runs[run.run_id.partition(":")[0]].append(run)
    for skip in o.skips:
        skips[skip.job_id].append(skip)
    wrong = list(o.breaches)
    found_at, paid = [], []
    total: Counter[str] = Counter()
    for job, plan in o.jobs.items():
        mine = [r for r in runs[job] if r.at <= o.over_at]
        rows = [s for s in skips[job] if s.first <= o.over_at]
        bad, seen_at, payments = _of_job(o, job, plan, mine, rows)
        wrong += [f"{plan.name}: {text}" for text in bad]
        found_at += [seen_at] if seen_at else []
        paid += payments
        total["ran"] += sum(r.state == "SUCCEEDED" for r in mine)
        total["skipped"] += sum(s.total for s in rows)
    paid_at = [r.claimed_at for r in paid]
    fresh = sorted(r.started_at - r.at for job in o.fresh for r in runs[job] if r.at <= o.over_at)
    beside = sum(min(paid_at) <= r.started_at <= max(paid_at) for job in o.fresh for r in runs[job])
    p99 = fresh[len(fresh) * 99 // 100]
    if not 0 <= p99 < FRESH_P99_MS:
        wrong.append(f"fresh jobs: lateness p99 {p99} ms")
    if not beside:
        wrong.append("no fresh job ran while others caught up")
    bounds = (min(found_at) - o.back_at, max(found_at) - o.back_at)
    figures = Figures(
        bounds, total["ran"], total["skipped"], len(paid), max(paid_at) - o.back_at,
        max(_most_in_a_second([r for r in paid if r.run_id.startswith(job)]) for job in o.jobs),
        len(fresh), beside, p99,
    )  # fmt: skip
    return wrong, figures


def _of_job(
    o: Outcome, job: str, plan: Plan, runs: Sequence[RunRow], rows: Sequence[SkipRow]
) -> tuple[list[str], int | None, list[RunRow]]:
    """(what is wrong, when it was found late, its runs that a catch-up range paid out)."""
    skipped, wrong = expanded(plan, rows)
    wrong += [f"{r} is no misfire" for r in rows if r.reason != "misfire"]
    wrong += [f"{at} ran {n} times" for at, n in Counter(r.at for r in runs).items() if n > 1]
    # A scheduler that is stopped in the middle of a claim may still get it through.
    before = [r for r in runs if r.claimed_at <= o.gone_at + 50]
    after = [r for r in runs if r.claimed_at > o.gone_at + 50]
    ahead = max((r.at for r in before), default=0)
    if ahead > o.gone_at + o.form.lookahead_ms + 50 or any(r.claimed_at < o.back_at for r in after):
        wrong.append("was claimed while the scheduler was away")
    signs = [s.at for s in rows] or [r.claimed_at for r in after]
    # Found late again where an occurrence came to be late between two looks: the last look counts.
    latest = max(signs) if rows else min(signs, default=o.over_at)
    candidates = [latest] if rows else [latest, latest - 50]
    tried = [
        expected(plan, o.form, created=o.created[job], ahead=ahead, found_at=t, over_at=o.over_at) for t in candidates
    ]
    ran = {r.at for r in runs}
    due = next((d for d in tried if (ran, skipped) == (d.ahead | d.run, d.skipped)), tried[0])
    for what, is_, should in (("ran", ran, due.ahead | due.run), ("skipped", skipped, due.skipped)):
        wrong += [
            f"{what} though not expected: {t - o.gone_at} ms after the outage began" for t in sorted(is_ - should)
        ]
        wrong += [
            f"not {what} though expected: {t - o.gone_at} ms after the outage began" for t in sorted(should - is_)
        ]
    if (late := latest - o.back_at) > FOUND_WITHIN_MS and (rows or due.paid):
        wrong.append(f"found late only {late} ms after the scheduler was back")
    paid = sorted((r for r in after if r.at in due.paid), key=lambda r: (r.claimed_at, r.at))
    wrong += _of_paid(o.form, paid)
    wrong += _of_states(plan, runs)
    counted = o.counted.get(job)
    if counted is not None and counted.get("misfire", 0) != len(skipped):
        wrong.append(f"counts {counted}, {len(skipped)} were missed")
    return wrong, latest if rows else None, paid


def _of_paid(form: Form, paid: Sequence[RunRow]) -> list[str]:
    """Oldest first, and no more than the pace in any second."""
    wrong = []
    if [r.at for r in paid] != sorted(r.at for r in paid):
        wrong.append("was not caught up oldest first")
    if (most := _most_in_a_second(paid)) > form.per_s:
        wrong.append(f"was paid {most} late runs in a second")
    return wrong


def _most_in_a_second(paid: Sequence[RunRow]) -> int:
    return max((sum(0 <= r.claimed_at - first.claimed_at < 1000 for r in paid) for first in paid), default=0)


def _of_states(plan: Plan, runs: Sequence[RunRow]) -> list[str]:
    """All succeed; with overlap skip those that came due beside another one of the job are skipped, on record."""
    on_time = [r for r in runs if r.claimed_at <= r.at]
    wrong = [f"{r} was not due in its window" for r in on_time if not 0 <= r.due_at - r.at < max(plan.window_ms, 1)]
    if plan.overlap == "allow":
        return wrong + [f"{r} did not succeed" for r in runs if r.state != "SUCCEEDED"]
    went = [r for r in runs if r.state == "SUCCEEDED"]
    wrong += [f"{a} and {b} overlapped" for a in went for b in went if a.started_at < b.started_at < a.ended_at]
    for r in runs:
        if r.state == "SUCCEEDED":
            continue
        # What is late goes at once, one upon the other: the first of them is at work when the next are judged.
        beside = any(w.claimed_at <= r.ended_at <= w.ended_at for w in went)
        if (r.state, r.error) != ("SKIPPED", "overlap") or not beside:
            wrong.append(f"{r} did not succeed, and nothing of its job was at work")
    return wrong
