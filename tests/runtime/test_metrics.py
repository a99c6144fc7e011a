from __future__ import annotations

import re
import time
import timeit
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from rsched.core.jobs.model import ScheduleSpec, queue_of
from rsched.core.states import RunState
from rsched.runtime.instruments import IDLE_SCRAPES, LIMIT, OTHER, Declared, Histograms, Numbers
from rsched.runtime.metrics import ALERTS, ATTEMPTS, ATTEMPTS_DROPPED, LATENESS, METRICS, Metrics
from tests.support.factories import make_definition

DOCS = Path(__file__).parents[2] / "docs"
COUNTED = Declared("rsched_x_total", "counter", "X.", ("worker",), ("queue", "team"), "team")
TIMED = Declared("rsched_x_seconds", "histogram", "X.", ("worker",), ("queue", "team"), "team", (0.1, 1.0))


def samples(metrics: Metrics) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    found = text_string_to_metric_families(metrics.render().decode())
    return {(s.name, tuple(sorted(s.labels.items()))): s.value for family in found for s in family.samples}


def total(family: Numbers) -> float:
    return sum(child.value for _, child in family.series())


def test_names_follow_the_conventions_and_are_declared_once() -> None:
    assert len({d.name for d in METRICS}) == len(METRICS)
    for d in METRICS:
        assert re.fullmatch(r"rsched_[a-z]+(_[a-z]+)*", d.name), d.name
        assert (d.kind == "counter") == d.name.endswith("_total"), d.name
        assert (d.kind == "histogram") == bool(d.buckets), d.name
        assert d.kind != "histogram" or d.name.endswith("_seconds"), d.name
        assert list(d.buckets) == sorted(d.buckets), d.name
        assert d.help.endswith("."), d.name
        assert not d.capped or d.capped in d.labels, d.name
        assert ("team" in d.labels) <= (d.capped == "team" or d.name == "rsched_queue_depth"), d.name


def test_the_page_of_metrics_lists_exactly_what_is_declared() -> None:
    page = (DOCS / "metrics.md").read_text()
    rows = [line for line in page.splitlines() if line.startswith("| `rsched_")]
    declared = [
        f"| `{d.name}` | {d.kind} | {', '.join(f'`{label}`' for label in d.labels) or '-'} | {', '.join(d.of)} | {d.help} |"
        for d in METRICS
    ]
    assert sorted(rows) == sorted(declared)


def test_every_alert_is_about_metrics_and_labels_that_exist() -> None:
    page = (DOCS / "operations.md").read_text().partition("## What to alert on")[2].partition("\n## ")[0]
    rows = [line.split(" | ") for line in page.splitlines() if line.startswith("| `")]
    assert len(rows) > 20
    known: dict[str, set[str]] = {"up": {"job", "instance"}}
    for d in METRICS:
        for suffix in ("_bucket", "_sum", "_count") if d.kind == "histogram" else ("",):
            known[d.name + suffix] = {*d.labels, "instance", "job", "le"}
    for row in rows:
        expression = row[0].removeprefix("| ").strip("`")
        assert len(row) == 4, row
        assert re.fullmatch(r"\d+[sm]", row[1]), row
        names = re.findall(r"\b(?:rsched_\w+|up)\b", expression)
        assert names, expression
        labels = re.findall(r"by \(([^)]*)\)", expression) + re.findall(r"[{,](\w+)=", expression)
        for name in names:
            assert name in known, f"{name} in {expression}"
            for label in ", ".join(labels).split(", ") if labels else ():
                assert label in known[name], f"{label} of {name} in {expression}"


def test_what_a_process_counts_is_there_from_its_start() -> None:
    found = samples(Metrics("worker"))
    assert found[ATTEMPTS_DROPPED.name, ()] == 0
    assert (ALERTS.name, (("kind", "job_invalid"),)) not in found
    assert samples(Metrics("scheduler"))[ALERTS.name, (("kind", "job_invalid"),)] == 0


