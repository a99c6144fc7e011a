"""Percentiles, and what a result says about the machine and the tree it came from."""

from __future__ import annotations

import json
import os
import platform
import subprocess
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rsched.runtime.clock import Clock
from tests.support.fleet import ROOT


def percentile(ordered: Sequence[float], q: float) -> float:
    """The smallest value that at least the part q (0 to 1) of all values does not exceed."""
    if not ordered:
        return 0.0
    return ordered[max(0, min(len(ordered) - 1, -int(-q * len(ordered) // 1) - 1))]


def latency(values_ms: Sequence[float]) -> dict[str, float]:
    ordered = sorted(values_ms)
    shown = {f"p{int(q * 100)}_ms": percentile(ordered, q) for q in (0.5, 0.9, 0.99)}
    return {"count": len(ordered), "min_ms": ordered[0] if ordered else 0.0, **shown, "max_ms": percentile(ordered, 1)}


def used(before: dict[str, float], after: dict[str, float]) -> dict[str, float]:
    """Seconds of CPU by process between two looks."""
    return {name: round(s - before.get(name, 0.0), 3) for name, s in after.items()}


def circumstances(clock: Clock) -> dict[str, Any]:
    """Where, when and from what a result was obtained."""
    return {
        "date": datetime.fromtimestamp(clock.wall_ms() / 1000, UTC).isoformat(timespec="seconds"),
        "revision": _git("rev-parse", "--short", "HEAD") + ("-modified" if _git("status", "--porcelain") else ""),
        "machine": {
            "cpu": _cpu_model(),
            "cores": os.cpu_count(),
            "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
            "system": f"{platform.system()} {platform.release()}",
            "python": platform.python_version(),
            "load_1min": os.getloadavg()[0],
        },
    }


def _git(*arguments: str) -> str:
    try:
        done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True)
    except FileNotFoundError:
        return ""
    return done.stdout.strip()


def _cpu_model() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor()


def write(result: dict[str, Any], path: Path | None) -> None:
    """As JSON; to standard output where no file is given."""
    text = json.dumps(result, indent=2)
    if path is None:
        print(text)
    else:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n")
