"""What the reads of the ledger cost that grow with it: plans and times over millions of jobs and runs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import psycopg

from bench.figures import circumstances
from rsched.core.ids import JobId, derive_job_id
from rsched.core.jobs.model import Definition, FunctionTarget, Misfire, RetryPolicy, ScheduleSpec
from rsched.core.jobs.packed import JobHead, JobRecord
from rsched.core.states import JobState
from rsched.ledger import Ledger
from rsched.runtime.clock import Clock
from tests.support.deployment import deployment

_DAYS = 10
_AT = 1_793_000_000_000
# A page takes so long at most (ms), however many rows there are.
MOST_MS = 500.0
# Fewer are read as quickly from end to end.
_MANY = 1_000_000
Read = Callable[[], Awaitable[object]]

# job_id: as many base32 digits of the number's hash as an id has. One job in five has a name.
_JOBS = """
INSERT INTO jobs (created_at, updated_at, next_run_at, due_once_at, state, version, incarnation, state_rank, schedule_kind,
    job_id, shard, team, name, tags, schedule, target, value)
SELECT at_ms(%(at)s + n), at_ms(%(at)s + n), at_ms(%(at)s + n), at_ms(%(at)s + n),
    (CASE n %% 10 WHEN 0 THEN 'paused' WHEN 1 THEN 'completed' ELSE 'active' END)::job_state, 1, 1, 0, 'o',
    'j_' || translate(substr(md5(n::text), 1, 13), 'f', 'g'), 's0', 'team-' || n %% 1000,
    CASE WHEN n %% 5 = 0 THEN 'job ' || n END,
    CASE WHEN n %% 100 = 0 THEN ARRAY['tag-' || n %% 5000] END, '{"at": "2026-10-26T00:00:00Z"}',
    '{"type": "function", "function": "f"}', %(value)s
FROM generate_series(1, %(rows)s) n
"""
# A tenth of all runs are of one job. One in a thousand is DEAD, one in a hundred was skipped.
_RUNS = """
INSERT INTO finished_runs (scheduled_at, claimed_at, due_at, started_at, ended_at, fence, claimed_on, manual, status, revision,
    schedule_version, queue_key, worker, attempt, job_id, flags, error)
SELECT at, at, at, at, at + interval '1 s', n, (at AT TIME ZONE 'UTC')::date, 0,
    (CASE WHEN n %% 1000 = 0 THEN 'DEAD' WHEN n %% 100 = 1 THEN 'SKIPPED' ELSE 'SUCCEEDED' END)::run_status, 3, 1, k.id, w.id, 1,
    CASE WHEN n %% 10 = 0 THEN %(job)s ELSE 'j_' || translate(substr(md5((n %% 100000)::text), 1, 13), 'f', 'g') END, '', ''
FROM generate_series(1, %(rows)s) n, LATERAL (SELECT at_ms(%(at)s + n::bigint * %(days)s * 86400000 / %(rows)s) AS at) t,
    (SELECT id FROM queue_keys LIMIT 1) k, (SELECT id FROM worker_names LIMIT 1) w
"""
_DEAD = """
INSERT INTO dead_letters (ended_at, scheduled_at, claimed_on, manual, job_id, team)
SELECT ended_at, scheduled_at, claimed_on, manual, job_id, 'team-' || fence %% 100 FROM finished_runs WHERE status = 'DEAD'
"""
_SKIPS = """
INSERT INTO skips (job_id, first_at, last_at, total, reason, skipped_at)
SELECT CASE WHEN n %% 10 = 0 THEN %(job)s ELSE 'j_' || substr(md5(n::text), 1, 13) END, at_ms(%(at)s + n), at_ms(%(at)s + n), 1,
    'paused', at_ms(%(at)s + n) FROM generate_series(1, %(rows)s / 10) n
