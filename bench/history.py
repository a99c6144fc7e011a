"""What a row of history costs in Postgres and in the archive, and how fast a day is exported."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import msgspec
import psycopg

from bench.figures import circumstances
from rsched.core.ids import derive_job_id
from rsched.core.jobs.packed import Event, RunEvent, RunRecord
from rsched.core.states import RunState
from rsched.ledger import Ledger
from rsched.ledger.keys import DAY_MS, claimed_on
from rsched.ledger.retention.parquet import Manifest
from rsched.runtime.clock import Clock
from rsched.store.store import shard_tags
from tests.support.deployment import Deployment, deployment

_BATCH = 5000
# Bytes of a run with its indexes, at most: while it is recorded at full speed, and on a past day after VACUUM.
_AT_FULL_SPEED, _PAST_DAY = 400, 250
_JUDGED_RUNS = 100_000
_RETENTION_DAYS = 30
_TABLES = {"runs": "finished_runs", "attempts": "failed_attempts"}
# As the recorder's housekeeping does.
_VACUUM_MOVES = 20_000


async def measure(*, runs: int, clock: Clock) -> dict[str, Any]:
    """runs: of one day, of 10,000 jobs on 10 workers; each recorded as QUEUED, RUNNING and SUCCEEDED, in transactions of
    their own, as in quiet times; of 1 in 20 the first attempt failed, 1 in 1,000 is DEAD."""
    async with deployment({}, clock=clock) as w, Ledger(w.database_url, clock=clock) as ledger:
        day_ms = (clock.wall_ms() // DAY_MS - _RETENTION_DAYS - 2) * DAY_MS
        await _fill(ledger, runs, day_ms=day_ms)
        day = claimed_on(day_ms)
        full_speed = await _sizes(w, f"{day:%Y%m%d}")
        await _vacuum(w)
        past_day = await _sizes(w, f"{day:%Y%m%d}")
        folder = w.folder / "archive"
        folder.mkdir()
        began = clock.perf_s()
        left = await ledger.retention.retain(folder, days=_RETENTION_DAYS)
        left_s = clock.perf_s() - began
        archived = await ledger.retention.retain(folder, days=_RETENTION_DAYS)
        exported_s = clock.perf_s() - began - left_s
        manifests = {t: _manifest(folder / t / f"{day}.json") for t in _TABLES}
        kept = runs - manifests["runs"].rows
        runs_bytes = full_speed["runs"]["bytes_per_row"], past_day["runs"]["bytes_per_row"]
        # Below so many runs the table of unfinished ones, whose size does not grow with history, is most of what is measured.
        too_large = runs >= _JUDGED_RUNS and (runs_bytes[0] > _AT_FULL_SPEED or runs_bytes[1] > _PAST_DAY)
        bad = (
            too_large
            or left.kind != "left"
            or archived.rows != sum(m.rows for m in manifests.values())
            or kept != runs // 1000
        )
        return {
            "benchmark": "history",
            "runs": runs,
            "postgres_at_full_speed": full_speed,
            "postgres_past_day": past_day,
            "parquet": {
                t: {"rows": m.rows, "bytes": m.bytes, "bytes_per_row": round(m.bytes / m.rows, 1)}
                for t, m in manifests.items()
            },
            "day_leaves_s": round(left_s, 2),
            "kept": kept,
            "export_s": round(exported_s, 2),
            "exported_rows_per_s": round(archived.rows / exported_s),
            "verdict": [f"BREACH: {runs_bytes} {left} {archived} {kept} kept" if bad else "ok"],
            **circumstances(clock),
        }


def _manifest(path: Path) -> Manifest:
    return msgspec.json.decode(path.read_bytes(), type=Manifest)


async def _vacuum(w: Deployment) -> None:
    async with await psycopg.AsyncConnection.connect(w.database_url, autocommit=True) as c:
        await c.execute("VACUUM")


async def _sizes(w: Deployment, suffix: str) -> dict[str, dict[str, float]]:
    """Bytes a row of a day's tables; those of runs with all that the table of unfinished ones takes, dead rows among it."""
    out = {}
    async with await psycopg.AsyncConnection.connect(w.database_url) as c:
        for table, source in _TABLES.items():
            name = f"{source}_{suffix}"
            found = await c.execute(
                f"SELECT count(*), pg_table_size('{name}'), pg_indexes_size('{name}'),"
                f" pg_total_relation_size('unfinished_runs') FROM {name}".encode()
            )
            row = await found.fetchone()
            assert row is not None
            rows, heap, indexes, unfinished = row
            beside = unfinished if table == "runs" else 0
            out[table] = {
                "rows": rows,
                "table_bytes_per_row": round(heap / rows, 1),
                "index_bytes_per_row": round(indexes / rows, 1),
                "unfinished_bytes_per_row": round(beside / rows, 1),
                "bytes_per_row": round((heap + indexes + beside) / rows, 1),
            }
    return out


async def _fill(ledger: Ledger, runs: int, *, day_ms: int) -> None:
    rng, shard, at, n, moves = random.Random(1), shard_tags(1)[0], "0-0", 0, 0
    jobs = [derive_job_id(f"team-{i % 50}", f"job-{i}", 1) for i in range(10_000)]
    # Claimed 3 s ahead, and all within the day.
    day_ms, period_ms = day_ms + 5000, (DAY_MS - 10_000) // runs or 1
    for first in range(0, runs, _BATCH):
        lives = [
            _life(jobs[i % len(jobs)], day_ms + i * period_ms, fence=2 * i + 1, i=i, rng=rng)
            for i in range(first, min(runs, first + _BATCH))
        ]
        for stage in range(max(map(len, lives))):
            n += 1
            new = f"1-{n}"
            events: list[Event] = [life[stage] for life in lives if stage < len(life)]
            if not await ledger.write.record(shard, stream="journal", expected=at, new=new, events=events):
                raise RuntimeError("somebody else recorded")
            at = new
            moves += len(events)
            if moves >= _VACUUM_MOVES:
                await ledger.recovery.unfinished.vacuum()
                moves = 0


def _life(job: str, due: int, *, fence: int, i: int, rng: random.Random) -> list[Event]:
    worker = f"worker-{rng.randrange(10)}-{rng.randrange(16**4):04x}"

    def event(
        state: RunState, revision: int, attempt: int, *, started: int = 0, at: int = 0, detail: str = ""
    ) -> RunEvent:
        record = RunRecord(state, revision, f"default:team-{i % 50}:1", 1, attempt, fence + attempt - 1 if attempt else 0,
                           worker if attempt else "", due - 3000, due, started, "")  # fmt: skip
        return RunEvent(f"{job}:{due}", record, at or due, detail)

    started = due + rng.randrange(2, 20)
    ended = started + rng.randrange(5, 5000)
    queued, running = event(RunState.QUEUED, 1, 0), event(RunState.RUNNING, 2, 1, started=started)
    if i % 1000 == 999:
        return [
            queued,
            running,
            event(RunState.DEAD, 3, 1, started=started, at=ended, detail="HTTP 400: no such account"),
        ]
    if i % 20 == 0:
        failed = event(
            RunState.RETRYING, 3, 1, started=started, at=ended, detail="HTTP 503 in 1.2 s: upstream timed out"
        )
        return [queued, running, failed, event(RunState.RUNNING, 4, 2, started=ended),
                event(RunState.SUCCEEDED, 5, 2, started=ended, at=ended + 100)]  # fmt: skip
    return [queued, running, event(RunState.SUCCEEDED, 3, 1, started=started, at=ended)]
