"""Each kind of process, real ones on real servers, scraped over HTTP while jobs run."""

from __future__ import annotations

import asyncio
import signal
import urllib.request
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import NamedTuple

import pytest
from prometheus_client.parser import text_string_to_metric_families

from rsched.core.instants import format_utc
from rsched.core.jobs.model import RetryPolicy, ScheduleSpec
from rsched.embedded.process import free_port
from rsched.runtime.clock import SystemClock
from tests.faults.fault_run import SETTINGS
from tests.support.deployment import Deployment, deployment
from tests.support.factories import new_job, put_all

pytestmark = pytest.mark.slow
GONE = 5


class Scraped(NamedTuple):
    """What one process says; the labels of a sample in any order."""

    samples: dict[tuple[str, frozenset[tuple[str, str]]], float]

    def get(self, name: str, **labels: str) -> float | None:
        return self.samples.get((name, frozenset(labels.items())))

    def total(self, name: str, **labels: str) -> float:
        wanted = frozenset(labels.items())
        return sum(value for (n, found), value in self.samples.items() if n == name and wanted <= found)


class Watched:
    def __init__(self, w: Deployment, ports: dict[str, int]) -> None:
        self.w, self.ports = w, ports

    def start(self, name: str) -> None:
        self.ports[name] = self.ports.get(name) or free_port()
        options = ("--port",) if name == "api" else ("--metrics-port",)
        self.w.fleet.start(name, *options, str(self.ports[name]))

    async def scrape(self, name: str) -> Scraped | None:
        def ask() -> str:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.ports[name]}/metrics", timeout=5) as answer:
                return str(answer.read().decode())

        try:
            text = await asyncio.to_thread(ask)
        except OSError:
            return None
        found = {
            (s.name, frozenset(s.labels.items())): s.value
            for f in text_string_to_metric_families(text)
            for s in f.samples
        }
        return Scraped(found)

    async def until(self, name: str, holds: Callable[[Scraped], bool], *, what: str) -> Scraped:
        """What the process says once it holds."""
        last: list[Scraped] = []

        async def look() -> bool:
            found = await self.scrape(name)
            last[:] = [found] if found else []
            return found is not None and holds(found)

        try:
            await self.w.fleet.until(look, what=what, within_s=30)
        except TimeoutError as error:
            said = {" ".join(map(str, k)): v for s in last for k, v in s.samples.items() if k[0].startswith("rsched_")}
            raise AssertionError(f"{error}\n{said}") from None
        return last[0]

    async def put(self, count: int, *, team: str, function: str = "brief", late_ms: int = 0) -> None:
        now = await self.w.store.clock.read()
        at = ScheduleSpec(at=format_utc(now - late_ms))
        retry = RetryPolicy(max_attempts=2, base="100ms", cap="100ms")
        made = [
            new_job(f"{team} {function} {i}", at, function=function, now=now, team=team, retry=retry)[0]
            for i in range(count)
        ]
        await put_all(self.w.store, made)


@asynccontextmanager
async def watched() -> AsyncIterator[Watched]:
    async with deployment(SETTINGS, clock=SystemClock()) as w:
        d = Watched(w, {})
        d.start("recorder")
        await w.until_open()
        yield d


def play(body: Callable[[Watched], object]) -> None:
    async def main() -> None:
        async with watched() as d:
            await body(d)  # type: ignore[misc]

    asyncio.run(main())


def check_worker(worker: Scraped) -> None:
    done = "rsched_attempts_finished_total"
    assert worker.get(done, queue="default", team="a", outcome="succeeded") == 30
    assert worker.get(done, queue="default", team="b", outcome="succeeded") == 12
    assert worker.get(done, queue="default", team="b", outcome="retrying") == GONE
    assert worker.get(done, queue="default", team="b", outcome="dead") == GONE
    late = "rsched_run_start_lateness_seconds"
    # An unknown function is never started, so it has no lateness.
    assert worker.get(f"{late}_count", queue="default", team="a") == 30
    assert worker.get(f"{late}_bucket", queue="default", team="b", le="10.0") == 0
    assert worker.get(f"{late}_bucket", queue="default", team="b", le="60.0") == 12
    assert (worker.get(f"{late}_sum", queue="default", team="b") or 0) >= 12 * 20
    assert worker.total("rsched_script_duration_seconds_count", verb="fetch") > 0
    assert worker.get("rsched_attempts_running") == worker.get("rsched_results_waiting") == 0


def check_recorder(recorder: Scraped) -> None:
    # Of each run four moves at least, and two more of each that was tried again.
    assert recorder.total("rsched_recorded_events_total", stream="journal") >= 3 * 47
    assert 0 < recorder.total("rsched_record_transactions_total") <= recorder.total("rsched_recorded_events_total")
    one = {"shard": "s0"}
    assert recorder.get("rsched_shard_closed", **one) == 0
    assert (recorder.get("rsched_shard_generation", **one) or 0) > 0
    assert recorder.get("rsched_workers_live", **one) == 1
    assert recorder.get("rsched_partitions_owned", **one) == 1024
    assert recorder.get("rsched_redis_up", **one) == recorder.get("rsched_postgres_up") == 1
    assert recorder.get("rsched_unfinished_runs", **one) == recorder.get("rsched_runs_in_recovery_grace", **one) == 0
    used, most = (recorder.get(f"rsched_redis_memory_{x}_bytes", **one) for x in ("used", "max"))
    assert used is not None and most is not None and 0 < used < most  # noqa: PT018
    assert recorder.get("rsched_journal_lag_seconds", stream="journal", **one) == 0


