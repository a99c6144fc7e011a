"""Writes the files that are generated from code; with --check says which of them differ, and exits 1.

docs/lifecycle.md follows core/states.py, api/openapi.json the msgspec types, rsched/client/sync/ the files in rsched/client/aio/,
parts of lua/lib the states and packed formats of core.
"""

from __future__ import annotations

import sys
from pathlib import Path

from rsched_api.openapi import render

from rsched.core.states import MOVES, RunState
from tools import lua_codes, sync_client

ROOT = Path(__file__).parents[1]


def lifecycle() -> str:
    """The page on a run's states, from the table of moves."""
    name = {None: "none"} | {s: s.value for s in RunState}
    edges: dict[tuple[str, str], list[str]] = {}
    for move in MOVES:
        edges.setdefault((name[move.source], name[move.target]), []).append(move.verb)
    lines = [
        "# The life of a run",
        "",
        "Generated from `rsched/core/states.py` by `make docs`; do not edit.",
        "",
        "```mermaid",
        "stateDiagram-v2",
    ]
    for (source, target), verbs in edges.items():
        lines.append(f"    {'[*]' if source == 'none' else source} --> {target}: {', '.join(dict.fromkeys(verbs))}")
    lines += [f"    {s.value} --> [*]" for s in RunState if s.final]
    lines += ["```", "", "| verb | from | to | what must be presented |", "|---|---|---|---|"]
    lines += [f"| {m.verb} | {name[m.source]} | {name[m.target]} | {m.presents} |" for m in MOVES]
    return "\n".join(lines) + "\n"


def main(arguments: list[str]) -> int:
    wanted = {ROOT / "docs" / "lifecycle.md": lifecycle(), ROOT / "api" / "openapi.json": render()}
    wanted |= sync_client.files(ROOT)
    wanted |= {ROOT / path: render() for path, render in lua_codes.GENERATED.items()}
    stale = [path for path, text in wanted.items() if not path.exists() or path.read_text() != text]
    if "--check" in arguments:
        for path in stale:
            print(f"{path.relative_to(ROOT)} is out of date; run `make docs`")
        return 1 if stale else 0
    for path in stale:
        path.write_text(wanted[path])
        print(f"wrote {path.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
