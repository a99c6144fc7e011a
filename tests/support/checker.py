"""The checker of fault runs: what the target saw, held against what the ledger says and what was expected.

Reads JSON lines that the target wrote, one line a moment, in the order in which they happened (one O_APPEND write each):

    {"kind": "start" | "end" | "cancelled", "run_id", "attempt", "fence", "at": ms, "pid"}
    {"kind": "killed" | "stopped", "pid", "at"}        written by whoever killed or stopped the process

`start` and `end` are effects on the target. A process that was killed, or stopped, does nothing from then on: an attempt
that it left without another word was active until that line.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

FINAL = frozenset({"SUCCEEDED", "DEAD", "CANCELLED", "SKIPPED"})


class Seen(NamedTuple):
    """One line. Instants in ms by the wall clock of the target; run_id, attempt and fence of effects only."""

    kind: str
    at: float
    pid: int
    run_id: str = ""
    attempt: int = 0
    fence: int = 0


class Recorded(NamedTuple):
    """A run as the ledger has it. Instants in ms by Redis' clock; started_at 0: its target was never called."""

    run_id: str
    state: str
    attempt: int
    fence: int
    due_at: int
    started_at: int


class Skipped(NamedTuple):
    """The ledger's record that occurrences of job_id in first..last (ms, both included) made no run."""

    job_id: str
    first: int
    last: int


class Breach(NamedTuple):
    """what: early, fence, low_fence, lost, overlap, twice, unfinished, unexpected, unseen."""

    what: str
    run_id: str
    detail: str


class Verdict(NamedTuple):
    """repeated: runs whose target saw more than one attempt to its end; at-least-once allows it after a kill."""

    runs: int
    attempts: int
    repeated: int
    skips: int
    breaches: list[Breach]

    def __str__(self) -> str:
        head = (
            f"{'BREACH' if self.breaches else 'ok'}: {self.runs} runs, {self.attempts} attempts seen, "
            f"{self.repeated} repeated, {self.skips} skips"
        )
        counts = Counter(b.what for b in self.breaches)
        lines = [f"  {what}: {n}" for what, n in sorted(counts.items())]
        shown = [f"  {b.what} {b.run_id}: {b.detail}" for b in self.breaches[:20]]
        return "\n".join([head, *lines, *shown])


class _Attempt:
    """What was seen of one attempt: positions of its lines, and of the line that ended its activity."""

    def __init__(self, start: Seen, place: int) -> None:
        self.start, self.began = start, place
        self.ended: int | None = None
        self.finished = False


def _attempts(seen: Sequence[Seen]) -> tuple[dict[str, list[_Attempt]], list[Breach]]:
    """Attempts of each run in the order of their starts, and the effects under a fence lower than one seen before."""
    by_run: dict[str, list[_Attempt]] = {}
    running: dict[int, dict[tuple[str, int], _Attempt]] = {}
    highest: dict[str, int] = {}
    breaches = []
    for place, line in enumerate(seen):
        key = (line.run_id, line.fence)
        if line.kind in ("killed", "stopped"):
            for attempt in running.get(line.pid, {}).values():
                attempt.ended = place
            if line.kind == "killed":
                running.pop(line.pid, None)
            continue
        mine = running.setdefault(line.pid, {})
        if line.kind in ("start", "end"):
            if line.fence < highest.get(line.run_id, 0):
                detail = f"{line.kind} under {line.fence} after {highest[line.run_id]}"
                breaches.append(Breach("low_fence", line.run_id, detail))
            highest[line.run_id] = max(line.fence, highest.get(line.run_id, 0))
        if line.kind == "start":
            mine[key] = _Attempt(line, place)
            by_run.setdefault(line.run_id, []).append(mine[key])
        elif (ending := mine.pop(key, None)) is not None:
            ending.finished = line.kind == "end"
            # A stopped process that only takes back what it had begun was not active since the stop.
            if ending.finished or ending.ended is None:
                ending.ended = place
    return by_run, breaches


def _of_attempts(run_id: str, attempts: Sequence[_Attempt]) -> list[Breach]:
    breaches = []
    for earlier, later in pairwise(attempts):
        if later.start.fence <= earlier.start.fence:
            detail = f"{later.start.fence} after {earlier.start.fence}"
            breaches.append(Breach("fence", run_id, detail))
        if later.start.attempt < earlier.start.attempt:
            breaches.append(Breach("fence", run_id, f"attempt {later.start.attempt} after {earlier.start.attempt}"))
        if earlier.ended is None or earlier.ended > later.began:
            detail = f"attempt {later.start.attempt} began before attempt {earlier.start.attempt} ended"
            breaches.append(Breach("overlap", run_id, detail))
    return breaches


def _of_start(run_id: str, start: Seen) -> list[Breach]:
    scheduled = run_id.rpartition(":")[2]
    if scheduled.isdigit() and start.at < int(scheduled):
        return [Breach("early", run_id, f"{int(scheduled) - start.at:.3f} ms before its time")]
    return []


