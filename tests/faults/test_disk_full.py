"""Postgres has no room left on its disk: runs go on, and what it could not take is recorded once there is room again."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

from tests.faults.fault_run import RUNS, Run, drive, fault_run

pytestmark = [pytest.mark.faults, pytest.mark.timeout(180)]

DISK = "24m"


@contextmanager
def small_disk() -> Iterator[Path]:
    """The folder of a file system of DISK bytes. Skips where none may be mounted."""
    folder = Path(tempfile.mkdtemp(prefix="rsched-disk-"))
    try:
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK}", "tmpfs", folder], capture_output=True)
        if mounted.returncode:
            pytest.skip(f"needs the right to mount a file system: {mounted.stderr.decode().strip()}")
        try:
            yield folder
        finally:
            subprocess.run(["umount", folder], check=True)
    finally:
        folder.rmdir()


def move_history(run: Run, disk: Path) -> None:
    """The tables of runs go to this disk."""
    server = (run.w.folder / "postgres" / "data").stat()
    os.chown(disk, server.st_uid, server.st_gid)
    with psycopg.connect(run.w.database_url, autocommit=True) as c:
        c.execute(f"CREATE TABLESPACE small LOCATION '{disk}'".encode())
        days = c.execute("SELECT inhrelid::regclass::text FROM pg_inherits WHERE inhparent = 'finished_runs'::regclass")
        for table in ("unfinished_runs", *(table for (table,) in days.fetchall())):
            c.execute(f"ALTER TABLE {table} SET TABLESPACE small".encode())


def fill(path: Path) -> None:
    with path.open("wb") as file:
        try:
            while True:
                file.write(b"\0" * 65536)
                file.flush()
        except OSError:
            pass
    assert os.statvfs(path).f_bavail == 0


def test_what_a_full_disk_refused_is_recorded_once_there_is_room() -> None:
    async def scenario(disk: Path) -> None:
        async with fault_run() as run:
            move_history(run, disk)
            await run.put_spread(RUNS)
            await run.until_recorded()
            ballast = disk / "ballast"
            fill(ballast)
            await run.until_started(0.9)
            await run.until(lambda: "no room left" in run.fleet.log("recorder-1"), "a word of the full disk")
            assert run.fleet.log("recorder-1").count("no room left") == 1
            ballast.unlink()
            await run.until_settled()
            await run.verdict()
            with psycopg.connect(run.w.database_url) as c:
                assert c.execute("SELECT count(*) FROM quarantine").fetchone() == (0,)

    with small_disk() as disk:
        drive(lambda: scenario(disk))
