"""Each list of the ledger that grows is read by an index that serves its order (`python -m bench ledger-reads`: at millions)."""

from __future__ import annotations

import asyncio

import psycopg

from bench.ledger_reads import fill, measured, reads
from rsched.core.ids import derive_job_id
from rsched.ledger import Ledger
from rsched.runtime.clock import SystemClock

ROWS = 20_000
INDEXES = {
    "jobs": "jobs_by_state",
    "jobs by team": "jobs_by_team",
    "jobs by state": "jobs_by_state",
    "jobs by team and state": "jobs_by_team",
    "jobs by tag": "jobs_by_tag",
    "jobs by name": "jobs_by_handle",
    "jobs by text": "jobs_by_state",
    "jobs by text of a team": "jobs_by_team",
    "runs of a job": "_pkey",
    "skips of a job": "skips_pkey",
    "dead letters": "dead_letters_by_age",
    "dead letters of a team": "dead_letters_of_team",
}


def test_each_list_is_read_by_its_index(database_url: str) -> None:
    async def main() -> dict[str, str]:
        clock = SystemClock()
        async with Ledger(database_url, clock=clock) as ledger:
            job = derive_job_id("bench", "busy", 1)
            await fill(database_url, rows=ROWS, job=job)
            return {
                name: (await measured(ledger, read, clock=clock))["plan"]
                for name, read in reads(ledger, job, middle=ROWS // 10 * 5).items()
            }

    with psycopg.connect(database_url, autocommit=True) as c:
        # So that it is told what can be read by no index, however few rows there are.
        c.execute(f"ALTER DATABASE {c.info.dbname} SET enable_seqscan = off")
    plans = asyncio.run(main())
    assert plans.keys() == INDEXES.keys()
    for name, index in INDEXES.items():
        assert index in plans[name], (name, plans[name])
        for table in ("jobs", "finished_runs", "skips", "dead_letters"):
            assert f"Seq Scan on {table}" not in plans[name], (name, plans[name])