def _of_recorded(run: Recorded, attempts: Sequence[_Attempt]) -> list[Breach]:
    breaches = []
    if run.state not in FINAL:
        breaches.append(Breach("unfinished", run.run_id, f"is {run.state} in the ledger"))
    if 0 < run.started_at < run.due_at:
        breaches.append(Breach("early", run.run_id, f"started {run.due_at - run.started_at} ms before it was due"))
    if run.state == "SUCCEEDED" and not any(a.finished and a.start.fence == run.fence for a in attempts):
        breaches.append(Breach("unseen", run.run_id, f"SUCCEEDED under {run.fence}, which no target saw to its end"))
    last = max((a.start.fence for a in attempts), default=0)
    if last > run.fence:
        breaches.append(Breach("fence", run.run_id, f"the ledger ends with {run.fence}, the target saw {last}"))
    return breaches


def _of_expected(
    expected: Mapping[str, Iterable[int]], recorded: Mapping[str, list[Recorded]], skips: Sequence[Skipped]
) -> list[Breach]:
    """Each occurrence has one final run or one recorded skip, and no run is there that nobody expected."""
    ranges: dict[str, list[Skipped]] = {}
    for skip in skips:
        ranges.setdefault(skip.job_id, []).append(skip)
    breaches, run_ids = [], set()
    for job_id, occurrences in expected.items():
        for at in occurrences:
            run_id = f"{job_id}:{at}"
            run_ids.add(run_id)
            found = len(recorded.get(run_id, ()))
            found += sum(s.first <= at <= s.last for s in ranges.get(job_id, ()))
            if found == 0:
                breaches.append(Breach("lost", run_id, "neither a run nor a recorded skip"))
            elif found > 1:
                breaches.append(Breach("twice", run_id, f"{found} runs and skips on record"))
    for run_id in recorded.keys() - run_ids:
        job_id, _, instant = run_id.partition(":")
        if job_id in expected and instant.isdigit():
            breaches.append(Breach("unexpected", run_id, "no such occurrence"))
    return breaches


def check(
    seen: Sequence[Seen] | None,
    recorded: Sequence[Recorded],
    *,
    expected: Mapping[str, Iterable[int]],
    skips: Sequence[Skipped] = (),
) -> Verdict:
    """expected: the occurrences (ms) of each job. seen: None where the target kept no record of what it saw."""
    by_run, breaches = _attempts(seen or ())
    rows: dict[str, list[Recorded]] = {}
    for run in recorded:
        rows.setdefault(run.run_id, []).append(run)
    for run_id, attempts in by_run.items():
        breaches += _of_attempts(run_id, attempts)
        for attempt in attempts:
            breaches += _of_start(run_id, attempt.start)
        if run_id not in rows:
            breaches.append(Breach("lost", run_id, "the target saw it, the ledger does not know it"))
    for run in recorded:
        found = _of_recorded(run, by_run.get(run.run_id, ()))
        breaches += [b for b in found if seen is not None or b.what != "unseen"]
    breaches += _of_expected(expected, rows, skips)
    repeated = sum(sum(a.finished for a in attempts) > 1 for attempts in by_run.values())
    return Verdict(len(recorded), sum(map(len, by_run.values())), repeated, len(skips), breaches)


def read_seen(path: Path) -> list[Seen]:
    """The lines of a file that targets wrote. ValueError where one of them is no such line."""
    lines = []
    for n, text in enumerate(path.read_text().splitlines(), 1):
        try:
            lines.append(Seen(**json.loads(text)))
        except (TypeError, ValueError) as error:
            raise ValueError(f"{path}:{n}: {error}: {text[:80]!r}") from None
    return lines


def main(argv: Sequence[str] | None = None) -> int:
    """`python -m tests.support.checker --seen FILE --database URL [--expected FILE]`: 0 when all holds, 1 on a breach."""
    import argparse
    import asyncio

    from tests.support.ledger_rows import read_recorded, read_skips

    parser = argparse.ArgumentParser(
        prog="python -m tests.support.checker", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("--seen", type=Path, required=True, help="JSON lines that the targets wrote")
    parser.add_argument("--database", required=True, metavar="URL", help="the ledger")
    parser.add_argument(
        "--expected", type=Path, help='JSON {"job_id": [occurrence ms, ...]}; without it only what was seen'
    )
    options = parser.parse_args(argv)
    expected = json.loads(options.expected.read_text()) if options.expected else {}
    verdict = check(
        read_seen(options.seen),
        asyncio.run(read_recorded(options.database)),
        expected=expected,
        skips=asyncio.run(read_skips(options.database)),
    )
    sys.stdout.write(f"{verdict}\n")
    return 1 if verdict.breaches else 0


if __name__ == "__main__":
    sys.exit(main())
