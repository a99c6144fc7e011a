"""What the recorder counts of the events that it has written."""

from __future__ import annotations

from collections.abc import Sequence

from rsched.core.jobs.packed import Event, SkipEvent
from rsched.runtime.metrics import RECORDED, SKIPPED, TRANSACTIONS, Metrics


def count_recorded(metrics: Metrics, stream: str, events: Sequence[Event], *, aside: int) -> None:
    """After the commit of one transaction. aside: how many of them were quarantined."""
    metrics.add(TRANSACTIONS, stream)
    metrics.add(RECORDED, stream, by=len(events))
    for event in events:
        if type(event) is SkipEvent:
            metrics.add(SKIPPED, event.reason, by=event.total)
    for _ in range(aside):
        metrics.alert("quarantined_event")
