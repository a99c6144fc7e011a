"""Each benchmark runs to its end, small, so that none of them rots."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from bench.__main__ import ALL, main

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("name", ALL)
def test_a_quick_benchmark_gives_a_result_without_a_breach(name: str, tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    assert main([name, "--quick", "--json", str(path)]) == 0
    # Of a result that does not say where it comes from nothing can be concluded.
    assert re.fullmatch(r"[0-9a-f]{7,40}(-modified)?", json.loads(path.read_text())["revision"])
    result = json.loads(path.read_text())
    assert result["benchmark"] == name
    assert result["machine"]["cores"] >= 1
