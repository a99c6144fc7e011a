"""Type checkers in their strictest mode read a user's program without an error."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

PROGRAM = Path(__file__).with_name("program.py")

pytestmark = pytest.mark.slow


def test_mypy_strict_finds_nothing(tmp_path: Path) -> None:
    # Away from the repository, so that none of its settings is in force; errors of rsched itself are shown, too.
    command = [
        sys.executable,
        "-m",
        "mypy",
        "--strict",
        "--cache-dir",
        str(tmp_path),
        "--config-file",
        "",
        str(PROGRAM),
    ]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_pyright_strict_finds_nothing(tmp_path: Path) -> None:
    settings = {
        "typeCheckingMode": "strict",
        "include": [PROGRAM.name],
        "reportUnnecessaryTypeIgnoreComment": False,
        "enableTypeIgnoreComments": False,
        "pythonVersion": "3.11",
    }
    (tmp_path / "pyrightconfig.json").write_bytes(msgspec.json.encode(settings))
    (tmp_path / PROGRAM.name).write_text(PROGRAM.read_text())
    command = [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable, "-p", str(tmp_path)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    found = msgspec.json.decode(done.stdout)
    assert found["summary"]["filesAnalyzed"] == 1
    assert [(d["range"]["start"]["line"] + 1, d["message"]) for d in found["generalDiagnostics"]] == []


def test_it_would_find_something(tmp_path: Path) -> None:
    # What the program marks as wrong is wrong for both: without the marks there are as many errors as marks.
    text = PROGRAM.read_text()
    marked = [number for number, line in enumerate(text.splitlines(), 1) if "# pyright: ignore" in line]
    bare = tmp_path / "bare.py"
    bare.write_text("\n".join(line.partition("  # type: ignore")[0] for line in text.splitlines()) + "\n")
    mypy = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path), "--config-file", "", str(bare)]
    told = subprocess.run(mypy, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False).stdout
    assert sorted({int(line.split(":")[1]) for line in told.splitlines() if ": error:" in line}) == marked
