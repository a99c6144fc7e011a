"""The questions of docs/history.md, asked of a database in which their answers are known."""

from __future__ import annotations

import asyncio
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psycopg
import pytest

from rsched.core.jobs.model import HttpTarget
from rsched.core.jobs.packed import Event, SkipEvent
from rsched.core.states import RunState
from rsched.ledger import Ledger
from rsched.runtime.clock import SystemClock
from tests.ledger.events import WallClock, job, job_id, run

Q, R, T, S, D = RunState.QUEUED, RunState.RUNNING, RunState.RETRYING, RunState.SUCCEEDED, RunState.DEAD
HISTORY = Path(__file__).parents[2] / "docs" / "history.md"
NOW = SystemClock().wall_ms()
MIDNIGHT = NOW // 86_400_000 * 86_400_000
THREE = MIDNIGHT + 3 * 3_600_000
MINUTE = 60_000


def question(beginning: str) -> str:
    text = HISTORY.read_text()
    found = re.search(rf"^{re.escape(beginning)}.*?```sql\n(.*?)```", text, re.DOTALL | re.MULTILINE)
    assert found, beginning
    return found[1]


def life(at: int, name: str, *, attempt: int = 1, late: int = 0, took: int = 100) -> Event:
    return run(
        at,
        name=name,
        state=S,
        revision=5,
        attempt=attempt,
        fence=5,
        started_at=at + late,
        worker="w",
        at=at + late + took,
    )


def events() -> list[Event]:
    """Of today, but for what was running at 3 a.m., which may be of a later hour than it is."""
    failed = run(
        MIDNIGHT + 5,
        name="flaky",
        state=T,
        revision=3,
        attempt=1,
        fence=3,
        started_at=MIDNIGHT,
        at=MIDNIGHT,
        detail="boom",
    )
    billing = HttpTarget(url="https://billing.example.com/run", headers={"authorization": "secret"})
    skipped = run(MIDNIGHT + 9, name="nightly", state=RunState.SKIPPED, revision=2, at=MIDNIGHT, detail="overlap")
    return [
        job("nightly"),
        job("flaky", target=billing, tags=["billing", "x"]),
        job("once", kind="o", arg=str(NOW + 10 * MINUTE)),
        job("far", kind="o", arg=str(NOW + 999 * MINUTE)),
        life(MIDNIGHT + 1, "nightly"),
        life(MIDNIGHT + 2, "nightly", late=9000),
        life(MIDNIGHT + 3, "flaky", took=7000),
        failed,
        life(MIDNIGHT + 5, "flaky", attempt=2),
        life(THREE - MINUTE, "nightly", took=2 * MINUTE),
        run(MIDNIGHT + 7, name="nightly", state=D, revision=4, attempt=1, fence=8, started_at=MIDNIGHT, at=MIDNIGHT + 8,
            detail="no"),
        skipped,
        run(NOW - 5 * MINUTE, name="nightly", state=Q),
        SkipEvent(job_id("nightly"), MIDNIGHT, MIDNIGHT + 5, 3, "misfire", MIDNIGHT),
    ]  # fmt: skip


def at(ms: int) -> datetime:
    return datetime.fromtimestamp(ms / 1000, UTC)


ANSWERS = {
    "Which runs started late": [("default", 1, timedelta(seconds=9))],
    "Which jobs are flaky": [("default", "flaky", 2, 1)],
    "What ran at 3 a.m.": [
        (f"{job_id('nightly')}:{THREE - MINUTE}", "default", "SUCCEEDED", at(THREE - MINUTE), at(THREE + MINUTE))
    ],
    "What did attempts fail of": [("no", 1, at(MIDNIGHT + 8)), ("boom", 1, at(MIDNIGHT))],
    "Why did occurrences make no run": [("misfire", 3), ("overlap", 1)],
    "How many runs has each team": [("default", "QUEUED", 1), ("default", "SUCCEEDED", 5), ("default", "DEAD", 1),
                                    ("default", "SKIPPED", 1)],
    "Which jobs with a given tag": [("default", "flaky", "active", "https://billing.example.com/run")],
}  # fmt: skip


@pytest.fixture
def populated(database_url: str) -> str:
    async def main() -> None:
        async with Ledger(database_url, clock=WallClock(NOW)) as ledger:
            assert await ledger.write.record("s0", stream="journal", expected="0-0", new="1-0", events=events())

    asyncio.run(main())
    return database_url


def test_each_question_of_the_page_gets_its_answer(populated: str) -> None:
    with psycopg.connect(populated) as c:
        c.execute("SET timezone TO 'UTC'")
        for beginning, expected in ANSWERS.items():
            found = c.execute(question(beginning).encode()).fetchall()
            assert sorted(map(repr, found)) == sorted(map(repr, expected)), beginning
        longest = c.execute(question("Which runs took longest").encode()).fetchall()
        assert longest[0][0] == f"{job_id('nightly')}:{THREE - MINUTE}"
        assert longest[0][3] == timedelta(minutes=2)
        assert len(longest) == 6
        waiting = c.execute(question("What waits or runs now").encode()).fetchall()
        assert [row[:5] for row in waiting] == [("default", "default", "normal", "QUEUED", 1)]
        assert waiting[0][5] >= timedelta(minutes=5)
        due = c.execute(question("What is due within an hour").encode()).fetchall()
        assert [(name, when) for _, name, when, _, _ in due] == [("once", at(NOW + 10 * MINUTE))]


def test_the_target_of_a_job_does_not_show_its_headers(populated: str) -> None:
    with psycopg.connect(populated) as c:
        targets = c.execute("SELECT target::text FROM jobs").fetchall()
    assert len(targets) == 4
    assert not [t for (t,) in targets if "secret" in t or "headers" in t]
