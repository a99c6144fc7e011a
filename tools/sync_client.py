"""Makes rsched/client/sync/ from rsched/client/aio/: the same methods without async and await.

Written once and typed twice: type checkers and editors see two plain classes, and no method is written by hand a second time.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

SOURCE, MADE = Path("rsched/client/aio"), Path("rsched/client/sync")

# In this order, on whole words.
_WORDS = (
    (r"async (def|with|for)\b", r"\1"),
    (r"\n *settle_at_exit\(\)", ""),
    (r", settle_at_exit\b", ""),
    (r"await ", ""),
    (r"\b__a(enter|exit)__", r"__\1__"),
    (r"\baclose\b", "close"),
    (r"\bAsyncIterator\b", "Iterator"),
    (r"\bAsync(?=[A-Z])", ""),
    (r"\bClientBuilder\b", "SyncClientBuilder"),
    (r"\bclient\.aio\b", "client.sync"),
    (r"\b_clock\.sleep\b", "_clock.sleep_sync"),
    # Docstrings.
    (r"takes any number of calls at once", "may be used by any number of threads"),
    (r"for programs with an event loop, written by hand; the one without, in sync/, is made from these files",
     "for programs without an event loop, made from the files in aio/"),
)  # fmt: skip


def files(root: Path) -> dict[Path, str]:
    """Gives the text of each file of the sync client.

    Args:
        root: The repository.
    """
    return {root / MADE / path.name: _made(root, path) for path in sorted((root / SOURCE).glob("*.py"))}


def _made(root: Path, path: Path) -> str:
    text = path.read_text("utf-8")
    for found, put in _WORDS:
        text = re.sub(found, put, text)
    first = f"# Generated from {SOURCE}/{path.name} by tools/sync_client.py (`make docs`); do not edit.\n"
    return _formatted(root, first + text, MADE / path.name)


def _formatted(root: Path, text: str, name: Path) -> str:
    ruff = [sys.executable, "-m", "ruff"]
    # `yield from`, which only the sync way has, and the order of imports; where the files do not exist yet, too.
    fix = ["check", "--select", "I,UP028", "--fix-only", "--unsafe-fixes", "--quiet"]
    fix += ["--config", 'lint.isort.known-first-party=["rsched"]']
    for command in (fix, ["format", "--quiet"]):
        done = subprocess.run(
            [*ruff, *command, "--stdin-filename", str(name), "-"],
            cwd=root, input=text, capture_output=True, text=True, check=True,
        )  # fmt: skip
        text = done.stdout
    return text
