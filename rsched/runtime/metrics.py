"""Every metric, declared once, and what a process counts with. Renders the exposition format of Prometheus.

One object a process, handed down; of its event loop alone. docs/metrics.md lists the same metrics, checked by a test.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.platform_collector import PlatformCollector
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import Collector

from rsched.runtime.instruments import Declared, Histograms, Numbers

_LATENESS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 300.0, 3600.0)
_SCRIPT = (0.0005, 0.001, 0.002, 0.003, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1.0, 5.0)
_REQUEST = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_WORKER, _SCHEDULER, _RECORDER, _API = ("worker",), ("scheduler",), ("recorder",), ("api",)
_ALL = (*_API, *_SCHEDULER, *_WORKER, *_RECORDER)
_SHARD = ("shard",)
_STREAM = ("shard", "stream")


def _counter(name: str, of: tuple[str, ...], help_: str, *labels: str, capped: str = "") -> Declared:
    return Declared(name, "counter", help_, of, labels, capped)


def _gauge(name: str, of: tuple[str, ...], help_: str, *labels: str) -> Declared:
    return Declared(name, "gauge", help_, of, labels)


def _histogram(
    name: str, of: tuple[str, ...], buckets: tuple[float, ...], help_: str, *labels: str, capped: str = ""
) -> Declared:
    return Declared(name, "histogram", help_, of, labels, capped, buckets)


LATENESS = _histogram(
    "rsched_run_start_lateness_seconds", _WORKER, _LATENESS,
    "From the instant an attempt was due to right before its target was called, by Redis' clock.", "queue", "team", capped="team",
)  # fmt: skip
ATTEMPTS = _counter(
    "rsched_attempts_finished_total", _WORKER,
    "Attempts whose end Redis has taken: succeeded, retrying, dead, cancelled; or refused, where it was too late.",
    "queue", "team", "outcome", capped="team",
)  # fmt: skip
ATTEMPTS_DROPPED = _counter(
    "rsched_attempts_dropped_total", _WORKER, "Attempts that were stopped because their lease was over, or lost."
)
ATTEMPTS_REQUEUED = _counter(
    "rsched_attempts_requeued_total", _WORKER, "Runs that were fetched and, as the worker stopped, not started."
)
ATTEMPTS_RUNNING = _gauge("rsched_attempts_running", _WORKER, "Attempts under way in this worker.")
RESULTS_WAITING = _gauge("rsched_results_waiting", _WORKER, "Ended attempts that Redis has not answered for yet.")
CONCURRENCY = _gauge("rsched_worker_concurrency", _WORKER, "Attempts that this worker makes at once at most.")

CLAIMED = _counter("rsched_claimed_runs_total", _SCHEDULER, "Runs made from due jobs.")
RELEASED = _counter("rsched_released_runs_total", _SCHEDULER, "Runs that came due and went to a queue.")
MISFIRES = _counter("rsched_misfires_total", _SCHEDULER, "Late jobs that were settled by their misfire policy.")
REAPED = _counter(
    "rsched_reaped_attempts_total", _SCHEDULER, "Attempts whose lease ended without a word from their worker."
)
PARTITIONS = _gauge("rsched_partitions_held", _SCHEDULER, "Partitions that this scheduler owns.", "shard")

RECORDED = _counter("rsched_recorded_events_total", _RECORDER, "Events written to Postgres.", "stream")
TRANSACTIONS = _counter("rsched_record_transactions_total", _RECORDER, "Transactions that wrote them.", "stream")
SKIPPED = _counter(
    "rsched_skipped_occurrences_total", _RECORDER, "Occurrences put on record as skipped.", "reason", capped="reason"
)
REPAIRS = _counter("rsched_repairs_total", _RECORDER, "Inconsistencies that were fixed.", "kind")
LAG_ENTRIES = _gauge(
    "rsched_journal_lag_entries", _RECORDER, "Entries of the journal that Postgres does not have.", *_STREAM
)
LAG_SECONDS = _gauge(
    "rsched_journal_lag_seconds",
    _RECORDER,
    "How long the oldest of them has waited at least; in steps of 5 s.",
    *_STREAM,
)
POSITION = _gauge(
    "rsched_journal_position", _RECORDER, "Number of the last recorded entry in its generation.", *_STREAM
)
LEDGER_UP = _gauge("rsched_postgres_up", _RECORDER, "1 when Postgres answered the last time it was asked.")

REDIS_UP = _gauge("rsched_redis_up", _RECORDER, "1 when Redis answered the last time it was asked.", *_SHARD)
CLOSED = _gauge("rsched_shard_closed", _RECORDER, "1 unless the shard is open on the server that answers.", *_SHARD)
GENERATION = _gauge("rsched_shard_generation", _RECORDER, "Number of the shard's recovery.", *_SHARD)
LOAD_LEVEL = _gauge(
    "rsched_load_level",
    _RECORDER,
    "For want of memory: 0 all goes on, 1 no creates, 2 no claims and fetches either.",
    *_SHARD,
)
IN_RECOVERY_GRACE = _gauge(
    "rsched_runs_in_recovery_grace",
    _RECORDER,
    "Runs due before the last closing that wait for workers to adopt.",
    *_SHARD,
)
UNCONFIRMED = _gauge(
    "rsched_unconfirmed_workers", _RECORDER, "Workers that have not said yet what they hold since.", *_SHARD
)
DUE = _gauge("rsched_due_jobs", _RECORDER, "Jobs that have a next occurrence; counted over 80 s.", *_SHARD)
CLAIM_LAG = _gauge("rsched_claim_lag_seconds", _RECORDER, "How far past its instant the earliest due job is.", *_SHARD)
STAGED = _gauge("rsched_staged_runs", _RECORDER, "Runs claimed ahead of their instant.", *_SHARD)
RETRIES = _gauge("rsched_retrying_runs", _RECORDER, "Runs that wait for their backoff.", *_SHARD)
UNFINISHED_RUNS = _gauge("rsched_unfinished_runs", _RECORDER, "Runs that are not final.", *_SHARD)
LEASES = _gauge("rsched_leases", _RECORDER, "Attempts under a lease.", *_SHARD)
CATCHUP = _gauge("rsched_catchup_ranges", _RECORDER, "Ranges of late occurrences still to be paid out.", *_SHARD)
CATCHUP_LAG = _gauge("rsched_catchup_lag_seconds", _RECORDER, "How far past its instant the next catch-up is.", *_SHARD)
QUARANTINE = _gauge(
    "rsched_quarantined_entries", _RECORDER, "Entries in Redis that could not be read and were quarantined.", *_SHARD
)
WORKERS = _gauge("rsched_workers_live", _RECORDER, "Workers heard of within their lease.", *_SHARD)
SCHEDULERS = _gauge("rsched_schedulers_live", _RECORDER, "Schedulers with a lease.", *_SHARD)
OWNED = _gauge("rsched_partitions_owned", _RECORDER, "Partitions, of 1,024, that a live scheduler owns.", *_SHARD)
RESTORE_LEFT = _gauge(
    "rsched_restore_jobs_left", _RECORDER, "Jobs still to be written back to Redis after a loss.", *_SHARD
)
DEPTH = _gauge(
    "rsched_queue_depth", _RECORDER, "Runs that wait for a worker: the 200 longest queue_keys, the rest as team _other.",
    "shard", "queue", "team", "priority",
)  # fmt: skip
MEMORY = _gauge("rsched_redis_memory_used_bytes", _RECORDER, "Memory that Redis uses.", *_SHARD)
MEMORY_MAX = _gauge("rsched_redis_memory_max_bytes", _RECORDER, "maxmemory of Redis, 0 for none.", *_SHARD)
SCRIPTS_TIME = _counter(
    "rsched_redis_scripts_seconds_total",
    _RECORDER,
    "Time Redis has spent in scripts since it started, of all callers.",
    *_SHARD,
)
READ_AT = _gauge(
    "rsched_gauges_read_timestamp_seconds", _RECORDER, "When these gauges were read from Redis, unix time.", *_SHARD
)

SCRIPT = _histogram(
    "rsched_script_duration_seconds",
    _ALL,
    _SCRIPT,
    "From sending a script to its reply, as the caller sees it.",
    "verb",
)
ALERTS = _counter("rsched_alerts_total", (*_SCHEDULER, *_RECORDER), "Things that somebody has to look at.", "kind")
REQUESTS = _counter("rsched_api_requests_total", _API, "Answered requests.", "endpoint", "method", "status")
REQUEST_SECONDS = _histogram(
    "rsched_api_request_duration_seconds",
    _API,
    _REQUEST,
    "From the request's first byte to the last of the answer.",
    "endpoint",
)

METRICS = tuple(d for d in list(globals().values()) if isinstance(d, Declared))
ALERT_KINDS = ("job_invalid", "quarantined_event", "journal_gap", "writes_lost", "clock_step")


class Metrics(Collector):
    """What one process of a kind counts. `before_scrape`: called right before rendering, to set what is only read then."""

    def __init__(self, kind: str = "") -> None:
        self.kind = kind
        self.before_scrape: list[Callable[[], None]] = []
        self._numbers = {d.name: Numbers(d) for d in METRICS if d.kind != "histogram"}
        self._histograms = {d.name: Histograms(d) for d in METRICS if d.kind == "histogram"}
        # From the start, so that the first increase shows as one.
        for d in METRICS:
            if kind in d.of and d.kind == "counter" and not d.labels:
                self.number(d).child()
            if kind in d.of and d is ALERTS:
                for alert in ALERT_KINDS:
                    self.number(d).child(alert)
        self.lateness, self.attempts = self.histogram(LATENESS), self.number(ATTEMPTS)
        self._scripts = self.histogram(SCRIPT)
        self._registry: CollectorRegistry | None = None

    def number(self, declared: Declared) -> Numbers:
        return self._numbers[declared.name]

    def histogram(self, declared: Declared) -> Histograms:
        return self._histograms[declared.name]

    def add(self, declared: Declared, *labels: str, by: float = 1) -> None:
        """Counts up."""
        self.number(declared).child(*labels).inc(by)

    def put(self, declared: Declared, *labels: str, value: float) -> None:
        """Sets a gauge."""
        self.number(declared).child(*labels).set(value)

    def script(self, verb: str, seconds: float) -> None:
        self._scripts.child(verb).observe(seconds)

    def repaired(self, kind: str, count: int = 1) -> None:
        """The reconciler fixed `count` inconsistencies of a kind; kinds are a handful of fixed words."""
        if count:
            self.add(REPAIRS, kind, by=count)

    def alert(self, kind: str) -> None:
        """Somebody has to look: one of ALERT_KINDS."""
        self.add(ALERTS, kind)

    def collect(self) -> Iterator[Metric]:
        for prepare in self.before_scrape:
            prepare()
        families: list[Numbers | Histograms] = [*self._numbers.values(), *self._histograms.values()]
        for family in families:
            family.age()
            if len(family):
                yield family.metric()

    def render(self) -> bytes:
        """In the text format, with the process' own numbers."""
        if self._registry is None:
            self._registry = CollectorRegistry()
            ProcessCollector(registry=self._registry)
            PlatformCollector(registry=self._registry)
            self._registry.register(self)
        return generate_latest(self._registry)
