"""What the reconciler's verbs on runs and jobs have in common: a finding, and ids that hands may have written."""

from __future__ import annotations

from collections.abc import Sequence

from rsched.core.ids import RunId

# What is wrong, by its name in metrics and in `rsched reconcile`, and with which run, job, entry or team.
Finding = tuple[str, str]


def read_findings(flat: Sequence[bytes]) -> list[Finding]:
    """Returns the findings of a reply."""
    return [(kind.decode(), what.decode(errors="replace")) for kind, what in zip(flat[::2], flat[1::2], strict=True)]


# Hands may have written anything: ids that are no text go through Python unharmed.
def read_run(raw: bytes) -> RunId:
    """Returns a run's id as text, from which `runs.to_bytes` makes the same bytes again."""
    return RunId(raw.decode(errors="surrogateescape"))


def read_runs(flat: Sequence[bytes]) -> list[RunId]:
    """Returns the ids of runs as text."""
    return [read_run(raw) for raw in flat]