def test_each_process_tells_what_it_did(monkeypatch: pytest.MonkeyPatch, tmp_path: object) -> None:
    monkeypatch.setenv("FAULTS_SEEN", f"{tmp_path}/seen")

    async def body(d: Watched) -> None:
        for name in ("scheduler", "worker", "api"):
            d.start(name)
        await d.until("worker", lambda s: s.get("rsched_worker_concurrency") == 50, what="a worker")
        await d.until(
            "scheduler", lambda s: s.get("rsched_partitions_held", shard="s0") == 1024, what="all partitions held"
        )
        await d.put(30, team="a")
        await d.put(12, team="b", late_ms=20_000)
        await d.put(GONE, team="b", function="gone")

        def ended(s: Scraped) -> bool:
            return s.total("rsched_attempts_finished_total") == 42 + 2 * GONE

        worker = await d.until("worker", ended, what="all attempts finished")
        check_worker(worker)
        scheduler = await d.scrape("scheduler")
        assert scheduler is not None
        assert scheduler.get("rsched_claimed_runs_total") == 42 + GONE
        assert (scheduler.get("rsched_released_runs_total") or 0) >= 42 + 2 * GONE
        assert scheduler.total("rsched_alerts_total") == 0

        def recorded(s: Scraped) -> bool:
            lag = [s.get("rsched_journal_lag_entries", shard="s0", stream=x) for x in ("journal", "definitions")]
            return (
                lag == [0, 0]
                and s.get("rsched_schedulers_live", shard="s0") == 1
                and s.get("rsched_leases", shard="s0") == 0
            )

        recorder = await d.until("recorder", recorded, what="all recorded")
        check_recorder(recorder)

        api = await d.until("api", lambda s: True, what="an api")
        again = await d.until(
            "api", lambda s: s.total("rsched_api_requests_total", endpoint="metrics") > 0, what="a count"
        )
        assert again.total("rsched_api_requests_total", status="200") > api.total(
            "rsched_api_requests_total", status="200"
        )

    play(body)


def test_what_waits_for_a_worker_shows_as_depth_and_a_loss_as_an_alert() -> None:
    async def body(d: Watched) -> None:
        d.start("scheduler")
        await d.put(7, team="a")
        await d.put(2, team="b")

        def waiting(s: Scraped) -> bool:
            depth = {
                t: s.get("rsched_queue_depth", shard="s0", queue="default", team=t, priority="normal") for t in "ab"
            }
            return depth == {"a": 7, "b": 2}

        found = await d.until("recorder", waiting, what="the depth of a queue that nobody serves")
        assert found.get("rsched_workers_live", shard="s0") == 0
        assert found.get("rsched_unfinished_runs", shard="s0") == 9
        assert found.get("rsched_alerts_total", kind="writes_lost") == 0
        before = found.get("rsched_shard_generation", shard="s0") or 0
        await d.w.store.connection.client.flushall()
        lost = await d.until(
            "recorder",
            lambda s: (s.get("rsched_shard_generation", shard="s0") or 0) > before,
            what="the next generation",
        )
        assert lost.get("rsched_alerts_total", kind="writes_lost") == 1
        assert lost.get("rsched_shard_closed", shard="s0") == 0

    play(body)


def test_a_stand_by_tells_how_the_journal_lags_while_the_one_at_work_hangs_and_that_redis_is_away() -> None:
    async def body(d: Watched) -> None:
        d.start("recorder-2")
        definitions = {"shard": "s0", "stream": "definitions"}
        await d.put(1, team="a")
        await d.until(
            "recorder-2",
            lambda s: s.get("rsched_journal_lag_entries", **definitions) == 0 and s.get("rsched_postgres_up") == 1,
            what="all recorded",
        )
        # It keeps its lock, so that nobody takes over.
        d.w.fleet.signal("recorder", signal.SIGSTOP)
        for i in range(3):
            await d.put(1, team=f"b{i}")
        behind = await d.until(
            "recorder-2", lambda s: (s.get("rsched_journal_lag_seconds", **definitions) or 0) > 6, what="a lag of 6 s"
        )
        assert behind.get("rsched_journal_lag_entries", **definitions) == 3
        assert (behind.get("rsched_journal_lag_seconds", **definitions) or 0) < 30
        d.w.fleet.signal("recorder", signal.SIGCONT)
        await d.until(
            "recorder-2",
            lambda s: s.get("rsched_journal_lag_seconds", **definitions) == 0,
            what="the lag to be made up",
        )
        child = d.w.servers.redis.child if d.w.servers.redis else None
        assert child is not None
        child.kill()
        gone = await d.until("recorder-2", lambda s: s.get("rsched_redis_up", shard="s0") == 0, what="Redis away")
        assert gone.get("rsched_leases", shard="s0") is None
        assert gone.get("rsched_postgres_up") == 1

    play(body)
