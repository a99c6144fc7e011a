"""`python -m bench <benchmark>`: each starts servers and processes of its own, and writes what it found as JSON.

`python -m bench` alone runs all of them one after the other, with their results in bench/results/.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio

from bench import client, creates, cron, history, ledger_reads, quiet, record, restore, scripts, spike
from bench.figures import write
from rsched.runtime.clock import SystemClock
from rsched.runtime.service import run
from tests.support.fleet import ROOT

Benchmark = Callable[[], Awaitable[dict[str, Any]]]
QUICK_RUNS = 500
ALL = ("cron", "client", "scripts", "spike", "quiet", "idle", "creates", "record", "restore", "history", "ledger-reads")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--json", type=Path, metavar="FILE", help="where the result goes (default: standard output)")
    common.add_argument("--quick", action="store_true", help="small and short, to see that it works")
    commands = parser.add_subparsers(dest="benchmark", required=True)
    spiked = commands.add_parser("spike", parents=[common], help="N one-offs of one identical instant")
    spiked.add_argument("--runs", type=int, default=10_000)
    spiked.add_argument("--workers", type=int, default=2)
    spiked.add_argument("--teams", type=int, default=1)
    spiked.add_argument("--concurrency", type=int, default=500, help="attempts at once, of each worker")
    quieted = commands.add_parser("quiet", parents=[common], help="lateness of one-offs at random instants")
    quieted.add_argument("--runs", type=int, default=500)
    quieted.add_argument("--window", type=float, default=60, metavar="SECONDS")
    idled = commands.add_parser("idle", parents=[common], help="CPU with cron jobs stored and none due")
    idled.add_argument("--jobs", type=int, default=1000)
    idled.add_argument("--seconds", type=float, default=60)
    costed = commands.add_parser("scripts", parents=[common], help="Redis CPU of each verb, nothing else running")
    costed.add_argument("--runs", type=int, default=10_000)
    costed.add_argument("--teams", type=int, default=1)
    created = commands.add_parser("creates", parents=[common], help="durable creates through the HTTP API")
    created.add_argument("--seconds", type=float, default=10)
    created.add_argument("--batch", type=int, default=10_000, help="jobs of one POST /v1/jobs:batch")
    rebuilt = commands.add_parser("restore", parents=[common], help="definitions restored after Redis was emptied")
    rebuilt.add_argument("--jobs", type=int, default=200_000)
    told = commands.add_parser("history", parents=[common], help="bytes of a row of history, and its export to Parquet")
    told.add_argument("--runs", type=int, default=500_000)
    read = commands.add_parser("ledger-reads", parents=[common], help="plans and times of reads over millions of rows")
    read.add_argument("--rows", type=int, default=5_000_000)
    timed = commands.add_parser("cron", parents=[common], help="the two cron evaluators, one pass over distinct ones")
    timed.add_argument("--expressions", type=int, default=10_000)
    called = commands.add_parser("client", parents=[common], help="calls a second of both clients of the SDK")
    called.add_argument("--seconds", type=float, default=5)
    recorded = commands.add_parser("record", parents=[common], help="events a second into the ledger")
    recorded.add_argument("--runs", type=int, default=50_000)
    return parser


def _chosen(options: argparse.Namespace) -> Benchmark:
    clock, quick = SystemClock(), options.quick
    kind = options.benchmark
    if kind == "spike":
        return lambda: spike.measure(
            runs=QUICK_RUNS if quick else options.runs,
            workers=options.workers,
            teams=options.teams,
            concurrency=options.concurrency,
            clock=clock,
        )
    if kind == "quiet":
        runs, window_s = (100, 5.0) if quick else (options.runs, options.window)
        return lambda: quiet.measure(runs=runs, window_s=window_s, clock=clock)
    if kind == "idle":
        jobs, seconds = (100, 5.0) if quick else (options.jobs, options.seconds)
        return lambda: quiet.idle(jobs=jobs, seconds=seconds, clock=clock)
    if kind == "scripts":
        return lambda: scripts.measure(runs=QUICK_RUNS if quick else options.runs, teams=options.teams, clock=clock)
    if kind == "restore":
        return lambda: restore.measure(jobs=5000 if quick else options.jobs, clock=clock)
    if kind == "cron":
        return lambda: cron.measure(expressions=500 if quick else options.expressions, clock=clock)
    if kind == "client":
        return lambda: client.measure(seconds=0.5 if quick else options.seconds, clock=clock)
    if kind == "record":
        return lambda: record.measure(runs=2000 if quick else options.runs, clock=clock)
    if kind == "history":
        return lambda: history.measure(runs=5000 if quick else options.runs, clock=clock)
    if kind == "ledger-reads":
        return lambda: ledger_reads.measure(rows=20_000 if quick else options.rows, clock=clock)
    seconds, batch = (2.0, 1000) if quick else (options.seconds, options.batch)
    return lambda: creates.measure(seconds=seconds, batch=batch, clock=clock)


def main(argv: list[str] | None = None) -> int:
    given = sys.argv[1:] if argv is None else argv
    if given and given[0] not in ("--quick",):
        return _one(given)
    # Quick ones are to see that it works; they are no results to keep.
    kept = [] if given else [f"--json={ROOT}/bench/results"]
    return max(_one([name, *given, *(f"{k}/{name}.json" for k in kept)]) for name in ALL)


def _one(argv: list[str]) -> int:
    options = _parser().parse_args(argv)
    benchmark = _chosen(options)
    found: dict[str, Any] = {}

    async def measured(stop: anyio.Event) -> None:
        async with anyio.create_task_group() as group:

            async def stopped() -> None:
                await stop.wait()
                group.cancel_scope.cancel()

            group.start_soon(stopped)
            found.update(await benchmark())
            group.cancel_scope.cancel()

    run(measured)
    if not found:
        return 130
    write(found, options.json)
    bad = any(line.startswith("BREACH") for line in found.get("verdict", ()))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
