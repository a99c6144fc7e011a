"""Writes the files that follow from code: `python -m tools.generate`.

With `--check` it writes nothing, names each file that is out of date, and exits 1 if there is one.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from rsched_api import openapi

from tools import lifecycle, lua_codes, sync_client

ROOT = Path(__file__).parents[1]

# One row a file: its path below the root of the repository, and what returns its whole text. A folder of files that is
# made from another one (the sync client) is added below.
GENERATED: dict[str, Callable[[], str]] = {
    "docs/lifecycle.md": lifecycle.render,
    "api/openapi.json": openapi.render,
    **lua_codes.GENERATED,
}


def stale_files() -> dict[Path, str]:
    """Returns the files that are missing or differ from what the code says, each with the text it should have."""
    wanted = {ROOT / path: render() for path, render in GENERATED.items()} | sync_client.files(ROOT)
    return {path: text for path, text in wanted.items() if not path.exists() or path.read_text() != text}


def main(arguments: Sequence[str]) -> int:
    """Writes or checks all generated files.

    Args:
        arguments: the command line without the program's name.

    Returns:
        The exit code: 1 if `--check` was given and a file is out of date, else 0.
    """
    parser = argparse.ArgumentParser(prog="python -m tools.generate", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if a file is out of date")
    checks_only = parser.parse_args(arguments).check
    stale = stale_files()
    for path, text in stale.items():
        if checks_only:
            print(f"{path.relative_to(ROOT)} is out of date; run `make docs`")
        else:
            path.write_text(text)
            print(f"wrote {path.relative_to(ROOT)}")
    return 1 if stale and checks_only else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
