"""Renders the page on a run's states from the table of moves."""

from __future__ import annotations

from rsched.core.states import MOVES, RunState


def render() -> str:
    """Returns docs/lifecycle.md: a diagram of all states, and a row for each move of `rsched/core/states.py`."""
    name = {None: "none"} | {state: state.value for state in RunState}
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
    lines += [f"    {state.value} --> [*]" for state in RunState if state.final]
    lines += ["```", "", "| verb | from | to | what must be presented |", "|---|---|---|---|"]
    lines += [f"| {move.verb} | {name[move.source]} | {name[move.target]} | {move.presents} |" for move in MOVES]
    return "\n".join(lines) + "\n"