def test_a_histogram_counts_each_value_in_all_buckets_above_it() -> None:
    metrics = Metrics("worker")
    for value in (0.0, 0.005, 0.3, 7200.0):
        metrics.lateness.child("http", "a").observe(value)
    found = {
        n + dict(labels).get("le", ""): v for (n, labels), v in samples(metrics).items() if n.startswith(LATENESS.name)
    }
    name = LATENESS.name
    assert found[f"{name}_bucket0.005"] == 2
    assert found[f"{name}_bucket0.25"] == 2
    assert found[f"{name}_bucket0.5"] == 3
    assert found[f"{name}_bucket3600.0"] == 3
    assert found[f"{name}_bucket+Inf"] == found[f"{name}_count"] == 4
    assert found[f"{name}_sum"] == pytest.approx(7200.305)


def test_label_values_come_out_as_they_went_in() -> None:
    metrics = Metrics("recorder")
    metrics.repaired('a "quoted"\nkind\\')
    metrics.repaired("nothing", 0)
    assert samples(metrics)["rsched_repairs_total", (("kind", 'a "quoted"\nkind\\'),)] == 1
    assert b"nothing" not in metrics.render()


def test_a_flood_of_teams_is_counted_as_other_and_takes_no_more_series() -> None:
    family = Numbers(COUNTED)
    for i in range(10 * LIMIT):
        family.child("http", f"team-{i}").inc()
        family.child("default", f"team-{i}").inc()
    assert len(family) == 2 * LIMIT + 2
    assert total(family) == 20 * LIMIT
    assert family.child("http", "team-0").value == 1
    assert family.child("http", "never-seen").value == family.child("http", OTHER).value == 9 * LIMIT


def test_memory_stays_bounded_under_a_flood_of_names() -> None:
    family = Numbers(COUNTED, limit=2)
    for i in range(100_000):
        family.child("http", f"team-{i}").inc()
    assert len(family._by_key) < 25_000
    assert total(family) == 100_000


def test_a_team_that_has_nothing_for_long_makes_room_and_no_sum_falls() -> None:
    family, hist = Numbers(COUNTED, limit=2), Histograms(TIMED, limit=2)
    for team in ("idle", "busy", "late"):
        family.child("http", team).inc(5)
        hist.child("http", team).observe(0.5)
    for _ in range(IDLE_SCRAPES + 1):
        family.child("http", "busy").inc()
        hist.child("http", "busy").observe(0.5)
        family.age()
        hist.age()
    family.child("http", "late").inc(3)
    hist.child("http", "late").observe(2)
    teams = {labels[1]: child.value for labels, child in family.series()}
    assert teams == {"busy": 5 + IDLE_SCRAPES + 1, "late": 3, OTHER: 10}
    assert {labels[1]: sum(child.counts) for labels, child in hist.series()} == {
        "busy": IDLE_SCRAPES + 2, "late": 1, OTHER: 2
    }  # fmt: skip


def test_no_team_makes_room_while_there_is_some() -> None:
    family = Numbers(COUNTED, limit=3)
    family.child("http", "idle").inc()
    for _ in range(2 * IDLE_SCRAPES):
        family.age()
    assert [labels for labels, _ in family.series()] == [("http", "idle")]


def test_a_run_costs_a_worker_under_one_and_a_half_microseconds() -> None:
    metrics = Metrics("worker")
    lateness, attempts, refused, outcome = metrics.lateness, metrics.attempts, False, RunState.SUCCEEDED
    d = make_definition("a job", schedule=ScheduleSpec(every="5s"))

    def one_run() -> None:
        # As Executor._begin and Finisher.step do it.
        lateness.child(queue_of(d.target), d.team).observe((1_012 - 1_000) / 1000)
        attempts.child(queue_of(d.target), d.team, "refused" if refused else str.lower(outcome)).inc()

    script = metrics.script
    best = min(timeit.repeat(one_run, number=20_000, repeat=15, timer=time.thread_time)) / 20_000 * 1e9
    call = (
        min(timeit.repeat(lambda: script("fetch", 0.002), number=20_000, repeat=15, timer=time.thread_time))
        / 20_000
        * 1e9
    )
    print(f"metrics of a run: {best:.0f} ns; of a script call: {call:.0f} ns")
    assert best < 1500
    assert metrics.number(ATTEMPTS).child("default", d.team, "succeeded").value == 300_000
