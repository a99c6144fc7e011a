"""What ties attempts together: the trace of a run, the span of an attempt."""

from __future__ import annotations

from rsched.core.ids import RunId
from rsched.worker.context import traceparent

ONE, OTHER = RunId("j_0123456789abc:1793000000001"), RunId("j_0123456789abc:1793000000002")


def test_attempts_at_a_run_share_its_trace_and_have_spans_of_their_own() -> None:
    (_, trace, span, _), (_, same_trace, other_span, _) = (traceparent(ONE, fence).split("-") for fence in (1, 2))
    assert trace == same_trace
    assert span != other_span


def test_runs_have_traces_of_their_own() -> None:
    assert traceparent(ONE, 1).split("-")[1] != traceparent(OTHER, 1).split("-")[1]
