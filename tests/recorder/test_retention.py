from __future__ import annotations

import asyncio
import logging
from pathlib import Path

import psycopg
import pytest

from rsched.core.errors import Misconfigured, Unavailable
from rsched.core.settings import RecorderSettings, load
from rsched.ledger import Ledger
from rsched.recorder.housekeeping import Retention
from tests.ledger.events import T0, WallClock
from tests.ledger.retention_cases import OLD, TODAY, record, rid, succeeded


def steps(url: str, *, archive_dir: str, days: int = 30) -> tuple[int, bool]:
    """(steps that found work, whether the old run is still in Postgres)."""

    async def main() -> tuple[int, bool]:
        async with Ledger(url, clock=WallClock(TODAY)) as ledger:
            await record(ledger, [succeeded(T0)])
            retention = Retention(ledger, archive_dir=archive_dir, retention_days=days, clock=WallClock(TODAY))
            worked = 0
            while await retention.step():
                worked += 1
            assert not await retention.step()
            return worked, await ledger.runs.get(rid(T0)) is not None

    return asyncio.run(main())


def test_old_history_goes_to_the_folder_a_step_at_a_time(database_url: str, tmp_path: Path) -> None:
    assert steps(database_url, archive_dir=str(tmp_path / "new")) == (2, False)
    assert (tmp_path / "new" / "runs" / f"{OLD}.json").exists()


def test_without_a_folder_nothing_is_dropped_and_it_is_said_once(
    database_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, logger="rsched.recorder"):
        assert steps(database_url, archive_dir="") == (0, True)
    assert [r.getMessage().count("RSCHED_RECORDER_ARCHIVE_DIR") for r in caplog.records] == [1]


def test_0_days_keep_history_for_ever_and_say_nothing(
    database_url: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, logger="rsched.recorder"):
        assert steps(database_url, archive_dir=str(tmp_path), days=0) == (0, True)
    assert not caplog.records


def test_a_day_that_others_are_reading_is_waited_for_as_long_as_between_looks_and_that_is_said_once(
    database_url: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        async with Ledger(database_url, clock=WallClock(TODAY)) as ledger:
            await record(ledger, [succeeded(T0)])
            retention = Retention(ledger, archive_dir=str(tmp_path), retention_days=30, clock=WallClock(TODAY))
            async with await psycopg.AsyncConnection.connect(database_url) as c:
                await c.execute("LOCK TABLE runs IN ACCESS SHARE MODE")
                assert not await retention.step()
                assert not await retention.step()
            assert await retention.step()

    with caplog.at_level(logging.WARNING, logger="rsched.recorder"):
        asyncio.run(main())
    assert [OLD in str(r.__dict__) for r in caplog.records] == [True]


def test_a_folder_that_is_a_file_is_refused_at_the_start(database_url: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    ledger = Ledger(database_url, clock=WallClock(TODAY))
    with pytest.raises(Misconfigured, match="archive_dir"):
        Retention(ledger, archive_dir=str(tmp_path / "file"), retention_days=30, clock=WallClock(TODAY))


def test_what_nobody_thought_of_is_logged_and_the_loop_goes_on(
    database_url: str, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Hasty(WallClock):
        async def sleep(self, ms: float) -> None:
            await super().sleep(min(ms, 1))

    failures = iter([KeyError("odd"), Unavailable("away")])

    async def main() -> None:
        async with Ledger(database_url, clock=Hasty(TODAY)) as ledger:
            await record(ledger, [succeeded(T0)])
            retain = ledger.retention.retain

            async def failing(*args: object, **named: object) -> object:
                for failure in failures:
                    raise failure
                return await retain(*args, **named)  # type: ignore[arg-type]

            monkeypatch.setattr(ledger.retention, "retain", failing)
            retention = Retention(ledger, archive_dir=str(tmp_path), retention_days=30, clock=Hasty(TODAY))
            loop = asyncio.ensure_future(retention.run())
            async with asyncio.timeout(20):
                while not (tmp_path / "runs" / f"{OLD}.json").exists():
                    retention.wake.set()
                    await Hasty(TODAY).sleep(5)
            loop.cancel()
            await asyncio.wait([loop])

    asyncio.run(main())
    assert [r.exc_info is not None for r in caplog.records if "nothing of it is dropped" in r.getMessage()] == [True]


def test_retention_is_set_by_the_environment() -> None:
    env = {"RSCHED_RECORDER_RETENTION_DAYS": "7", "RSCHED_RECORDER_ARCHIVE_DIR": "/a"}
    settings = load(RecorderSettings, env=env, toml={})
    assert (settings.retention_days, settings.archive_dir) == (7, "/a")