"""


async def measure(*, rows: int, clock: Clock) -> dict[str, Any]:
    """Fills a ledger and reads pages from it.

    Args:
        rows: How many jobs, and how many runs.
        clock: The clock.

    Returns:
        Of each read how long it took (ms) and how it was planned.
    """
    async with deployment({}, clock=clock) as w, Ledger(w.database_url, clock=clock) as ledger:
        job = derive_job_id("bench", "busy", 1)
        began = clock.perf_s()
        await fill(w.database_url, rows=rows, job=job)
        filled_s = clock.perf_s() - began
        found = {}
        for name, read in reads(ledger, job, middle=rows // 10 * 5).items():
            found[name] = await measured(ledger, read, clock=clock)
        sizes = await _sizes(w.database_url, rows=rows)
    slow = [
        name
        for name, said in found.items()
        if said["ms"] > MOST_MS or (rows >= _MANY and "Seq Scan on jobs" in said["plan"])
    ]
    return {
        "benchmark": "ledger-reads",
        "rows": rows,
        "filled_s": round(filled_s, 1),
        "bytes": sizes,
        "reads": found,
        "verdict": [f"BREACH: {slow}" if slow else "ok"],
        **circumstances(clock),
    }


def reads(ledger: Ledger, job: JobId, *, middle: int) -> dict[str, Read]:
    """The reads that grow. middle: the number of a job from the middle."""
    return {
        "jobs": lambda: ledger.jobs.list(),
        "jobs by team": lambda: ledger.jobs.list(team="team-7"),
        "jobs by state": lambda: ledger.jobs.list(state=JobState.PAUSED),
        "jobs by team and state": lambda: ledger.jobs.list(team="team-10", state=JobState.PAUSED),
        "jobs by tag": lambda: ledger.jobs.list(tag="tag-100"),
        "jobs by name": lambda: ledger.jobs.list(name=f"job {middle}"),
        "jobs by text": lambda: ledger.jobs.list(q="nowhere"),
        "jobs by text of a team": lambda: ledger.jobs.list(team="team-7", q="nowhere"),
        "runs of a job": lambda: ledger.runs.list(job),
        "skips of a job": lambda: ledger.skips.list(job),
        "dead letters": lambda: ledger.runs.dead_letters(),
        "dead letters of a team": lambda: ledger.runs.dead_letters(team="team-0"),
    }


async def fill(url: str, *, rows: int, job: JobId) -> None:
    """Fills a fresh ledger with so many jobs and runs; a tenth of the runs, and of the skips, are of the job."""
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as c:
        await c.execute("SET synchronous_commit = off; SET work_mem = '256MB'")
        for day in range(-1, _DAYS + 2):
            await c.execute(
                f"CREATE TABLE finished_runs_day{day + 1} PARTITION OF finished_runs FOR VALUES FROM"
                f" (('2026-10-26'::date + {day})) TO (('2026-10-26'::date + {day + 1}))".encode()
            )
        await c.execute(
            "INSERT INTO queue_keys (shard, key, queue, team, priority) VALUES ('s0', 'q:t:1', 'q', 't', 'normal')"
        )
        await c.execute("INSERT INTO worker_names (name) VALUES ('w')")
        values = {"rows": rows, "at": _AT, "job": job, "days": _DAYS, "value": _value()}
        for query in (_JOBS, _RUNS, _SKIPS):
            await c.execute(query.encode(), values)
        await c.execute(_DEAD.replace("%%", "%").encode())
        await c.execute("VACUUM ANALYZE")


def _value() -> bytes:
    d = Definition(
        team="t", name="n", incarnation=1, schedule=ScheduleSpec(at="2026-10-26T00:00:00Z"), target=FunctionTarget(function="f"),
        payload=None, timeout_s=60, retry=RetryPolicy(), misfire_policy="run_once", misfire=Misfire(), overlap="allow",
        priority="normal", tags=[], created_at=_AT, updated_at=_AT, key=None, body_hash="h",
    )  # fmt: skip
    return JobRecord(JobHead(JobState.ACTIVE, 1, 1, _AT, "o", str(_AT), "o", 60_000, d.queue_key), d).pack()


async def measured(ledger: Ledger, read: Read, *, clock: Clock) -> dict[str, Any]:
    """Returns how long the read takes the second time (ms), and the plan of the last statement that it makes."""
    made: list[tuple[str, Any]] = []
    rows = ledger.database.rows

    async def listened(query: str, params: Any) -> Any:
        made.append((query, params))
        return await rows(query, params)

    ledger.database.rows = listened  # type: ignore[method-assign]
    try:
        await read()
        began = clock.perf_s()
        await read()
        took_ms = (clock.perf_s() - began) * 1000
    finally:
        ledger.database.rows = rows  # type: ignore[method-assign]
    query, params = made[-1]
    plan = await rows(f"EXPLAIN (COSTS OFF) {query}", params)
    return {"ms": round(took_ms, 1), "plan": "\n".join(line for (line,) in plan)}


async def _sizes(url: str, *, rows: int) -> dict[str, float]:
    """Bytes a row: of a job beside its definition (value, schedule, target), and of a run."""
    async with await psycopg.AsyncConnection.connect(url) as c:
        found = await c.execute(
            "SELECT pg_total_relation_size('jobs') - (SELECT count(*) * avg(pg_column_size(value) + pg_column_size(schedule)"
            " + pg_column_size(target)) FROM (SELECT * FROM jobs LIMIT 10000) j) * %s / 10000.0,"
            " (SELECT sum(pg_total_relation_size(inhrelid)) FROM pg_inherits WHERE inhparent = 'finished_runs'::regclass)",
            (rows,),
        )
        row = await found.fetchone()
        assert row is not None
        return {"job_beside_its_definition": round(float(row[0]) / rows, 1), "run": round(float(row[1]) / rows, 1)}
